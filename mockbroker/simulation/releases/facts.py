"""What releases do differently, by name, where no row says it. Data only.

Rows of rules have a ``since`` and an ``until`` of their own (``rows``).
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode, message
from mockbroker.simulation.releases.release import Fact, Varying

__all__ = [
    "ACL_FILTERS_HASHED", "ACL_NAMES_LISTED", "ADDED_PARTITIONS_ECHOED", "ALL_TOPICS_OF_LOG_DIRS",
    "ALTERED_RESOURCES_MAPPED", "ANY_AND_GROUP_TYPES", "ANY_TOPIC_MAKES_IDEMPOTENT",
    "BROKERS_ALTERED", "BROKER_LOGGERS", "BROKER_ZNODE_VERSION", "CLIENT_TELEMETRY",
    "CODECS_DEFINED", "COLLISIONS_REFUSED", "COMMITTERS_CHECKED", "COMPACTION_KEEPS_LOG_END",
    "CONFIGS_CHECKED_FIRST", "CONFIGS_FORWARDED", "CONFIGS_UNCHECKED", "CONFIG_RESOURCES",
    "CONFIG_RESOURCES_CHECKED_SINGLY", "CONFIG_TYPES_OF_FORWARDED", "CONSUMER_HEARTBEAT_TEXTS",
    "CONTROLLER_ZNODE_VERSION", "COORDINATOR_BATCHES_CHECKED", "COORDINATOR_KEYS_READ",
    "COORDINATOR_TEXTS", "COORDINATOR_TYPES_UNEXPECTED", "COUNTS_HAVE_DEFAULTS",
    "CREATED_TOPICS_LISTED", "CREATION_TEXTS_CAPITAL", "DEBUGGED_REPLICAS_NAMED",
    "DEFAULTS_MARKED", "DEFAULT_TOPICS_NAMED",
    "DELETED_COMMITS_READ", "DELETED_OFFSETS_REPEATED", "DELETED_TOPICS_REPEATED",
    "DELETE_HORIZONS", "DELETION_MARK_NAMED", "DESCRIBED_GROUPS_UNIQUE",
    "DESCRIBED_RESOURCES_MAPPED", "ELECTIONS_FORWARDED", "ELECTION_TYPES_NAMED",
    "EMPTY_PROTOCOL_NAMES_NULL", "EPOCH_ENDS_MERGED", "EXCESSIVE_GROWTH_NAMED",
    "FAILED_FETCHES_MERGED", "FAILURES_EXPLAINED", "FEATURES_ZNODE",
    "FIRST_FEATURE_ERROR_REFUSES_ALL",
    "GROUPS_OF_OFFSETS_MAPPED", "GROUP_CONFIGS_HAVE_SYNONYMS", "GROUP_CONFIG_OPERATIONS",
    "GROUP_METADATA_VERSION",
    "GROUP_VERSION_NEEDED", "GROWING_TOPICS_HASHED", "HELD_TASKS_STAY", "HOSTS_OF_RULES_READ",
    "INTERNAL_CONFIGS_OF_NEW_TOPICS",
    "ISOLATION_LEVELS_READ", "LARGEST_ACL_OPERATION", "LARGEST_RESOURCE_TYPE",
    "LATER_SHARE_PARTITIONS_AT_ZERO", "LEADERS_BEGIN_EPOCHS", "LEADERS_WRITE_ISR",
    "LISTED_REASSIGNMENTS_TIMED", "LIST_CONFIGS_ARE_SETS", "LIST_ITEMS_CHECKED",
    "LOCAL_START_OF_SEGMENTS", "LOGGERS_REPLACED",
    "LOGGING_CONTROLLER_LISTED", "LOG_DIRS_CORDONED", "LOG_LEVELS", "MEMBER_EPOCHS_STORED",
    "MESSAGE_FORMAT_FIXED", "MESSAGE_FORMAT_MAGIC", "METADATA_HASH_STORED",
    "METADATA_TOPIC_EXPLAINED", "MISSING_LEADER_HAS_NO_EPOCH", "MISSING_LEADER_HAS_NO_LISTENER",
    "NAMES_OF_MOVED_REPLICAS_CHECKED", "NAMES_OF_UNKNOWN_TOPICS_CHECKED", "NEEDLESS_ELECTION",
    "NEGATIVE_SHARE_PARTITIONS_FAIL", "NEW_TOPICS_DESCRIBED", "NODE_IDS_OF_LOGGERS",
    "NULLS_CHECKED", "NULLS_NAME_OPERATIONS", "NULLS_READ", "NULL_CONFIGS_REFUSED",
    "NULL_SHARE_GROUPS_REFUSED", "NULL_SHARE_MEMBERS_FAIL", "NULL_TEXT_OF_CONFIGS",
    "NULL_TEXT_OF_QUOTAS",
    "OFFSETS_WITHOUT_PRODUCER_STORED", "OFFSET_COMMIT_VERSION", "ONE_REMOTE_PARTITION",
    "OTHER_BROKERS_LOGGERS", "OTHER_BROKERS_QUOTED", "PARTITIONS_ONLY_VALIDATED",
    "PLAIN_ACL_CLASSES", "PRINCIPALS_OF_RULES_READ", "PRODUCER_ERRORS_EXPLAINED",
    "QUORUM_DESCRIBED", "REFUSED_JOINS_AT_ZERO", "REFUSED_OFFSET_ROWS_UNIQUE",
    "REPEATED_CONFIGS_NAMED", "REPLICA_LISTS_EXPLAINED", "SASL_MECHANISMS_LISTED", "SET_OF_CONFIGS",
    "SHARE_COORDINATORS", "SHARE_KEYS_NAMED", "SHARE_OFFSETS_MAKE_GROUPS", "SHARE_STATES_COUNTED",
    "SHARE_STATES_LOGGED", "SHARE_TARGET_TIMES_STORED", "STABLE_OFFSET_HIDDEN",
    "STREAMS_TARGET_TIMES_STORED", "TOPICS_OF_OFFSETS_KNOWN",
    "TOPICS_ONLY_VALIDATED", "TOPIC_NAMES_CAPITAL", "TOPIC_NAMES_ILLEGAL", "TOPIC_NAMES_PREFIXED",
    "TOPIC_ZNODE_VERSION", "TRANSACTIONAL_COMMITS_MAKE_GROUPS", "TRANSACTIONAL_OFFSETS_NEED_GROUP",
    "TRANSACTIONAL_OFFSETS_VERIFIED", "TRANSACTION_START_KEPT", "TWO_PHASE_COMMIT",
    "UNCLEAN_ELECTION_RECORDED", "UNKNOWN_ACL_ELEMENTS_READ", "UNKNOWN_CONFIGS_NAMED",
    "UNKNOWN_CONFIG_OF_TOPIC", "UNKNOWN_CONFIG_TYPE_NAMED", "UNKNOWN_LOGGER_OPERATIONS_NAMED",
    "UNKNOWN_TOPICS_DESCRIBED", "UNREQUESTED_OPERATIONS_ZERO",
    "UNSUPPORTED_VERSION_ROW", "UNWRITTEN_GROUPS_DELETED", "VALID_OFFSET_ROWS_UNIQUE",
    "VALUES_OF_TOPICS_FAIL", "WRONG_LOGGER", "WRONG_QUOTAS_IGNORED", "ZOOKEEPER_CONTROLLER",
]  # fmt: skip

# ---- answers -------------------------------------------------------------------------------------

UNSUPPORTED_VERSION_ROW: Final = Fact("REL-01", since=(2, 4))
"""Error 35 to ApiVersions comes with a row for key 18 (KIP-511)."""

UNREQUESTED_OPERATIONS_ZERO: Final = Fact("REL-02", until=(2, 5))
"""In Metadata and DescribeGroups, operations that were not requested are 0 instead of the field's
default."""

MISSING_LEADER_HAS_NO_LISTENER: Final = Fact("REL-03", since=(2, 4))
"""Brokers treat an absent leader as a leader without a listener, unless they have KAFKA-10312: by
mistake they look for their own id among the live brokers."""

MISSING_LEADER_HAS_NO_EPOCH: Final = Fact("REL-03", since=(2, 4), until=(2, 6))
"""Such a partition has no leader epoch, as far as is known."""

COORDINATOR_TEXTS: Final = Fact("REL-04", since=(2, 3))
"""FindCoordinator has a text, "NONE" even with success."""

NULL_TEXT_OF_CONFIGS: Final = Fact("REL-05", until=(2, 7))
"""The text of a success in DescribeConfigs is null; later it is empty."""

UNKNOWN_CONFIG_TYPE_NAMED: Final = Fact("REL-06", until=(2, 7))
"""The text for an unknown resource type in DescribeConfigs names the type."""

DEFAULTS_MARKED: Final = Fact("REL-07", until=(2, 7))
"""DescribeConfigs version 0 marks defaults."""

GROUP_CONFIG_OPERATIONS: Final = Fact("REL-08", since=(4, 0))
"""The operations on a group include those on its configs."""

GROUP_VERSION_NEEDED: Final = Fact("REL-09", since=(4, 0))
"""Consumer groups need the feature ``group.version``; 3.7 to 3.9 have a preview of them, which a
config switches on."""

CONSUMER_HEARTBEAT_TEXTS: Final = Fact("REL-10", since=(4, 0))
"""ConsumerGroupHeartbeat is refused with a text; the preview refuses it without one."""

COORDINATOR_BATCHES_CHECKED: Final = Fact("DP-TXNOFF-05", since=(2, 4))
"""A log checks the producer of a coordinator's batches. By bytecode absent in 2.0.1 and present in
2.4.1; no release between them was compared."""

LEADERS_BEGIN_EPOCHS: Final = Fact("DP-EPOCH-03", since=(2, 0))
"""A leader epoch begins with its leader, instead of with its first batch. By bytecode absent in
1.1.1 and present in 2.0.1."""

TRANSACTIONAL_OFFSETS_NEED_GROUP: Final = Fact("DP-TXNOFF-01", since=(2, 0))
"""TxnOffsetCommit without a group id fails with INVALID_GROUP_ID."""

ANY_TOPIC_MAKES_IDEMPOTENT: Final = Fact("DP-INIT-01", since=(2, 8))
"""A producer that may write to any topic may be idempotent (KIP-679)."""

CLIENT_TELEMETRY: Final = Fact("TELEM-20", since=(3, 7))
"""KRaft brokers with a receiver of clients' metrics advertise its two API keys (KIP-714)."""

