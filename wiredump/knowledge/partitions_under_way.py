"""The reassignments that are under way in a cluster, found by partition, by topic, and by what a
listing should have.

A reassignment takes part in listings once the broker has accepted it. ``unlisted`` returns those
that a listing lacks; it looks only at what the listing is about, and each reassignment that it
looks at is in the listing or ends, so that a listing costs no more than its bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from heapq import heappop, heappush
from typing import Any, Final

from wiredump.knowledge.excerpts import JsonBody
from wiredump.knowledge.partition_reassignment import PartitionReassignment
from wiredump.knowledge.partition_requests import Partition

__all__ = ["PartitionsUnderWay"]


class PartitionsUnderWay:
    """At most one reassignment for each partition."""

    def __init__(self) -> None:
        self._known: dict[Partition, tuple[int, PartitionReassignment]] = {}
        """With a number that has their order."""
        self._topics = _Index(0)
        self._first = self._next = 0
        self._accepted: list[tuple[int, int, PartitionReassignment]] = []
        """A heap by time, of those that ``_listable`` does not have yet."""
        self._listable = _Index(0), _Index(1)
        self._count = 0

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[PartitionReassignment]:
        for _, reassignment in sorted(self._known.values(), key=_order):
            yield reassignment

    def get(self, partition: Partition) -> PartitionReassignment | None:
        """Return the reassignment of a partition."""
        found = self._known.get(partition)
        return None if found is None else found[1]

    def add(self, reassignment: PartitionReassignment) -> None:
        """Add one behind all others. Its partition has none."""
        self._put(self._next, reassignment)
        self._next += 1

    def _put(self, order: int, reassignment: PartitionReassignment) -> None:
        partition = reassignment.partition
        self._known[partition] = order, reassignment
        self._topics.add(partition)
        if reassignment.accepted:
            self.accept(reassignment)

    def accept(self, reassignment: PartitionReassignment) -> None:
        """Note that the broker has accepted one."""
        self._count += 1
        heappush(self._accepted, (reassignment.since_ns, self._count, reassignment))

    def pop(self, partition: Partition) -> PartitionReassignment | None:
        """Remove the reassignment of a partition."""
        found = self._known.pop(partition, None)
        if found is None:
            return None
        for index in (self._topics, *self._listable):
            index.remove(partition)
        return found[1]

    def of_topics(self, topics: Collection[str | None] | None) -> list[PartitionReassignment]:
        """Return those of these topics, in their order; all for None."""
        if topics is None:
            return list(self)
        found = [self._known[partition] for topic in topics for partition in self._topics.of(topic)]
        return [reassignment for _, reassignment in sorted(found, key=_order)]

    def unlisted(
        self, request: JsonBody | None, requested_ns: int, there: Collection[Partition]
    ) -> list[PartitionReassignment]:
        """Return those that the response to a ListPartitionReassignments request would have had if
        they had still been under way, and that are not ``there``, in their order."""
        while self._accepted and self._accepted[0][0] <= requested_ns:
            _, _, reassignment = heappop(self._accepted)
            if self.get(reassignment.partition) is reassignment:
                for index in self._listable:
                    index.add(reassignment.partition)
        found = {}
        for partition in self._covered(request):
            known = self._known.get(partition)
            if (
                known is not None and partition not in there
                and known[1].accepted and known[1].since_ns <= requested_ns
            ):  # fmt: skip
                found[partition] = known
        return [reassignment for _, reassignment in sorted(found.values(), key=_order)]

    def _covered(self, request: JsonBody | None) -> Iterator[Partition]:
        """Yield the partitions that a request asks for."""
        if request is None or "topics" not in request:
            return
        by_topic, by_number = self._listable
        if request["topics"] is None:
            yield from by_topic
            return
        for topic in request["topics"]:
            numbers = topic.get("partitionIndexes", topic.get("partitionIds", _ABSENT))
            if numbers is _ABSENT:
                continue
            if "name" in topic:
                name = topic["name"]
                found = by_topic.of(name) if numbers is None else [(name, each) for each in numbers]
                yield from found
            elif numbers is None:
                yield from by_topic
            else:  # a draft asks for these of any topic
                for number in numbers:
                    yield from by_number.of(number)

    def absorb(self, gone: PartitionsUnderWay) -> PartitionsUnderWay:
        """Return both together, those of ``gone`` first. Costs as much as the smaller of them; both
        are used up."""
        small, large = (gone, self) if len(gone) < len(self) else (self, gone)
        for reassignment in reversed(list(small)) if small is gone else small:
            known = large._known.get(reassignment.partition)
            if known is None:
                large._first -= 1
                large._put(large._first if small is gone else large._next, reassignment)
                large._next += 1
            elif small is self:
                large.pop(reassignment.partition)
                large._put(known[0], reassignment)
        return large


class _Index:
    """Partitions by their topic (``place`` 0) or by their number (1)."""

    def __init__(self, place: int) -> None:
        self._place = place
        self._found: dict[Any, dict[Partition, None]] = {}

    def __iter__(self) -> Iterator[Partition]:
        for found in self._found.values():
            yield from found

    def of(self, value: Any) -> Iterable[Partition]:
        return self._found.get(value, ())

    def add(self, partition: Partition) -> None:
        self._found.setdefault(partition[self._place], {})[partition] = None

    def remove(self, partition: Partition) -> None:
        found = self._found.get(partition[self._place], {})
        found.pop(partition, None)
        if not found:
            self._found.pop(partition[self._place], None)


_ABSENT: Final = object()


def _order(known: tuple[int, PartitionReassignment]) -> int:
    return known[0]
