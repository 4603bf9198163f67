"""How the leader of a classic group assigns partitions: members and counts in, partitions out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kspec.reference_client.topics import TopicPartition

__all__ = ["ASSIGNORS", "COOPERATIVE", "Subscriber"]

COOPERATIVE: Final = "cooperative-sticky"


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member, as its JoinGroup request describes it."""

    member_id: str
    topics: Sequence[str]
    owned: frozenset[TopicPartition] = frozenset()


Assignment = dict[str, list[TopicPartition]]


def _partitions(topics: Sequence[str], counts: Mapping[str, int]) -> list[TopicPartition]:
    return [(name, index) for name in sorted(topics) for index in range(counts.get(name, 0))]


def share_by_range(members: Sequence[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """Each topic by itself: ranges of its partitions, longer ones first."""
    found: Assignment = {each.member_id: [] for each in members}
    for name in sorted({name for each in members for name in each.topics}):
        takers = [each.member_id for each in members if name in each.topics]
        share, more = divmod(counts.get(name, 0), len(takers))
        start = 0
        for place, member_id in enumerate(takers):
            end = start + share + (place < more)
            found[member_id] += [(name, index) for index in range(start, end)]
            start = end
    return found


def share_in_turns(members: Sequence[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """All partitions in turn to the members that subscribe to the topic."""
    found: Assignment = {each.member_id: [] for each in members}
    turn = 0
    for tp in _partitions(list({name for each in members for name in each.topics}), counts):
        while tp[0] not in members[turn % len(members)].topics:
            turn += 1
        found[members[turn % len(members)].member_id].append(tp)
        turn += 1
    return found


def share_evenly(members: Sequence[Subscriber], counts: Mapping[str, int]) -> Assignment:
    """Leave partitions with their owners, and move no more than evens out the numbers (KIP-54)."""
    found: Assignment = {each.member_id: [] for each in members}
    topics = list({name for each in members for name in each.topics})
    for tp in _partitions(topics, counts):
        takers = [each for each in members if tp[0] in each.topics]
        owners = [each for each in takers if tp in each.owned]
        taker = min(owners or takers, key=lambda each: len(found[each.member_id]))
        found[taker.member_id].append(tp)
    while move := _move(members, found):
        giver, taker_id, tp = move
        found[giver].remove(tp)
        found[taker_id].append(tp)
    return found


def _move(
    members: Sequence[Subscriber], found: Assignment
) -> tuple[str, str, TopicPartition] | None:
    for taker in members:
        for giver, partitions in found.items():
            if len(partitions) - len(found[taker.member_id]) > 1:
                for tp in reversed(partitions):
                    if tp[0] in taker.topics:
                        return giver, taker.member_id, tp
    return None


ASSIGNORS: Final[Mapping[str, Callable[[Sequence[Subscriber], Mapping[str, int]], Assignment]]] = {
    "range": share_by_range,
    "roundrobin": share_in_turns,
    "sticky": share_evenly,
    COOPERATIVE: share_evenly,
}