DELETED_OFFSETS_REPEATED: Final = Fact("REL-41", until=(2, 6))
"""OffsetDelete lists a topic once for each of its partitions. By bytecode present in 2.5.1 and
absent in 2.6.3."""

DEBUGGED_REPLICAS_NAMED: Final = Fact("DP-LISTOFF-16", until=(2, 1))
"""ListOffsets of the replica -2 fails with REPLICA_NOT_AVAILABLE where a broker has no replica. By
bytecode so in 2.0.1, and not in 2.1.1."""

GROWING_TOPICS_HASHED: Final = Fact("REL-82", until=(2, 5))
"""ZooKeeper mode: CreatePartitions extends topics in the order of a hash map. By bytecode so in
2.4.1, and not in 2.5.1."""

GROUPS_OF_OFFSETS_MAPPED: Final = Fact("REL-112", until=(3, 5))
"""OffsetFetch answers a group once, for what the request says of it last. By bytecode so in 3.4.1,
and not in 3.5.2."""

FAILED_FETCHES_MERGED: Final = Fact("DP-FETCH-27", until=(3, 1))
"""Fetch that fails as a whole lists each partition once. By bytecode so in 3.0.2, and not in
3.1.2."""

EPOCH_ENDS_MERGED: Final = Fact("REL-42", until=(2, 8))
"""OffsetForLeaderEpoch lists each topic and partition once. By bytecode present in 2.7.2 and absent
in 2.8.2."""

