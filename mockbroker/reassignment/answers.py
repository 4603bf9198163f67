"""What machines answer requests with in the same way: an unknown partition, a refusal, a list.

The texts are a KRaft controller's, which drafts without words of their own borrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.state.controller import Controller
from mockbroker.state.model import Partition, Topic, TopicPartition
from mockbroker.state.results import (
    ListReassignmentsResult,
    OngoingReassignment,
    OngoingTopic,
    PartitionResult,
)

__all__ = ["find", "find_in", "listed", "refused"]


def find(controller: Controller, tp: TopicPartition) -> Partition:
    """As it is now. Raises Refusal (3)."""
    return find_in(controller.state.topics, tp)


def find_in(known: Mapping[str, Topic], tp: TopicPartition) -> Partition:
    """Raises Refusal (3)."""
    name, index = tp
    topic = known.get(name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partition(index)
    if partition is None:
        raise Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}."
        )
    return partition


def refused(index: int, refusal: Refusal) -> PartitionResult:
    return PartitionResult(index, refusal.code, refusal.message)


def listed(
    known: Mapping[str, Topic],
    topics: Sequence[tuple[str, Sequence[int]]] | None,
    row: Callable[[Partition], OngoingReassignment],
) -> ListReassignmentsResult:
    """Of the partitions asked for, None being all, by name, those that are being reassigned."""
    wanted = (
        [(name, range(len(known[name].partitions))) for name in sorted(known)]
        if topics is None
        else [(name, indexes) for name, indexes in topics if name in known]
    )
    rows = []
    for name, indexes in wanted:
        found = (known[name].partition(index) for index in indexes)
        ongoing = tuple(row(each) for each in found if each is not None and each.reassigning)
        if ongoing:
            rows.append(OngoingTopic(name, ongoing))
    return ListReassignmentsResult(0, None, tuple(rows))
