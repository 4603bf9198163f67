"""How controllers of each kind and release administer topics: which checks they make, in which
order, and their texts.

``administration``, ``checks`` and ``assignments`` apply it. Codes and texts are those that Kafka
3.9.2 (ZooKeeper) and 4.4.0 (KRaft) send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.simulation.releases import facts, fixes
from mockbroker.simulation.releases.release import Release

__all__ = [
    "KRAFT_LISTED",
    "AdministrationAnswers",
    "CreationAnswers",
    "DeletionAnswers",
    "GrowthAnswers",
    "ListedReplicas",
    "TopicCheck",
    "administration_answers",
]

TopicCheck: TypeAlias = Literal[
    "absent", "nulls", "counts", "spread", "name", "collisions", "listed", "values"
]
"""The checks of CreateTopics: no topic has the name; no config is null; counts and replica lists
are not both given; the counts are possible (this chooses the replicas); the name is valid; it does
not collide with another; the listed replicas are possible; the configs are valid."""

ListCheck: TypeAlias = Literal["miscounted", "empty", "brokers", "unknown", "repeated", "length"]
"""The checks of replica lists: there is one list for each partition; no list is empty; each broker
in turn is known and not repeated, ids ascending; all brokers are known; no broker is repeated;
every list has the required length."""


class ListedReplicas(msgspec.Struct, frozen=True):
    """How a release checks replica lists.

    ``checks`` run in this order: all of them on one list after another, or each of them on all
    lists if ``together``. ``texts`` are formatted with {index}, {broker_id}, {broker_ids}, {count},
    {expected}, {lists}, {added}, {indexes}, {counts} and {assignment}, the lists as Scala prints
    them.
    """

    checks: tuple[ListCheck, ...]
    texts: Mapping[ListCheck, str]
    together: bool = False


class CreationAnswers(msgspec.Struct, frozen=True):
    """How a release answers CreateTopics (19).

    ``checks`` run in this order. ``repeated`` is the text for a topic that is requested twice;
    ``repeats_results``: such a topic has a result for each time. ``ids_drawn``: topics that are
    only validated have an id in the result. ``reserved`` is the error for ``__cluster_metadata``,
    ``reserved_first`` whether that counts for a topic that is requested twice. ``nulls`` is the
    error for configs without a value. Both are None if there is no such error. ``has_defaults``: a
    count of -1 is the broker's default; ``partitions_first``: their number is checked before the
    replication factor. ``values_fail``: a value of a wrong type is an unexpected error.
    ``only_validates``: nothing is created if the request says so. ``lists_configs``: the result has
    the configs of the topic.

    Texts are formatted with ``repeated``: {client}, the id of the client, and {names} of all
    such topics; ``both_given``: {field}, the first count given beside replica lists;
    ``few_brokers``: {factor} and {brokers}; ``no_broker_is_live``: {factor}; ``exists``: {name};
    ``collides``: {name} and {others}; ``marked``, for a topic that is being deleted, None if it is
    not refused: {name}; ``numbered_twice``, None if the last list counts: {index}; ``nulls``:
    {names}.
    """

    checks: tuple[TopicCheck, ...]
    repeated: str
    repeats_results: bool
    ids_drawn: bool
    reserved: tuple[ErrorCode, str] | None
    reserved_first: bool
    nulls: tuple[ErrorCode, str | None] | None
    most_partitions: int | None
    both_given: str
    bad_factor: str
    bad_count: str
    few_brokers: str
    no_broker_is_live: str
    collides: str
    marked: str | None
    numbered_twice: str | None
    listed: ListedReplicas
    has_defaults: bool = True
    partitions_first: bool = False
    values_fail: bool = False
    only_validates: bool = True
    lists_configs: bool = True
    exists: str = "Topic '{name}' already exists."


class GrowthAnswers(msgspec.Struct, frozen=True):
    """How a release answers CreatePartitions (37).

    ``repeated`` is the text for a topic that is requested twice. ``continued``: chosen replicas
    continue from partition 0; otherwise they start at broker p mod N as for new topics. ``model``
    is the partition that determines the replication factor: partition 0, or the first one that the
    hash table of KRaft's controller iterates. ``awaits_leaders``: the response waits until every
    partition of the topic has a leader. ``quota_first``: replica lists are checked after the quota
    of changes has been taken. ``refuses_excess``: more partitions than ``most_partitions`` refuse
    the request; otherwise the topic that exceeds them, and those after it, fail.
    ``only_validates``: nothing changes if the request says so.

    ``moving`` is the text for any topic while some partition is reassigned, None if it may grow.

    Texts are formatted with ``in_flight``, None if a topic may grow during a reassignment: {name};
    ``unknown_topic``: {name}; ``fewer`` and ``as_many``: {name}, {present} and {wanted}.
    """

    repeated: str
    most_partitions: int | None
    refuses_excess: bool
    moving: str | None
    in_flight: str | None
    unknown_topic: str | None
    fewer: str
    as_many: str
    continued: bool
    model: Literal["partition 0", "hashed"]
    awaits_leaders: bool
    quota_first: bool
    listed: ListedReplicas
    only_validates: bool = True


class DeletionAnswers(msgspec.Struct, frozen=True):
    """How a release answers DeleteTopics (20).

    ``explains``: errors have texts. ``repeated_refused``: a topic that is requested twice is an
    error, reported once; otherwise it is deleted. ``ids_found``: the result of a topic deleted by
    name has its id. ``neither`` is the error for a topic with neither
    name nor id. ``repeats_results``: a topic that is requested twice, where that is not an error,
    has a result for each time.
    """

    explains: bool
    repeated_refused: bool
    repeats_results: bool
    ids_found: bool
    neither: ErrorCode


class AdministrationAnswers(msgspec.Struct, frozen=True):
    """How controllers administer topics.

    ``knows_only_live``: a broker that is not live is unknown, since its znode is gone. ``waits``:
    CreateTopics, CreatePartitions and DeleteTopics are answered once they are done, so a request
    without a time-out fails with REQUEST_TIMED_OUT (7).
    """

    creation: CreationAnswers
    growth: GrowthAnswers
    deletion: DeletionAnswers
    knows_only_live: bool
    waits: bool


_RESERVED: Final = (
    ErrorCode.INVALID_REQUEST,
    "Creation of internal topic __cluster_metadata is prohibited.",
)
_FORMER_RESERVED: Final = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
_NULLS: Final = (ErrorCode.INVALID_CONFIG, "Null value not supported for topic configs: {names}")


# ---- KRaft ---------------------------------------------------------------------------------------

KRAFT_LISTED: Final = ListedReplicas(
    checks=("empty", "brokers", "length"),
    texts={
        "empty": "The manual partition assignment includes an empty replica list.",
        "unknown": "The manual partition assignment includes broker {broker_id}, "
        "but no such broker is registered.",
        "repeated": "The manual partition assignment includes the broker {broker_id} "
        "more than once.",
        "length": "The manual partition assignment includes a partition with {count} replica(s), "
        "but this is not consistent with previous partitions, which have {expected} replica(s).",
        "miscounted": "Attempted to add {added} additional partition(s), but only {lists} "
        "assignment(s) were specified.",
    },
)

_KRAFT: Final = AdministrationAnswers(
    creation=CreationAnswers(
        checks=("absent", "name", "collisions", "nulls", "values", "counts", "listed", "spread"),
        repeated="Duplicate topic name.",
        repeats_results=False,
        ids_drawn=True,
        reserved=_RESERVED,
        reserved_first=True,
        nulls=_NULLS,
        most_partitions=10_000,
        both_given="A manual partition assignment was specified, but {field} was not set to -1.",
        bad_factor="Replication factor must be larger than 0, or -1 to use the default value.",
        bad_count="Number of partitions was set to an invalid non-positive value.",
        few_brokers="Unable to replicate the partition {factor} time(s): The target replication "
        "factor of {factor} cannot be reached because only {brokers} broker(s) are registered or "
        "some brokers have all their log directories cordoned.",
        no_broker_is_live="Unable to replicate the partition {factor} time(s): "
        "All brokers are currently fenced, or have all their log directories cordoned.",
        collides="Topic '{name}' collides with existing topic: {others}",
        marked=None,
        numbered_twice="Found multiple manual partition assignments for partition {index}",
        listed=KRAFT_LISTED,
    ),
    growth=GrowthAnswers(
        repeated="Duplicate topic name.",
        most_partitions=10_000,
        refuses_excess=True,
        moving=None,
        in_flight=None,
        unknown_topic=None,
        fewer="The topic {name} currently has {present} partition(s); "
        "{wanted} would not be an increase.",
        as_many="Topic already has {present} partition(s).",
        continued=False,
        model="hashed",
        awaits_leaders=False,
        quota_first=True,
        listed=replace(KRAFT_LISTED, checks=("miscounted", *KRAFT_LISTED.checks)),
    ),
    deletion=DeletionAnswers(
        explains=True,
        repeated_refused=True,
        repeats_results=False,
        ids_found=True,
        neither=ErrorCode.INVALID_REQUEST,
    ),
    knows_only_live=False,
    waits=False,
)
# ---- ZooKeeper -----------------------------------------------------------------------------------

_MOST_REPLICAS: Final = "Replication factor: {factor} larger than available brokers: {brokers}."
_FORMER_MOST_REPLICAS: Final = (
    "replication factor: {factor} larger than available brokers: {brokers}"
)

_ZOOKEEPER: Final = AdministrationAnswers(
    creation=CreationAnswers(
        checks=("absent", "nulls", "counts", "spread", "name", "collisions", "listed", "values"),
        repeated="Found multiple entries for this topic.",
        repeats_results=True,
        ids_drawn=False,
        reserved=_RESERVED,
        reserved_first=True,
        nulls=_NULLS,
        most_partitions=None,
        both_given="Both numPartitions or replicationFactor and replicasAssignments were set. "
        "Both cannot be used at the same time.",
        bad_factor="Replication factor must be larger than 0.",
        bad_count="Number of partitions must be larger than 0.",
        few_brokers=_MOST_REPLICAS,
        no_broker_is_live=_MOST_REPLICAS,
        collides="Topic '{name}' collides with existing topics: {others}",
        marked="Topic '{name}' is marked for deletion.",
        numbered_twice=None,
        listed=ListedReplicas(
            checks=("length", "repeated"),
            texts={
                "length": "All partitions should have the same number of replicas",
                "repeated": "Duplicate replica assignment found: {assignment}",
            },
            together=True,
        ),
    ),
    growth=GrowthAnswers(
        repeated="Duplicate topic in request.",
        most_partitions=None,
        refuses_excess=False,
        moving=None,
        in_flight="A partition reassignment is in progress for the topic '{name}'.",
        unknown_topic="The topic '{name}' does not exist.",
        fewer="Topic currently has {present} partitions, which is higher than the requested "
        "{wanted}.",
        as_many="Topic already has {present} partitions.",
        continued=True,
        model="partition 0",
        awaits_leaders=True,
        quota_first=False,
        listed=ListedReplicas(
            checks=("unknown", "miscounted", "empty", "repeated", "length"),
            texts={
                "unknown": "Unknown broker(s) in replica assignment: {broker_ids}.",
                "miscounted": "Increasing the number of partitions by {added} but {lists} "
                "assignments provided.",
                "empty": "Cannot have replication factor of 0 for partition id {index}.",
                "repeated": "Duplicate brokers not allowed in replica assignment: {replicas} "
                "for partition id {index}.",
                "length": "Inconsistent replication factor between partitions, partition 0 has "
                "{expected} while partitions [{indexes}] have replication factors [{counts}], "
                "respectively.",
            },
            together=True,
        ),
    ),
    deletion=DeletionAnswers(
        explains=False,
        repeated_refused=False,
        repeats_results=True,
        ids_found=False,
        neither=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ),
    knows_only_live=True,
    waits=True,
)


_FORMER_NULLS: Final = (
    ErrorCode.INVALID_REQUEST,
    "Null value not supported for topic configs : {names}",
)
_FORMER_REPEATED: Final = (
    "Create topics request from client `{client}` contains multiple entries for the following "
    "topics: {names}"
)
_FORMER_FAILURE: Final = (ErrorCode.UNKNOWN_SERVER_ERROR, None)
_VALUES_FIRST: Final[tuple[TopicCheck, ...]] = (
    "absent", "nulls", "values", "counts", "spread", "name", "collisions", "listed",
)  # fmt: skip
_EXISTENCE_LATER: Final[tuple[TopicCheck, ...]] = (
    "nulls", "values", "counts", "spread", "name", "absent", "collisions", "listed",
)  # fmt: skip

_VALUES_LAST: Final[tuple[TopicCheck, ...]] = (
    "absent", "name", "nulls", "counts", "listed", "spread", "values",
)  # fmt: skip
_EARLY_LISTED: Final = replace(
    KRAFT_LISTED,
    texts={
        **KRAFT_LISTED.texts,
        "unknown": "The manual partition assignment contains node {broker_id}, "
        "but that node is not usable.",
        "repeated": "The manual partition assignment specifies the same node id more than once.",
    },
)

# ---- by release ----------------------------------------------------------------------------------


def administration_answers(release: Release, *, kraft: bool) -> AdministrationAnswers:
    """How the controllers of a release answer. Those in ZooKeeper's time are taken to answer like
    the last one where nothing else is known."""
    found = _KRAFT if kraft else _ZOOKEEPER
    creation = found.creation
    if kraft and not release.has(facts.LOG_DIRS_CORDONED):
        creation = replace(
            creation,
            few_brokers="Unable to replicate the partition {factor} time(s): The target "
            "replication factor of {factor} cannot be reached because only {brokers} broker(s) are "
            "registered.",
            no_broker_is_live="Unable to replicate the partition {factor} time(s): "
            "All brokers are currently fenced.",
        )
    if kraft:
        creation = _kraft_creation(creation, release)
    if not kraft and not release.has(facts.DELETION_MARK_NAMED):
        creation = replace(creation, marked="Topic '{name}' already exists.")
    if not release.has(fixes.KAFKA_13863):
        creation = replace(creation, nulls=None if kraft else _FORMER_NULLS)
    if not release.has(fixes.KAFKA_14358):
        creation = replace(creation, reserved=None)
    elif not release.has(facts.METADATA_TOPIC_EXPLAINED):
        creation = replace(creation, reserved=_FORMER_RESERVED, reserved_first=False)
    if not kraft:
        creation = replace(
            creation,
            has_defaults=release.has(facts.COUNTS_HAVE_DEFAULTS),
            partitions_first=True,
            values_fail=release.has(facts.VALUES_OF_TOPICS_FAIL),
        )
    if not kraft and release.has(facts.CREATED_TOPICS_LISTED):
        creation = replace(creation, repeated=_FORMER_REPEATED, repeats_results=False)
    if not kraft and not release.has(facts.NULL_CONFIGS_REFUSED):
        creation = replace(creation, nulls=_FORMER_FAILURE)
    if not kraft and release.has(facts.CONFIGS_CHECKED_FIRST):
        creation = replace(creation, checks=_VALUES_FIRST)
    if not kraft and not release.has(fixes.KAFKA_8875):
        creation = replace(creation, checks=_EXISTENCE_LATER)
    if not release.has(facts.CREATION_TEXTS_CAPITAL):
        creation = replace(
            creation,
            bad_factor="replication factor must be larger than 0",
            bad_count="number of partitions must be larger than 0",
            few_brokers=_FORMER_MOST_REPLICAS,
            no_broker_is_live=_FORMER_MOST_REPLICAS,
        )
    deletion, growth = found.deletion, found.growth
    if not release.has(facts.DELETED_TOPICS_REPEATED):
        deletion = replace(deletion, repeats_results=False)
    if not kraft and not release.has(fixes.KAFKA_9038):
        growth = replace(growth, moving="A partition reassignment is in progress.")
    if not release.has(facts.EXCESSIVE_GROWTH_NAMED):
        growth = replace(growth, refuses_excess=False)
    if kraft and not release.has(facts.PARTITIONS_ONLY_VALIDATED):
        growth = replace(growth, only_validates=False)
    return replace(found, creation=creation, deletion=deletion, growth=growth)


def _kraft_creation(creation: CreationAnswers, release: Release) -> CreationAnswers:
    """How the controllers of KRaft's previews differ."""
    creation = replace(creation, lists_configs=release.has(facts.NEW_TOPICS_DESCRIBED))
    if not release.has(facts.COLLISIONS_REFUSED):
        checks = tuple(each for each in creation.checks if each != "collisions")
        creation = replace(creation, checks=checks)
    if not release.has(facts.TOPICS_ONLY_VALIDATED):
        creation = replace(
            creation,
            only_validates=False,
            exists="Topic with this name already exists.",
            bad_factor="Replication factor was set to an invalid non-positive value.",
        )
    if release.has(facts.CONFIGS_UNCHECKED):
        creation = replace(creation, checks=_VALUES_LAST)
    if not release.has(facts.REPLICA_LISTS_EXPLAINED):
        few = "Unable to replicate the partition {factor} times: there are only {brokers} usable "
        creation = replace(
            creation,
            few_brokers=f"{few}brokers",
            no_broker_is_live=f"{few.replace('{brokers}', '0')}brokers",
            listed=_EARLY_LISTED,
        )
    return creation