NAMES_OF_UNKNOWN_TOPICS_CHECKED: Final = Fact("REL-43", since=(2, 8))
"""Metadata of an unknown topic, even if it does not create it, checks the name. By bytecode absent
in 2.7.2 and present in 2.8.2."""

PRODUCER_ERRORS_EXPLAINED: Final = Fact("REL-44", since=(3, 0))
"""DescribeProducers checks names and has a text for unknown topics. By bytecode absent in 2.8.2 and
present in 3.0.2."""

ALL_TOPICS_OF_LOG_DIRS: Final = Fact("REL-45", since=(2, 6), until=(3, 7))
"""DescribeLogDirs lists topics of which no partition is requested, without partitions. By bytecode
absent in 2.5.1 and 3.7.2, present in 2.6.3 and 3.6.2."""

NAMES_OF_MOVED_REPLICAS_CHECKED: Final = Fact("REL-79", since=(2, 2))
"""AlterReplicaLogDirs refuses a topic whose name is too long for the folder of a replica that
moves. By bytecode absent in 2.1.1 and present in 2.2.2."""

INTERNAL_CONFIGS_OF_NEW_TOPICS: Final = Fact("REL-55", since=(3, 3), until=(3, 6))
"""KRaft: CreateTopics lists the configs of tiered storage, which Kafka documents nowhere yet. So in
3.3.2; by bytecode 3.2.3 does not resolve the configs of new topics."""

DESCRIBED_GROUPS_UNIQUE: Final = Fact("REL-85", until=(2, 3))
"""DescribeGroups describes a group once. By the source so in 2.2.2, and not in 2.3.1."""

CREATED_TOPICS_LISTED: Final = Fact("REL-86", until=(2, 3))
"""ZooKeeper mode: CreateTopics answers a topic that it names twice once, with a text that lists all
such topics. By the source so in 2.2.2, and not in 2.3.1."""

COUNTS_HAVE_DEFAULTS: Final = Fact("REL-87", since=(2, 4))
"""ZooKeeper mode: CreateTopics without a count takes that of the broker (KIP-464). By the source
absent in 2.3.1 and present in 2.4.1."""

VALUES_OF_TOPICS_FAIL: Final = Fact("REL-88", until=(2, 1))
"""ZooKeeper mode: a value of a wrong type fails CreateTopics with UNKNOWN_SERVER_ERROR. By the
source so in 2.0.1, and not in 2.1.1."""

UNKNOWN_TOPICS_DESCRIBED: Final = Fact("REL-89", until=(2, 0))
"""DescribeConfigs lists the configs of topics that do not exist. By the source so in 1.1.1, and not
in 2.0.1."""

CONFIG_RESOURCES: Final = Varying(
    "REL-90",
    (((0, 0), "Resource(type={type}, name='{name}'}}"),
     ((2, 0), "ConfigResource(type={type}, name='{name}')")),
)  # fmt: skip
"""How texts name a resource."""

OTHER_BROKERS_QUOTED: Final = Fact("REL-90", since=(1, 1), until=(2, 4))
"""The text for configs of another broker has the whole resource in place of its name. By the source
absent in 1.0.2 and 2.4.1, present in 1.1.1 and 2.3.1."""

ANY_AND_GROUP_TYPES: Final = Fact("REL-91", until=(2, 0))
"""The types of resources with configs include ANY and GROUP, and a negative type cannot be read. By
the source so in 1.1.1, and not in 2.0.1."""

DELETED_TOPICS_REPEATED: Final = Fact("REL-46", since=(2, 3))
"""ZooKeeper mode: DeleteTopics has a result for each time that a topic is requested. By bytecode
absent in 2.2.2 and present in 2.3.1."""

CREATION_TEXTS_CAPITAL: Final = Fact("REL-75", since=(1, 0))
"""The texts of CreateTopics about counts begin with a capital letter and end with a full stop. By
bytecode absent in 0.11.0.3 and present in 1.0.2."""

