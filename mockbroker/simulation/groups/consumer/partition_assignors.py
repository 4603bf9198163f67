"""The assignors of the broker, as pure functions.

``uniform`` balances all partitions and leaves with a member what it has, as far as it can;
``range_`` deals each topic in ranges, so that topics with as many partitions and the same
subscribers are dealt alike. Numbers of partitions are Kafka's. Kafka deals in the order of Java's
hash tables, here members come by id and topics by name, so another member may get the larger share.

Racks are no argument: Kafka's assignors do not weigh them either.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final, TypeAlias

import msgspec

from mockbroker.simulation.groups.modern.partitions import Assignment, TopicIdPartition

__all__ = ["ASSIGNORS", "Assignor", "Subscriber", "range_", "uniform"]

_NOTHING: Final[Assignment] = frozenset()
_MOST_ROUNDS: Final = 16


class Subscriber(msgspec.Struct, frozen=True):
    """A member as assignors see it. ``topics`` are ids of topics that exist; ``current`` is its
    former target."""

    topics: frozenset[uuid.UUID]
    instance_id: str | None = None
    current: Assignment = _NOTHING


Assignor: TypeAlias = Callable[
    [Mapping[str, Subscriber], Mapping[uuid.UUID, int]], dict[str, Assignment]
]
"""(members by id, number of partitions by topic in the order of dealing) -> targets by member."""


def _partitions(
    topics: frozenset[uuid.UUID], counts: Mapping[uuid.UUID, int]
) -> list[TopicIdPartition]:
    return [(each, index) for each in counts if each in topics for index in range(counts[each])]


# ---- range ---------------------------------------------------------------------------------------


def range_(
    members: Mapping[str, Subscriber], counts: Mapping[uuid.UUID, int]
) -> dict[str, Assignment]:
    """Deal each topic to its subscribers in ranges, static members first."""

    def place(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    order = sorted(members, key=place)
    dealt: dict[str, set[TopicIdPartition]] = {member_id: set() for member_id in order}
    for topic, count in counts.items():
        subscribers = [each for each in order if topic in members[each].topics]
        start = 0
        for number, member_id in enumerate(subscribers):
            size = count // len(subscribers) + (number < count % len(subscribers))
            dealt[member_id].update((topic, index) for index in range(start, start + size))
            start += size
    return {member_id: frozenset(partitions) for member_id, partitions in dealt.items()}


# ---- uniform -------------------------------------------------------------------------------------


def uniform(
    members: Mapping[str, Subscriber], counts: Mapping[uuid.UUID, int]
) -> dict[str, Assignment]:
    """Balance the number of partitions, and move as few as possible."""
    if len({member.topics for member in members.values()}) <= 1:
        return _share_alike(members, counts)
    return _Balance(members, counts).assign()


def _share_alike(
    members: Mapping[str, Subscriber], counts: Mapping[uuid.UUID, int]
) -> dict[str, Assignment]:
    """All members have one subscription: each gets the quota, and as many as necessary one more:
    those that have it already, then the last ones."""
    order = sorted(members)
    if not order:
        return {}
    every = _partitions(members[order[0]].topics, counts)
    places = {tp: place for place, tp in enumerate(every)}
    taken = {tp for member in members.values() for tp in member.current}
    free = [tp for tp in every if tp not in taken]
    least, larger = divmod(len(every), len(order))
    targets: dict[str, set[TopicIdPartition]] = {}
    room: list[tuple[str, int]] = []
    for number, member_id in enumerate(order):
        has_larger = larger > 0
        quota = least + has_larger
        present = sorted(
            (tp for tp in members[member_id].current if tp in places), key=places.__getitem__
        )
        targets[member_id] = set(present[:quota])
        free += present[quota:]
        left = quota - len(targets[member_id])
        if left and has_larger and len(order) - number > larger:
            # A later member can have the larger share.
            left -= 1
            has_larger = False
        if left:
            room.append((member_id, left))
        larger -= has_larger
    rest = iter(free)
    for member_id, left in room:
        targets[member_id].update(islice(rest, left))
    return {member_id: frozenset(partitions) for member_id, partitions in targets.items()}


class _Balance:
    """Members whose subscriptions differ: the least loaded subscriber gets the next partition, then
    topics are balanced in rounds until nothing moves."""

    def __init__(self, members: Mapping[str, Subscriber], counts: Mapping[uuid.UUID, int]) -> None:
        self._order = sorted(members)
        self._counts = counts
        self._subscribers = {
            topic: subscribers
            for topic in counts
            if (subscribers := [m for m in self._order if topic in members[m].topics])
        }
        self._targets = {
            member_id: {tp for tp in member.current if tp[0] in member.topics and self._exists(tp)}
            for member_id, member in members.items()
        }
        self._owners = {tp: m for m, partitions in self._targets.items() for tp in partitions}

    def _exists(self, tp: TopicIdPartition) -> bool:
        return tp[1] < self._counts.get(tp[0], 0)

    def assign(self) -> dict[str, Assignment]:
        # Topics with most partitions for each of their subscribers come first.
        topics = sorted(
            self._subscribers,
            key=lambda topic: (
                -self._counts[topic] / len(self._subscribers[topic]),
                len(self._subscribers[topic]),
            ),
        )
        for topic in topics:
            for index in range(self._counts[topic]):
                if (topic, index) not in self._owners:
                    self._give((topic, index), self._least_loaded(topic))
        for _ in range(_MOST_ROUNDS):
            if not sum(self._balance(topic) for topic in topics):
                break
        return {member_id: frozenset(partitions) for member_id, partitions in self._targets.items()}

    def _load(self, member_id: str) -> int:
        return len(self._targets[member_id])

    def _least_loaded(self, topic: uuid.UUID) -> str:
        return min(self._subscribers[topic], key=self._load)

    def _give(self, tp: TopicIdPartition, member_id: str) -> None:
        former = self._owners.get(tp)
        if former is not None:
            self._targets[former].discard(tp)
        self._targets[member_id].add(tp)
        self._owners[tp] = member_id

    def _balance(self, topic: uuid.UUID) -> bool:
        """Move partitions of a topic between its subscribers; return whether any moved."""
        moved = False
        while True:
            least = self._least_loaded(topic)
            givers = [m for m in self._subscribers[topic] if self._has(m, topic)]
            most = max(givers, key=self._load, default=least)
            if self._load(most) - self._load(least) <= 1:
                return moved
            last = max(index for each, index in self._targets[most] if each == topic)
            self._give((topic, last), least)
            moved = True

    def _has(self, member_id: str, topic: uuid.UUID) -> bool:
        return any(each == topic for each, _ in self._targets[member_id])


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": uniform, "range": range_}
"""By the names that clients send."""
