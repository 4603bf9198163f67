"""The loops over the partitions of requests 45 and 46 that all reassignment controllers share.

A controller supplies what happens to one partition; this module builds the response, one row a
requested partition. Texts are a KRaft controller's; drafts without words of their own use them
too.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.simulation.reassignment.transitions import Brokers
from mockbroker.simulation.state.cluster_parts import (
    Partition,
    PartitionsByTopic,
    Topic,
    TopicPartition,
)
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.results import (
    AlterReassignmentsResult,
    ListReassignmentsResult,
    OngoingReassignment,
    OngoingTopic,
    PartitionResult,
    TopicResult,
)

__all__ = [
    "AlterOne",
    "RequestedTargets",
    "alter_each",
    "find",
    "find_in",
    "list_each",
    "merged",
    "shipped_lists",
    "with_refusal",
]

RequestedTargets: TypeAlias = Sequence[tuple[str, Sequence[tuple[int, Sequence[int] | None]]]]
"""Topics of AlterPartitionReassignments (45): the replicas that each partition is to have, or None
to cancel its reassignment."""
AlterOne: TypeAlias = Callable[[TopicPartition, Brokers | None], None]
"""Starts, changes or cancels the reassignment of one partition. Raises Refusal."""


def find(controller: Controller, tp: TopicPartition) -> Partition:
    """The partition as it is now. Raises Refusal (3)."""
    return find_in(controller.state.topics, tp)


def find_in(topics: Mapping[str, Topic], tp: TopicPartition) -> Partition:
    """Raises Refusal (3)."""
    name, index = tp
    topic = topics.get(name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partition(index)
    if partition is None:
        raise Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}."
        )
    return partition


# ---- AlterPartitionReassignments (45) ------------------------------------------------------------


def alter_each(
    topics: RequestedTargets,
    alter_one: AlterOne,
    *,
    allow_replication_factor_change: bool,
    message: str | None = None,
) -> AlterReassignmentsResult:
    """Call ``alter_one`` for each requested partition in order; a refusal stops no other.

    ``message`` is the response's own error message, beside error 0.
    """
    results = tuple(
        TopicResult(
            name, tuple(_outcome(alter_one, (name, index), target) for index, target in partitions)
        )
        for name, partitions in topics
    )
    return AlterReassignmentsResult(0, message, allow_replication_factor_change, results)


def _outcome(
    alter_one: AlterOne, tp: TopicPartition, target: Sequence[int] | None
) -> PartitionResult:
    try:
        alter_one(tp, None if target is None else tuple(target))
    except Refusal as refusal:
        return PartitionResult(tp[1], refusal.code, refusal.message)
    return PartitionResult(tp[1])


def with_refusal(
    result: AlterReassignmentsResult, tps: Container[TopicPartition], refusal: Refusal
) -> AlterReassignmentsResult:
    """The result with those of ``tps`` refused that had no error before."""
    topics = tuple(
        replace(
            topic,
            partitions=tuple(
                PartitionResult(row.partition_index, refusal.code, refusal.message)
                if not row.error_code and (topic.name, row.partition_index) in tps
                else row
                for row in topic.partitions
            ),
        )
        for topic in result.topics
    )
    return replace(result, topics=topics)


def merged(topics: RequestedTargets) -> RequestedTargets:
    """Each partition once, with the last target requested for it; topics without partitions are
    left out."""
    targets: dict[str, dict[int, Sequence[int] | None]] = {}
    for name, partitions in topics:
        if partitions:
            targets.setdefault(name, {}).update(partitions)
    return [(name, list(each.items())) for name, each in targets.items()]


# ---- ListPartitionReassignments (46) -------------------------------------------------------------


def list_each(
    known: Mapping[str, Topic],
    topics: PartitionsByTopic | None,
    ongoing: Callable[[Partition], OngoingReassignment],
    *,
    message: str | None = None,
) -> ListReassignmentsResult:
    """Those of the requested partitions that are being reassigned; None requests all, by name.

    Topics that do not exist, and topics with nothing to list, are left out.
    """
    requested = (
        [(name, range(len(known[name].partitions))) for name in sorted(known)]
        if topics is None
        else [(name, indexes) for name, indexes in topics if name in known]
    )
    rows = []
    for name, indexes in requested:
        found = (known[name].partition(index) for index in indexes)
        listed = tuple(ongoing(each) for each in found if each is not None and each.reassigning)
        if listed:
            rows.append(OngoingTopic(name, listed))
    return ListReassignmentsResult(0, message, tuple(rows))


def shipped_lists(partition: Partition) -> OngoingReassignment:
    """The lists as Kafka keeps them, on the partition itself."""
    return OngoingReassignment(
        partition.index, partition.replicas, partition.adding, partition.removing
    )