METADATA_TOPIC_EXPLAINED: Final = Fact("REL-53", since=(3, 9))
"""CreateTopics says that __cluster_metadata is prohibited; before, it is not authorized. So in
3.3.2; by bytecode still in 3.8.1, and not in 3.9.2."""

PLAIN_ACL_CLASSES: Final = Fact("REL-47", until=(2, 5))
"""The text of a success in CreateAcls and DescribeAcls is null, and a rule that can only be a
filter closes the connection. So in 2.4.1, and not in 2.5.1."""

ACL_NAMES_LISTED: Final = Fact("REL-56", until=(2, 4))
"""ZooKeeper mode: CreateAcls lists the names of an element whose number it does not know, and
refuses a principal without a colon with 42. By bytecode present in 2.3.1 and absent in 2.4.1."""

ACL_FILTERS_HASHED: Final = Fact("REL-106", until=(2, 4))
"""ZooKeeper mode: of several filters of DeleteAcls a rule is that of the first one in the order of
a hash table. By the source so in 2.3.1, and not in 2.4.1."""

FAILURES_EXPLAINED: Final = Fact("REL-48", until=(2, 6))
"""ZooKeeper mode: UNKNOWN_SERVER_ERROR has the text of Java's exception in CreateAcls,
CreatePartitions and IncrementalAlterConfigs. So in 2.5.1, and not in 2.6.3."""

PRINCIPALS_OF_RULES_READ: Final = Fact("REL-97", since=(3, 9))
"""With KRaft CreateAcls refuses a principal without a colon. By bytecode absent in 3.6.2 and
present in 3.9.2."""

HOSTS_OF_RULES_READ: Final = Fact("REL-111", since=(4, 4))
"""With KRaft CreateAcls refuses an empty host. By bytecode absent in 4.3.1 and present in 4.4.0;
3.9.2 and 4.1.2 accept it."""

UNKNOWN_ACL_ELEMENTS_READ: Final = Fact("REL-77", until=(2, 5))
"""DescribeAcls, CreateAcls and DeleteAcls with an element that is UNKNOWN are answered. By bytecode
so in 2.4.1, whose classes check only what a client sends, and not in 2.5.1."""

NULL_TEXT_OF_QUOTAS: Final = Fact("QUOTA-22", until=(2, 8))
"""The text of a success in DescribeClientQuotas is null. So in 2.7.2, and not in 2.8.2."""

WRONG_QUOTAS_IGNORED: Final = Fact("REL-108", until=(3, 0))
"""KRaft: AlterClientQuotas leaves wrong keys and values out, and succeeds. By the source so in
2.8.2, and not in 3.0.2."""

LARGEST_RESOURCE_TYPE: Final = Varying("REL-40", (((0, 0), 5), ((1, 1), 6), ((3, 3), 7)))
"""The largest number of a resource type in access rules. By bytecode DELEGATION_TOKEN is absent in
1.0.2 and present in 1.1.1, USER absent in 3.2.3 and present in 3.3.2."""

LARGEST_ACL_OPERATION: Final = Varying("REL-40", (((0, 0), 12), ((3, 3), 14), ((4, 1), 15)))
"""The largest number of an operation in access rules. By bytecode CREATE_TOKENS is absent in 3.2.3
and present in 3.3.2, TWO_PHASE_COMMIT absent in 4.0.1 and present in 4.1.2."""

TWO_PHASE_COMMIT: Final = Fact("DP-INIT-09", since=(4, 1))
"""InitProducerId 6 is an unstable version, and transactions without a time-out never end by time
(KIP-939). By bytecode absent in 4.0.2 and present in 4.1.2."""

COORDINATOR_KEYS_READ: Final = Fact("REL-71", until=(2, 3))
"""FindCoordinator with an unknown key type cannot be read. By bytecode present in 2.2.2 and absent
in 2.3.1."""

COORDINATOR_TYPES_UNEXPECTED: Final = Fact("REL-78", until=(2, 8))
"""FindCoordinator with an unknown key type fails with UNKNOWN_SERVER_ERROR. By the source so in
2.7.2, and not in 2.8.2."""

LOCAL_START_OF_SEGMENTS: Final = Fact("DP-LISTOFF-09", since=(3, 5))
"""ListOffsets 0 knows the timestamp -4. Kafka 3.6.2 answers so; by bytecode absent in 3.4.1 and
present in 3.5.2. Since 3.9 such timestamps are refused."""

ISOLATION_LEVELS_READ: Final = Fact("REL-71", until=(2, 7))
"""Fetch and ListOffsets with an unknown isolation level cannot be read. By bytecode present in
2.6.3 and absent in 2.7.2."""

SASL_MECHANISMS_LISTED: Final = Fact("REL-73", until=(1, 1))
"""SaslHandshake on a listener without authentication lists the broker's mechanisms. By bytecode
present in 1.0.2 and absent in 1.1.1."""

QUORUM_DESCRIBED: Final = Fact("REL-98", since=(3, 0))
"""Brokers forward DescribeQuorum, which they advertise in 2.8, too, and fail with
UNKNOWN_SERVER_ERROR. By the source absent in 2.8.2 and present in 3.0.2."""

LISTED_REASSIGNMENTS_TIMED: Final = Fact("REL-105", until=(3, 3))
"""ListPartitionReassignments waits in the queue of a KRaft controller for no longer than its
time-out. By the source so in 3.2.3, and not in 3.3.2."""

