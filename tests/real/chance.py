"""What Kafka leaves to chance, and so is not compared: the one table of all comparisons with it.

``CHANCE`` are fields, ``UNORDERED`` and ``LATE`` arrays, by API key and path. Nothing else is
masked.
``docs/explanation/fidelity.md`` has both tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

__all__ = [
    "CHANCE",
    "HASHED",
    "LATE",
    "UNORDERED",
    "ZNODE",
    "Chance",
    "How",
    "Late",
    "Unordered",
    "listed_brokers",
]

How: TypeAlias = Literal[
    "hide", "clock", "producer", "session", "records", "coordinator", "ids", "count", "broker"
]
"""What stands in place of a value: one word for all of them; one for those near the present; the
name that a program gave it; the fields of batches; the coordinator; a text without ids; how many
there are; with KRaft, one word for the ids of the brokers that the answer lists."""

ZNODE: Final = -1
"""In place of an API key: what brokers and controller keep in ZooKeeper."""

INTERNAL: Final = "counts metadata records and elections, most of which are internal"
ANY_BROKER: Final = "KRaft names any live broker, since each forwards to the controller"
HASHED: Final = "Kafka gathers them in a hash map"
RESOURCES: Final = "older releases hash resources by the address of their type"


class Chance(NamedTuple):
    api_key: int
    path: str
    how: How
    why: str


class Unordered(NamedTuple):
    """Rows are sorted by ``fields``; without fields, by all that they say."""

    api_key: int
    path: str
    fields: tuple[str, ...]
    why: str


class Late(NamedTuple):
    """Rows that have nothing to say may be absent beside others."""

    api_key: int
    path: str
    why: str


def listed_brokers(answer: Mapping[str, Any]) -> frozenset[int]:
    """The ids of the brokers that an answer, as JSON, lists with the controller."""
    if "controllerId" not in answer:
        return frozenset()
    return frozenset(each.get("nodeId", each.get("brokerId")) for each in answer["brokers"])


CHANCE: Final = (
    Chance(0, "nodeEndpoints[].port", "hide", "a free port"),
    Chance(0, "responses[].partitionResponses[].logAppendTimeMs", "clock", "the broker's clock"),
    Chance(1, "nodeEndpoints[].port", "hide", "a free port"),
    Chance(
        1,
        "responses[].partitions[].abortedTransactions[].producerId",
        "producer",
        "counted by Kafka",
    ),
    Chance(1, "responses[].partitions[].records", "records", "batches are compared field by field"),
    Chance(1, "sessionId", "session", "drawn at random"),
    Chance(2, "topics[].partitions[].timestamp", "clock", "the broker's clock, for LogAppendTime"),
    Chance(3, "brokers[].port", "hide", "a free port"),
    Chance(3, "clusterId", "hide", "drawn at random"),
    Chance(3, "controllerId", "broker", ANY_BROKER),
    Chance(10, "coordinators[].nodeId", "coordinator", "Kafka places internal topics at random"),
    Chance(10, "coordinators[].port", "hide", "a free port"),
    Chance(10, "nodeId", "coordinator", "Kafka places the internal topics at random"),
    Chance(10, "port", "hide", "a free port"),
    Chance(15, "groups[].members[].clientHost", "hide", "the address of the client's socket"),
    Chance(18, "finalizedFeaturesEpoch", "hide", INTERNAL),
    Chance(22, "producerId", "producer", "counted by Kafka over all sessions"),
    Chance(26, "producerId", "producer", "counted by Kafka"),
    Chance(27, "markers[].producerId", "producer", "counted by Kafka"),
    Chance(35, "results[].logDir", "hide", "a folder of this run"),
    Chance(35, "results[].totalBytes", "hide", "of this machine's disk"),
    Chance(35, "results[].usableBytes", "hide", "of this machine's disk"),
    Chance(55, "topics[].partitions[].leaderEpoch", "hide", INTERNAL),
    Chance(55, "topics[].partitions[].highWatermark", "hide", INTERNAL),
    Chance(55, "topics[].partitions[].currentVoters[].logEndOffset", "hide", INTERNAL),
    Chance(55, "topics[].partitions[].currentVoters[].lastFetchTimestamp", "hide", INTERNAL),
    Chance(55, "topics[].partitions[].currentVoters[].lastCaughtUpTimestamp", "hide", INTERNAL),
    Chance(55, "topics[].partitions[].currentVoters[].replicaDirectoryId", "hide", INTERNAL),
    Chance(55, "nodes[].listeners[].port", "hide", "a free port"),
    Chance(60, "brokers[].port", "hide", "a free port"),
    Chance(60, "clusterId", "hide", "random"),
    Chance(60, "controllerId", "broker", ANY_BROKER),
    Chance(61, "topics[].partitions[].activeProducers[].lastTimestamp", "clock", "the clock"),
    Chance(
        61, "topics[].partitions[].activeProducers[].producerId", "producer", "counted by Kafka"
    ),
    Chance(65, "transactionStates[].producerId", "producer", "counted by Kafka"),
    Chance(65, "transactionStates[].transactionStartTimeMs", "clock", "the clock"),
    Chance(66, "transactionStates[].producerId", "producer", "counted by Kafka"),
    Chance(69, "groups[].members[].clientHost", "hide", "the address of the client's socket"),
    Chance(
        76, "assignment.topicPartitions[].partitions", "count", "dealt by a hash map of members"
    ),
    Chance(77, "groups[].members[].clientHost", "hide", "the address of the client's socket"),
    Chance(
        77,
        "groups[].members[].assignment.topicPartitions[].partitions",
        "count",
        "dealt by a hash map of members",
    ),
    Chance(78, "nodeEndpoints[].port", "hide", "a free port"),
    Chance(78, "responses[].partitions[].records", "records", "batches are compared by fields"),
    Chance(79, "nodeEndpoints[].port", "hide", "a free port"),
    Chance(80, "errorMessage", "ids", "the ids of a cluster and its directories are random"),
    Chance(81, "errorMessage", "ids", "the ids of a cluster and its directories are random"),
    Chance(89, "groups[].members[].clientHost", "hide", "the address of the client's socket"),
)

UNORDERED: Final = (
    Unordered(ZNODE, "isr", (), "replicas that catch up together, in any order"),
    Unordered(0, "responses", ("name", "topicId"), HASHED),
    Unordered(0, "responses[].partitionResponses", ("index",), HASHED),
    Unordered(1, "responses", ("topic", "topicId"), "partitions with errors come first, or last"),
    Unordered(2, "topics", ("name",), HASHED),
    Unordered(2, "topics[].partitions", ("partitionIndex",), HASHED),
    Unordered(3, "brokers", ("nodeId",), HASHED),
    Unordered(3, "topics", ("name",), HASHED),
    Unordered(3, "topics[].partitions", ("partitionIndex",), HASHED),
    Unordered(
        3, "topics[].partitions[].isrNodes", (), "replicas that catch up together, in any order"
    ),
    Unordered(8, "topics", ("name", "topicId"), HASHED),
    Unordered(8, "topics[].partitions", ("partitionIndex",), HASHED),
    Unordered(9, "groups", ("groupId",), HASHED),
    Unordered(9, "groups[].topics", ("name", "topicId"), HASHED),
    Unordered(9, "groups[].topics[].partitions", ("partitionIndex",), HASHED),
    Unordered(9, "topics", ("name",), HASHED),
    Unordered(9, "topics[].partitions", ("partitionIndex",), HASHED),
    Unordered(11, "members", ("memberId",), HASHED),
    Unordered(15, "groups", ("groupId",), HASHED),
    Unordered(15, "groups[].members", ("memberId",), HASHED),
    Unordered(16, "groups", ("groupId",), HASHED),
    Unordered(18, "apiKeys", ("apiKey",), "Kafka's order is that of an enum, which changes"),
    Unordered(18, "finalizedFeatures", ("name",), HASHED),
    Unordered(18, "supportedFeatures", ("name",), HASHED),
    Unordered(19, "topics[].configs", ("name",), HASHED),
    Unordered(20, "responses", ("name", "errorCode"), HASHED),
    Unordered(21, "topics", ("name",), HASHED),
    Unordered(21, "topics[].partitions", ("partitionIndex",), HASHED),
    Unordered(23, "topics", ("topic",), HASHED),
    Unordered(23, "topics[].partitions", ("partition",), HASHED),
    Unordered(24, "resultsByTopicV3AndBelow", ("name",), HASHED),
    Unordered(24, "resultsByTopicV3AndBelow[].resultsByPartition", ("partitionIndex",), HASHED),
    Unordered(24, "resultsByTransaction", ("transactionalId",), HASHED),
    Unordered(24, "resultsByTransaction[].topicResults", ("name",), HASHED),
    Unordered(
        24, "resultsByTransaction[].topicResults[].resultsByPartition", ("partitionIndex",), HASHED
    ),
    Unordered(27, "markers", ("producerId",), HASHED),
    Unordered(27, "markers[].topics", ("name",), HASHED),
    Unordered(27, "markers[].topics[].partitions", ("partitionIndex",), HASHED),
    Unordered(28, "topics", ("name", "topicId"), HASHED),
    Unordered(28, "topics[].partitions", ("partitionIndex",), HASHED),
    Unordered(29, "resources", (), HASHED),
    Unordered(29, "resources[].acls", (), HASHED),
    Unordered(31, "filterResults[].matchingAcls", (), "KRaft hashes rules by random ids"),
    Unordered(32, "results", ("resourceType", "resourceName"), RESOURCES),
    Unordered(32, "results[].configs", ("name",), HASHED),
    Unordered(33, "responses", ("resourceType", "resourceName"), RESOURCES),
    Unordered(34, "results", ("topicName",), HASHED),
    Unordered(34, "results[].partitions", ("partitionIndex",), HASHED),
    Unordered(35, "results[].topics", ("name",), HASHED),
    Unordered(35, "results[].topics[].partitions", ("partitionIndex",), HASHED),
    Unordered(37, "results", ("name",), HASHED),
    Unordered(42, "results", ("groupId",), HASHED),
    Unordered(43, "replicaElectionResults", ("topic",), HASHED),
    Unordered(43, "replicaElectionResults[].partitionResult", ("partitionId",), HASHED),
    Unordered(44, "responses", ("resourceType", "resourceName"), RESOURCES),
    Unordered(46, "topics", ("name",), HASHED),
    Unordered(46, "topics[].partitions", ("partitionIndex",), HASHED),
    Unordered(47, "topics", ("name",), HASHED),
    Unordered(47, "topics[].partitions", ("partitionIndex",), HASHED),
    Unordered(48, "entries", (), HASHED),
    Unordered(48, "entries[].entity", ("entityType",), HASHED),
    Unordered(48, "entries[].values", ("key",), HASHED),
    Unordered(49, "entries", (), HASHED),
    Unordered(49, "entries[].entity", ("entityType",), HASHED),
    Unordered(50, "results", ("user",), HASHED),
    Unordered(50, "results[].credentialInfos", ("mechanism",), HASHED),
    Unordered(51, "results", ("user",), HASHED),
    Unordered(60, "brokers", ("brokerId",), HASHED),
    Unordered(61, "topics[].partitions[].activeProducers", ("producerId",), HASHED),
    Unordered(65, "transactionStates[].topics", ("topic",), HASHED),
    Unordered(66, "transactionStates", ("transactionalId",), HASHED),
    Unordered(68, "assignment.topicPartitions", ("topicId",), HASHED),
    Unordered(68, "assignment.topicPartitions[].partitions", (), HASHED),
    Unordered(69, "groups", ("groupId",), HASHED),
    Unordered(69, "groups[].members", ("memberId", "memberEpoch", "subscribedTopicNames"), HASHED),
    Unordered(69, "groups[].members[].assignment.topicPartitions", ("topicName",), HASHED),
    Unordered(69, "groups[].members[].assignment.topicPartitions[].partitions", (), HASHED),
    Unordered(69, "groups[].members[].subscribedTopicNames", (), HASHED),
    Unordered(69, "groups[].members[].targetAssignment.topicPartitions", ("topicName",), HASHED),
    Unordered(69, "groups[].members[].targetAssignment.topicPartitions[].partitions", (), HASHED),
    Unordered(74, "configResources", ("resourceType", "resourceName"), HASHED),
    Unordered(
        75, "topics[].partitions[].isrNodes", (), "replicas that catch up together, in any order"
    ),
    Unordered(77, "groups[].members", ("memberId",), HASHED),
    Unordered(77, "groups[].members[].subscribedTopicNames", (), HASHED),
    *(Unordered(key, "results", ("topicId",), "hashed by random ids") for key in range(83, 88)),
    Unordered(88, "activeTasks", ("subtopologyId",), HASHED),
    Unordered(88, "partitionsByUserEndpoint[].activePartitions", ("topic",), HASHED),
    Unordered(89, "groups[].members", ("memberId",), HASHED),
)

LATE: Final = (
    Late(78, "responses[].partitions", "a broker answers with what it has loaded by then"),
)
