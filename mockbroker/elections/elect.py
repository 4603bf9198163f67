"""ElectLeaders (43; KIP-183, KIP-460): who is elected, who is not, and how the era words it.

Decided on the spot, in the state at hand. When the answer goes out is ``queue``'s to say.
Without eligible leader replicas, an unclean election takes the first live replica in replica order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kproto.error_codes import ErrorCode, message
from mockbroker.elections.eras import ElectionEra
from mockbroker.elections.partition_change import Election, next_partition, redone
from mockbroker.errors import Refusal
from mockbroker.state.controller import Controller
from mockbroker.state.model import NO_LEADER, Topic, TopicPartition
from mockbroker.state.results import ElectLeadersResult, PartitionResult, TopicResult

__all__ = ["PREFERRED", "UNCLEAN", "Elected", "Wanted", "elect", "refused", "unknown_type"]

PREFERRED = 0
UNCLEAN = 1

Wanted: TypeAlias = Sequence[tuple[str, Sequence[int]]]
"""[(topic name, [partition index])]"""


@dataclass(slots=True)
class Elected:
    """``leaders`` are those elected just now: what has to be seen before the answer is true."""

    result: ElectLeadersResult
    leaders: dict[TopicPartition, int] = field(default_factory=dict)


def elect(
    controller: Controller,
    era: ElectionEra,
    election_type: int,
    wanted: Wanted,
    *,
    everything: bool = False,
    cause: str = "elect_leaders",
) -> Elected:
    """One row for each partition asked for, decided on from the state before the request.

    ``everything``: nobody named the partitions, so those that need no election are left out. In
    KRaft's answer their topic stays, with an empty list.
    """
    elected = Elected(ElectLeadersResult(0, ()))
    known = dict(controller.state.topics)
    rows = []
    for name, indexes in _asked(era, wanted):
        found = [
            _elect_one(controller, era, known, election_type, (name, index), cause, elected.leaders)
            for index in indexes
        ]
        if everything:
            found = [row for row in found if row.error_code != ErrorCode.ELECTION_NOT_NEEDED]
        if found or not era.each_once:
            rows.append(TopicResult(name, tuple(found)))
    elected.result = ElectLeadersResult(0, tuple(rows))
    return elected


def unknown_type(
    era: ElectionEra, election_type: int, wanted: Wanted | None
) -> ElectLeadersResult | None:
    """The refusal of an election type that does not exist, None for one that does: the error at
    the top and, so that clients see it, at each partition they named."""
    if election_type in (PREFERRED, UNCLEAN):
        return None
    code, text = era.unknown_type, era.unknown_type_text
    if text is not None:
        text = text.format(election_type=election_type)
    # ZooKeeper brokers trip over it before they have looked at the partitions, and echo them.
    named = (wanted or ()) if era.each_once else _distinct(wanted or ())
    topics = (
        TopicResult(name, tuple(PartitionResult(index, code, text) for index in indexes))
        for name, indexes in named
    )
    return ElectLeadersResult(code, tuple(topics))


def refused(era: ElectionEra, wanted: Wanted, code: int) -> ElectLeadersResult:
    """Nothing was looked at: the same code, without a text, for every partition."""
    topics = (
        TopicResult(name, tuple(PartitionResult(index, code) for index in indexes))
        for name, indexes in _asked(era, wanted)
        if indexes or not era.each_once
    )
    return ElectLeadersResult(0, tuple(topics))


def _asked(era: ElectionEra, wanted: Wanted) -> Wanted:
    return _distinct(wanted) if era.each_once else wanted


def _distinct(topics: Iterable[tuple[str, Iterable[int]]]) -> list[tuple[str, list[int]]]:
    """Fold repeated topics and partitions, keeping the order of first mention."""
    folded: dict[str, dict[int, None]] = {}
    for name, indexes in topics:
        folded.setdefault(name, {}).update(dict.fromkeys(indexes))
    return [(name, list(indexes)) for name, indexes in folded.items()]


def _elect_one(
    controller: Controller,
    era: ElectionEra,
    known: Mapping[str, Topic],
    election_type: int,
    tp: TopicPartition,
    cause: str,
    leaders: dict[TopicPartition, int],
) -> PartitionResult:
    try:
        leader = _hold_election(controller, era, known, election_type, tp, cause)
    except Refusal as refusal:
        return PartitionResult(tp[1], refusal.code, refusal.message)
    if leader is not None:
        leaders[tp] = leader
    return PartitionResult(tp[1])


def _hold_election(
    controller: Controller,
    era: ElectionEra,
    known: Mapping[str, Topic],
    election_type: int,
    tp: TopicPartition,
    cause: str,
) -> int | None:
    """The new leader, None where none was needed and that is no error."""
    name, index = tp
    topic = known.get(name)
    if topic is None:
        deleted = controller.state.deleting.get(name)
        if era.being_deleted is not None and deleted and deleted.partition(index):
            raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, era.being_deleted)
        text = era.unknown_topic.format(name=name)
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    partition = topic.partition(index)
    if partition is None:
        text = era.unknown_partition.format(name=name, index=index)
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    if election_type == PREFERRED:
        satisfied = partition.leader == partition.preferred_leader
        election, failure = Election.PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        satisfied = partition.leader != NO_LEADER
        election, failure = Election.UNCLEAN, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    if satisfied:
        if era.not_needed is ErrorCode.NONE:
            return None
        raise Refusal(era.not_needed, era.not_needed_text)
    after = next_partition(
        partition, controller.is_live, election=election, completion=controller.completion
    )
    if after == partition:
        strategy = era.strategies[election_type]
        text = era.not_elected or message(failure)
        raise Refusal(failure, text.format(name=name, index=index, strategy=strategy))
    current = controller.state.topics[name].partitions[index]
    controller.change_partition(cause, name, redone(current, partition, after))
    return after.leader