ELECTIONS_FORWARDED: Final = Fact("REL-99", since=(3, 1))
"""Brokers of a KRaft cluster forward ElectLeaders; before, they do not support it. By the source
absent in 3.0.2 and present in 3.1.2."""

# ---- data ----------------------------------------------------------------------------------------

ONE_REMOTE_PARTITION: Final = Fact("DP-FETCH-25", until=(4, 2))
"""An answer to Fetch has remote records of one partition, the first of those with any."""

STABLE_OFFSET_HIDDEN: Final = Fact("REL-74", until=(2, 1))
"""Fetch has the last stable offset only for READ_COMMITTED. By bytecode present in 2.0.1 and absent
in 2.1.1."""

MESSAGE_FORMAT_FIXED: Final = Fact("DP-FORMAT-01", since=(3, 0))
"""``message.format.version`` has no effect."""

MESSAGE_FORMAT_MAGIC: Final = Varying("DP-FORMAT-01", (((0, 0), 0), ((0, 10), 1), ((0, 11), 2)))
"""The magic of batches in the format of a release."""

COMPACTION_KEEPS_LOG_END: Final = Fact("DP-RETAIN-02", since=(3, 9))
"""Compaction keeps the last batch before its end as a header."""

DELETE_HORIZONS: Final = Fact("DP-RETAIN-03", since=(3, 1))
"""Compaction marks batches of tombstones with the time until which they stay (KIP-534); before, the
age of their segment decides. By bytecode absent in 3.0.2 and present in 3.1.2."""

# ---- groups and transactions ---------------------------------------------------------------------

OFFSET_COMMIT_VERSION: Final = Varying("DP-COORD-09", (((0, 0), 1), ((2, 1), 3), ((4, 1), 4)))
"""Of OffsetCommitValue. An end of its own needs version 1, which later versions do not have."""

GROUP_METADATA_VERSION: Final = Varying(
    "DP-COORD-09", (((0, 0), 0), ((0, 11), 1), ((2, 1), 2), ((2, 3), 3))
)
"""Of GroupMetadataValue."""

COMMITTERS_CHECKED: Final = Fact("DP-OFFSET-30", since=(3, 0), until=(3, 3))
"""A commit without a generation to an empty group may name no member. By the source absent in 2.8.2
and 3.3.2, present in 3.0.2 and 3.2.3."""

UNWRITTEN_GROUPS_DELETED: Final = Fact("DP-COORD-09", since=(4, 0))
"""The coordinator writes the deletion even of a group that it has never written."""

METADATA_HASH_STORED: Final = Fact("DP-CGH-28", since=(4, 1))
"""The record of a consumer group has a hash of what the group knows of its topics."""

MEMBER_EPOCHS_STORED: Final = Fact("DP-CGH-28", since=(4, 3))
"""The record of a member's assignment has the epochs of its partitions (KIP-1251)."""

REFUSED_JOINS_AT_ZERO: Final = Fact("REL-70", until=(2, 2))
"""Refusals of JoinGroup by the coordinator have generation 0 instead of -1. By bytecode present in
2.1.1 and absent in 2.2.2."""

TOPICS_OF_OFFSETS_KNOWN: Final = Fact("REL-72", until=(2, 0))
"""OffsetCommit and TxnOffsetCommit take offsets for any partition of a topic that exists. By
bytecode present in 1.1.1 and absent in 2.0.1."""

DELETED_COMMITS_READ: Final = Fact("DP-OFFSET-31", since=(4, 0))
"""A coordinator that reads the log makes a group for a commit that was deleted since."""

VALID_OFFSET_ROWS_UNIQUE: Final = Fact("DP-OFFSET-29", until=(4, 0))
"""OffsetCommit, TxnOffsetCommit and OffsetDelete have a partition once, by its last row."""

REFUSED_OFFSET_ROWS_UNIQUE: Final = Fact("DP-OFFSET-29", until=(3, 5))
"""They have a partition that the broker refuses once, too, and one that OffsetCommit 0 stores in
ZooKeeper, and no refused topic without partitions. Of OffsetCommit 0: 2.4.1, 2.8.2; not 3.9.2."""

TRANSACTIONAL_COMMITS_MAKE_GROUPS: Final = Fact("DP-TXNOFF-01", until=(4, 0))
"""TxnOffsetCommit makes the group if there is none, before anything of it is refused."""

TRANSACTIONAL_OFFSETS_VERIFIED: Final = Fact("DP-TXNOFF-03", since=(3, 7))
"""TxnOffsetCommit below version 5 is verified. By bytecode absent in 3.6.2 and present in 3.7.2."""

OFFSETS_WITHOUT_PRODUCER_STORED: Final = Fact("DP-TXNOFF-04", until=(4, 0))
"""TxnOffsetCommit without a producer id stores offsets outside of transactions, and with one but no
epoch it fails."""

SHARE_COORDINATORS: Final = Fact("DP-COORD-04", since=(4, 0))
"""Brokers have share coordinators."""

SHARE_KEYS_NAMED: Final = Fact("DP-COORD-04", since=(3, 9))
"""FindCoordinator knows the key type of share coordinators in every version, if only to refuse it.
By bytecode absent in 3.8.1 and present in 3.9.2."""

SHARE_STATES_LOGGED: Final = Fact("DP-SHARE-45", since=(4, 1))
"""Share coordinators write records of the present layout. Snapshots of 4.0.2 have no timestamps."""

