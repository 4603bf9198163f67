"""Partition reassignments as KRaft does them (KIP-455 as shipped, KIP-860): start, cancel, list.

A reassignment needs nothing but three lists of the partition: ``replicas`` already holds old and
new at once, ``adding`` and ``removing`` say which is which. It completes inside whatever change
makes it complete (``partition_change``), be that this call or a replica joining the ISR.

Error texts are those of Kafka 3.9 to 4.4 (``ReplicationControlManager``). Every row is decided on
from the state before the request, so a partition named twice is changed twice over (``redone``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kproto.error_codes import ErrorCode
from mockbroker.assignments import check_assignment
from mockbroker.configs import unclean_election_enabled
from mockbroker.controller import Controller
from mockbroker.errors import Refusal
from mockbroker.model import Partition, Topic
from mockbroker.partition_change import Election, next_partition, redone
from mockbroker.results import (
    AlterReassignmentsResult,
    ListReassignmentsResult,
    OngoingReassignment,
    OngoingTopic,
    PartitionResult,
    TopicResult,
)

__all__ = ["alter", "list_ongoing"]

_CAUSE = "alter_partition_reassignments"


def alter(
    controller: Controller,
    topics: Sequence[tuple[str, Sequence[tuple[int, Sequence[int] | None]]]],
    *,
    allow_replication_factor_change: bool,
) -> AlterReassignmentsResult:
    """AlterPartitionReassignments. Each partition stands alone: a refused one stops no other."""
    known = dict(controller.state.topics)
    results = tuple(
        TopicResult(
            name,
            tuple(
                _alter_partition(
                    controller,
                    known,
                    name,
                    index,
                    target,
                    guarded=not allow_replication_factor_change,
                )
                for index, target in partitions
            ),
        )
        for name, partitions in topics
    )
    if not results:
        # Answered before the machine is asked, with the response's defaults.
        return AlterReassignmentsResult(0, "", True, ())
    return AlterReassignmentsResult(0, None, allow_replication_factor_change, results)


def _alter_partition(
    controller: Controller,
    known: Mapping[str, Topic],
    name: str,
    index: int,
    target: Sequence[int] | None,
    *,
    guarded: bool,
) -> PartitionResult:
    try:
        partition = _find(known, name, index)
        if target is None:
            after = _cancelled(controller, name, partition)
        else:
            check_assignment(controller, target)
            if guarded:
                _check_replication_factor(partition, len(target))
            after = _retargeted(controller, partition, tuple(target))
    except Refusal as refusal:
        return PartitionResult(index, refusal.code, refusal.message)
    current = controller.state.topics[name].partitions[index]
    controller.change_partition(_CAUSE, name, redone(current, partition, after))
    return PartitionResult(index)


def _find(known: Mapping[str, Topic], name: str, index: int) -> Partition:
    topic = known.get(name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partition(index)
    if partition is None:
        raise Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}."
        )
    return partition


def _check_replication_factor(partition: Partition, wanted: int) -> None:
    """KIP-860's guard: compare with where the partition is heading, in flight or not."""
    current = len(partition.target or partition.replicas)
    if current != wanted:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {current} to {wanted}",
        )


def _retargeted(controller: Controller, partition: Partition, target: tuple[int, ...]) -> Partition:
    """Head for ``target`` from all present replicas, those of an earlier reassignment included.

    Kafka sets each of the two lists only when it has something to put in it. So in flight, a new
    target that adds nothing keeps the earlier ``adding``, and one that drops nothing keeps the
    earlier ``removing``: as observed in its code from 3.9.2 to 4.4.0, and copied on purpose.
    """
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    return next_partition(
        partition,
        controller.is_live,
        replicas=target + removing,
        adding=adding or None,
        removing=removing or None,
        completion=controller.completion,
    )


def _cancelled(controller: Controller, name: str, partition: Partition) -> Partition:
    """Take the adding replicas out again; the order of the others stays as the target had it."""
    if not partition.reassigning:
        raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    unclean_allowed = unclean_election_enabled(controller.state, name)
    replicas = tuple(r for r in partition.replicas if r not in partition.adding)
    isr = tuple(r for r in partition.isr if r not in partition.adding)
    if not isr:
        if not unclean_allowed:
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {name}:{partition.index} because it "
                "would require an unclean leader election.",
            )
        isr = replicas[:1]
    return next_partition(
        partition,
        controller.is_live,
        replicas=replicas,
        isr=isr,
        adding=(),
        removing=(),
        election=Election.UNCLEAN if unclean_allowed else Election.ONLINE,
        completion=controller.completion,
    )


def list_ongoing(
    controller: Controller, topics: Sequence[tuple[str, Sequence[int]]] | None
) -> ListReassignmentsResult:
    """ListPartitionReassignments: only what is in progress; None asks for all, names ascending."""
    known = controller.state.topics
    wanted: Iterable[tuple[Topic, Iterable[int]]]
    if topics is None:
        wanted = ((known[name], range(len(known[name].partitions))) for name in sorted(known))
    else:
        wanted = ((known[name], indexes) for name, indexes in topics if name in known)
    rows = (OngoingTopic(topic.name, _ongoing(topic, indexes)) for topic, indexes in wanted)
    return ListReassignmentsResult(0, None, tuple(row for row in rows if row.partitions))


def _ongoing(topic: Topic, indexes: Iterable[int]) -> tuple[OngoingReassignment, ...]:
    found = (topic.partition(index) for index in indexes)
    return tuple(
        OngoingReassignment(p.index, p.replicas, p.adding, p.removing)
        for p in found
        if p is not None and p.reassigning
    )