SHARE_STATES_COUNTED: Final = Fact("DP-SHARE-45", since=(4, 2))
"""Records of share states count the records that need no more delivery. By bytecode absent in 4.1.2
and present in 4.2.2."""

NULL_SHARE_GROUPS_REFUSED: Final = Fact("DP-SHARE-03", since=(4, 3))
"""ShareFetch and ShareAcknowledge refuse a null group id; before, they fail. By bytecode absent in
4.2.2 and present in 4.3.1."""

NULL_SHARE_MEMBERS_FAIL: Final = Fact("DP-SHARE-03", until=(4, 3))
"""ShareFetch and ShareAcknowledge fail for a null member id; later they refuse it. Kafka 4.2.2 and
4.3.1 answer so; by bytecode 4.1.2 and 4.2.1 are like 4.2.2."""

SHARE_OFFSETS_MAKE_GROUPS: Final = Fact("DP-SHARE-11", since=(4, 2))
"""AlterShareGroupOffsets makes the group if there is none."""

NEGATIVE_SHARE_PARTITIONS_FAIL: Final = Fact("DP-SHARE-11", since=(4, 2))
"""AlterShareGroupOffsets fails as a whole with a negative partition, which earlier is unknown."""

LATER_SHARE_PARTITIONS_AT_ZERO: Final = Fact("DP-SHARE-04", since=(4, 4))
"""A share group begins at the start in partitions that a topic gets after the group has begun."""

SHARE_TARGET_TIMES_STORED: Final = Fact("DP-SHARE-29", since=(4, 3))
"""The record of a share group's target has the time at which it was made."""

HELD_TASKS_STAY: Final = Fact("DP-STREAMS-25", since=(4, 4))
"""The assignor of streams groups leaves with members the tasks that they have; before, those of
their former targets. By bytecode absent in 4.3.1."""

STREAMS_TARGET_TIMES_STORED: Final = Fact("DP-STREAMS-19", since=(4, 3))
"""The record of a streams group's target has the time at which it was made."""

ADDED_PARTITIONS_ECHOED: Final = Fact("DP-ADD-20", since=(3, 5))
"""AddPartitionsToTxn answers a request of which nothing is refused as it is, with topics without
partitions and with repetitions. Seen on 4.4.0; it came with version 4 of the request."""

TRANSACTION_START_KEPT: Final = Fact("REL-23", until=(4, 1))
"""In memory, a new producer epoch keeps the start of the transaction before."""

# ---- features and metadata -----------------------------------------------------------------------

FIRST_FEATURE_ERROR_REFUSES_ALL: Final = Fact("FEAT-12", since=(4, 0))
"""The first error of UpdateFeatures refuses all its changes (KIP-1022)."""

FEATURES_ZNODE: Final = Fact("REL-11", since=(2, 7))
"""A ZooKeeper cluster has finalized features, but none."""

ZOOKEEPER_MIGRATION: Final = Fact("UPGRADE-06", since=(3, 4), until=(4, 0))
"""A cluster can be migrated from ZooKeeper to KRaft (KIP-866)."""

KRAFT_UPGRADES: Final = Fact("UPGRADE-04", since=(3, 0))
"""A KRaft cluster can be upgraded; in 2.8 KRaft was an early access."""

ZOOKEEPER_CONTROLLER: Final = Varying(
    "K455-60",
    (
        ((0, 0), "zookeeper-0.10"), ((2, 1), "zookeeper-2.1"), ((2, 3), "zookeeper-2.3"),
        ((2, 4), "zookeeper-2.4"), ((2, 5), "zookeeper-2.5"), ((2, 7), "zookeeper-2.7"),
        ((2, 8), "zookeeper-2.8"), ((3, 0), "zookeeper-3.0"), ((3, 2), "zookeeper-3.2"),
        ((3, 4), "zookeeper"),
    ),
)  # fmt: skip
"""The controllers of Kafka's ZooKeeper mode, by the first release that has them; the page
zookeeper-eras of the documentation describes them. Before 2.4 the topic's text does not say what is
added and removed: there a new controller knows no more than what ``/admin/reassign_partitions``
still holds."""

TOPIC_ZNODE_VERSION: Final = Varying("K455-41", (((0, 0), 1), ((2, 4), 2), ((2, 8), 3)))
BROKER_ZNODE_VERSION: Final = Varying("K455-41", (((0, 0), 4), ((2, 7), 5)))
CONTROLLER_ZNODE_VERSION: Final = Varying("K455-41", (((0, 0), 1), ((3, 4), 2)))
LEADERS_WRITE_ISR: Final = Fact("REL-21", until=(2, 7))
"""Leaders write their ISR to ZooKeeper themselves, not the controller (KIP-497)."""

UNCLEAN_ELECTION_RECORDED: Final = Fact("REL-22", since=(3, 2))
"""The state znode says that an unclean election chose the leader (KIP-704)."""

# ---- topics, configs and elections ---------------------------------------------------------------

LOG_DIRS_CORDONED: Final = Fact("REL-12", since=(4, 3))
"""Log directories can be cordoned, and texts about too few brokers name that cause."""

DELETION_MARK_NAMED: Final = Fact("REL-13", since=(3, 1))
"""In ZooKeeper mode CreateTopics says of a topic that it is marked for deletion, instead of that it
exists."""

SET_OF_CONFIGS: Final = Varying("REL-14", (((0, 0), "Set({names})"), ((4, 3), "[{names}]")))
"""How refusals list the names of broker configs, up to 4.2 as a set of Scala's."""

EMPTY_PROTOCOL_NAMES_NULL: Final = Fact("REL-32", since=(3, 7))
"""JoinGroup 7 and later answers null for a protocol whose name is empty."""

CONFIG_RESOURCES_CHECKED_SINGLY: Final = Fact("REL-29", until=(3, 2))
"""ZooKeeper mode: of equal resources in IncrementalAlterConfigs the last one counts; a null value
in AlterConfigs is an unexpected error, and the texts are older."""

TOPIC_NAMES_ILLEGAL: Final = Fact("REL-30", until=(3, 3))
"""The texts for invalid topic names call them illegal."""

TOPIC_NAMES_PREFIXED: Final = Fact("REL-30", since=(3, 0))
"""The text for a name that is too long says "Topic name" twice with a capital letter. By the source
absent in 2.8.2 and present in 3.0.2."""

TOPICS_ONLY_VALIDATED: Final = Fact("REL-100", since=(3, 1))
"""KRaft: CreateTopics creates nothing if it shall only validate, and has the later texts about a
topic that exists and a replication factor. By the source absent in 3.0.2 and present in 3.1.2."""

PARTITIONS_ONLY_VALIDATED: Final = Fact("REL-100", since=(3, 2))
"""KRaft: CreatePartitions changes nothing if it shall only validate. By the source absent in 3.1.2
and present in 3.2.3."""

NEW_TOPICS_DESCRIBED: Final = Fact("REL-101", since=(3, 3))
"""KRaft: CreateTopics lists the configs of new topics. By the source absent in 3.2.3 and present in
3.3.2."""

COLLISIONS_REFUSED: Final = Fact("REL-101", since=(3, 3))
"""KRaft: CreateTopics refuses names that differ only in '.' and '_' from others. By the source
absent in 3.2.3 and present in 3.3.2."""

REPLICA_LISTS_EXPLAINED: Final = Fact("REL-102", since=(3, 0))
"""KRaft: the texts of CreateTopics about replicas are those of later releases. By the source absent
in 2.8.2 and present in 3.0.2."""

CONFIGS_FORWARDED: Final = Fact("REL-103", since=(2, 8), until=(3, 2))
"""KRaft: brokers forward AlterConfigs and IncrementalAlterConfigs as they are, and the controller
does not ask whether a topic exists. By the source so in 3.1.2, and not in 3.2.3."""

CONFIG_TYPES_OF_FORWARDED: Final = Fact("REL-103", since=(3, 0))
"""KRaft: the controller refuses repeated resources and unknown types of what is forwarded as it is;
before, of equal resources the last one counts. By the source absent in 2.8.2 and present in
3.0.2."""

CONFIGS_UNCHECKED: Final = Fact("REL-104", until=(3, 1))
"""KRaft: controllers take configs of any name, and DELETE only without a value. By the source so in
3.0.2, and not in 3.1.2."""

EXCESSIVE_GROWTH_NAMED: Final = Fact("REL-60", since=(4, 4))
"""With KRaft CreatePartitions refuses a request for more than 10,000 partitions; before, a topic
that exceeds them fails with UNKNOWN_SERVER_ERROR. Absent in 4.3.1 and present in 4.4.0."""

LIST_CONFIGS_ARE_SETS: Final = Fact("REL-17", since=(3, 3))
"""ZooKeeper mode: APPEND and SUBTRACT treat a list as a set, instead of concatenating and cutting
text."""

LIST_ITEMS_CHECKED: Final = Fact("CONFIG-21", since=(4, 2))
"""KIP-1161: lists are refused because of an empty item, those of brokers because of one that comes
twice, too. Before, an empty item is only none of those that a config may have. Absent in 4.1.2,
present in 4.2.2."""

REPEATED_CONFIGS_NAMED: Final = Fact("REL-18", until=(3, 2))
"""ZooKeeper mode: the text for a config that is given twice names it."""

DEFAULT_TOPICS_NAMED: Final = Fact("CONFIG-24", since=(3, 3))
"""IncrementalAlterConfigs refuses an empty topic name as that of the default of all topics; before,
with ZooKeeper, as the name of a znode. By the source absent in 3.2.3 and present in 3.3.2."""

GROUP_CONFIGS_HAVE_SYNONYMS: Final = Fact("CONFIG-25", since=(4, 3))
"""The broker's configs are synonyms of a group's in DescribeConfigs; before, a group's config has
its own name and no other. By bytecode absent in 4.2.2 and present in 4.3.1."""

CODECS_DEFINED: Final = Fact("CONFIG-22", since=(3, 3))
"""The definition of a broker's ``compression.type`` lists the codecs. By the source absent in 3.2.3
and present in 3.3.2."""

ALTERED_RESOURCES_MAPPED: Final = Fact("REL-92", until=(2, 6))
"""AlterConfigs is read into a map: of equal resources the last one counts, unknown types are
answered as type 0, and a null value closes the connection. By the source so in 2.5.1, and not in
2.6.3."""

BROKERS_ALTERED: Final = Fact("REL-93", since=(1, 1))
"""AlterConfigs changes brokers, too (KIP-226). By bytecode absent in 0.11.0.3 and present in
1.1.1."""

UNKNOWN_CONFIG_OF_TOPIC: Final = Varying(
    "REL-94", (((0, 0), "Unknown Log configuration {name}."),
               ((0, 11), "Unknown topic config name: {name}")),
)  # fmt: skip
"""The text for a topic config that does not exist. By bytecode so in 0.10.2.2 and 0.11.0.3."""

TOPIC_NAMES_CAPITAL: Final = Fact("REL-94", since=(0, 11))
"""The texts about topic names begin with a capital letter. By bytecode absent in 0.10.2.2 and
present in 0.11.0.3."""

NULLS_READ: Final = Fact("REL-95", since=(0, 11))
"""CreateTopics can be read with null configs, and Produce with null records. By requests absent in
0.10.2.2."""

DESCRIBED_RESOURCES_MAPPED: Final = Fact("REL-80", until=(2, 7))
"""DescribeConfigs is read into a map in the same way, and an empty list of names selects none. By
the source so in 2.6.3, and not in 2.7.2."""

CONFIGS_CHECKED_FIRST: Final = Fact("REL-81", until=(2, 7))
"""ZooKeeper mode: CreateTopics checks the values of configs before counts and names. By the source
so in 2.6.3, and not in 2.7.2."""

NULL_CONFIGS_REFUSED: Final = Fact("REL-81", since=(2, 6))
"""ZooKeeper mode: CreateTopics refuses configs without a value; before, it fails. By the source
absent in 2.5.1 and present in 2.6.3."""

UNKNOWN_CONFIGS_NAMED: Final = Fact("CONFIG-12", since=(4, 3))
"""APPEND and SUBTRACT on a broker config that does not exist name it; before, they fail with
UNKNOWN_SERVER_ERROR. Absent in 4.1.2, present in 4.3.1."""

BROKER_LOGGERS: Final = Fact("CONFIG-17", since=(2, 4))
"""Brokers have resources of type BROKER_LOGGER (KIP-412)."""

LOGGERS_REPLACED: Final = Varying(
    "CONFIG-20",
    (
        (
            (0, 0),
            "AlterConfigs is deprecated and does not support the resource type BROKER_LOGGER",
        ),
        ((3, 2), "Unknown resource type 8"),
    ),
)
"""The refusal of AlterConfigs for loggers."""

NULLS_NAME_OPERATIONS: Final = Fact("CONFIG-21", until=(3, 2))
"""The text about null values puts the operation before each name: ``SUBTRACT:retention.ms``."""

NULLS_CHECKED: Final = Fact("CONFIG-21", since=(2, 6))
"""IncrementalAlterConfigs refuses null values; before, it fails as it sets one (-1), and refuses a
level as one with that name. Absent in 2.4.1 and, by bytecode, in 2.5.1; present in 2.8.2."""

NODE_IDS_OF_LOGGERS: Final = Fact("CONFIG-18", since=(3, 2))
"""The id of a broker that changes loggers is that of a node, and not empty."""

OTHER_BROKERS_LOGGERS: Final = Varying(
    "CONFIG-18",
    (
        ((0, 0), "Unexpected broker id, expected {receiver}, but received {name}"),
        ((3, 7), "Unexpected node id. Expected {receiver}, but received {receiver}"),
        ((4, 1), "Unexpected node id. Expected {receiver}, but received {name}"),
    ),
)
"""The text for loggers of another broker. In 3.7 to 4.0 it has the wrong id."""

WRONG_LOGGER: Final[Varying[tuple[ErrorCode, str]]] = Varying(
    "CONFIG-19",
    (
        (
            (0, 0),
            (
                ErrorCode.INVALID_REQUEST,
                "Invalid config value for resource ConfigResource(type=BROKER_LOGGER, "
                "name='{name}'): {problem}",
            ),
        ),
        ((3, 2), (ErrorCode.INVALID_CONFIG, "{problem}")),
    ),
)
"""The refusal of a logger or a level that does not exist."""

LOG_LEVELS: Final = Varying(
    "CONFIG-19",
    (
        ((0, 0), "TRACE, ERROR, INFO, FATAL, DEBUG, WARN"),
        ((3, 7), "DEBUG, ERROR, FATAL, INFO, TRACE, WARN"),
    ),
)
"""How a refusal lists the levels, up to 3.6 as a set of Scala's."""

LOGGING_CONTROLLER_LISTED: Final = Fact("CONFIG-17", since=(4, 1))
"""The class that serves loggers has one of its own, whatever its configuration names
(KAFKA-19260)."""

UNKNOWN_LOGGER_OPERATIONS_NAMED: Final = Varying(
    "CONFIG-20", (((0, 0), False), ((3, 2), True), ((3, 7), False), ((4, 4), True))
)
"""The text for an operation on a logger that does not exist names it; otherwise the request fails
with UNKNOWN_SERVER_ERROR."""

NEEDLESS_ELECTION: Final[Varying[tuple[ErrorCode, str | None]]] = Varying(
    "A-29",
    (
        ((0, 0), (ErrorCode.NONE, None)),
        ((2, 4), (ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition")),
        ((2, 6), (ErrorCode.ELECTION_NOT_NEEDED, message(ErrorCode.ELECTION_NOT_NEEDED))),
    ),
)
"""ZooKeeper mode: the answer for a partition that already has the right leader."""

ELECTION_TYPES_NAMED: Final = Fact("REL-20", until=(2, 6))
"""ZooKeeper mode: the refusal of an unknown election type names the known ones."""
