"""Bytes of a stream that arrived before earlier ones: sorted, without overlaps; the first copy
wins.

Both TCP's out-of-order segments and IP's fragments are kept here. This module knows positions and
bytes, but neither protocol.

Adding bytes costs the same however many wait, in any order and with any overlaps, beside a binary
search and the copying of the bytes themselves. ``_Spans`` finds the bytes around a position; each
piece of a packet is found by its position alone, since the pieces of adjacent bytes follow each
other. Spans that a repetition covers are joined to one, so that the next repetition finds one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["Block", "Blocks", "Repeated", "count_differing"]


_MOST_SPANS: Final = 256
"""The most spans of one bucket, which bounds what an insertion moves."""


class Block(NamedTuple):
    """Bytes at a position, and the packet they came in: time, capture, offset."""

    start: int
    data: bytes
    timestamp_ns: int
    capture: int
    offset: int

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class Repeated(NamedTuple):
    """``length`` bytes at ``start`` were already there; ``differing`` of them have other values."""

    start: int
    length: int
    differing: int


class Blocks:
    """Pieces of packets that do not overlap. Iterating yields them in the order of positions."""

    __slots__ = ("_ends", "_packets", "_spans", "begin", "size")

    def __init__(self) -> None:
        self.size = 0
        """Bytes held."""
        self.begin: int | None = None
        """The position of the first byte."""
        self._spans = _Spans()
        self._ends: dict[int, int] = {}
        """Where each piece ends, by where it begins."""
        self._packets: dict[int, tuple[int, int, int]] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[Block]:
        self._trim()
        for start, data in self._spans:
            at = start
            while at < start + len(data):
                end = self._ends[at]
                yield Block(at, data[at - start : end - start], *self._packets[at])
                at = end

    @property
    def end(self) -> int | None:
        """The position behind the last byte."""
        return self._spans.end

    def joined(self) -> bytes:
        """Return all bytes, without the holes between them."""
        self._trim()
        return b"".join([data for _, data in self._spans])

    def pop_first(self) -> Block:
        """Remove the first piece and return it."""
        assert self.begin is not None
        begin, end = self.begin, self._ends.pop(self.begin)
        start, data = self._spans.first
        block = Block(begin, data[begin - start : end - start], *self._packets.pop(begin))
        self.size -= end - begin
        if end < start + len(data):
            self.begin = end
        else:
            self._spans.remove(start)
            self.begin = self._spans.first[0] if self._ends else None
        return block

    def insert(self, new: Block) -> list[Repeated]:
        """Add the bytes of ``new`` that are missing; returns those that are not, joined if
        adjacent."""
        self._trim()
        overlapped = self._spans.between(new.start, new.end)
        if overlapped:
            repeated = self._insert_around(overlapped, new)
        else:
            repeated = []
            self._add_piece(new.start, new.end, new)
            self._spans.add(new.start, new.data)
        if self.begin is None or new.start < self.begin:
            self.begin = new.start
        return repeated

    def _insert_around(self, overlapped: list[tuple[int, bytes]], new: Block) -> list[Repeated]:
        """``new`` overlaps these spans, in their order."""
        repeated: list[Repeated] = []
        position, end = new.start, new.end
        parts: list[bytes] = []  # of the bytes that become one span, from ``joined_at`` on
        joined_at, covered = -1, []
        for start, data in overlapped:
            if position < start:
                joined_at = position if not parts else joined_at
                parts.append(new.data[position - new.start : start - new.start])
                self._add_piece(position, start, new)
                position = start
            until = min(start + len(data), end)
            again = new.data[position - new.start : until - new.start]
            differing = count_differing(data[position - start : until - start], again)
            _note(repeated, Repeated(position, until - position, differing))
            if new.start <= start and start + len(data) <= end:
                joined_at = start if not parts else joined_at
                parts.append(data)
                covered.append(start)
            position = until
        if position < end:
            joined_at = position if not parts else joined_at
            parts.append(new.data[position - new.start :])
            self._add_piece(position, end, new)
        if len(parts) > len(covered) or len(covered) > 1:
            for start in covered:
                self._spans.remove(start)
            self._spans.add(joined_at, b"".join(parts))
        return repeated

    def _add_piece(self, start: int, end: int, of: Block) -> None:
        self._ends[start] = end
        self._packets[start] = of.timestamp_ns, of.capture, of.offset
        self.size += end - start

    def _trim(self) -> None:
        """Drop the bytes of the first span whose pieces were removed."""
        if self.begin is None:
            return
        start, data = self._spans.first
        if start < self.begin:
            self._spans.remove(start)
            self._spans.add(self.begin, data[self.begin - start :])


class _Spans:
    """Bytes by position, which do not overlap, in buckets of a bounded size."""

    __slots__ = ("_buckets", "_firsts")

    def __init__(self) -> None:
        self._buckets: list[tuple[list[int], list[bytes]]] = []
        self._firsts: list[int] = []
        """Where the first span of each bucket begins."""

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        for starts, spans in self._buckets:
            yield from zip(starts, spans, strict=True)

    @property
    def first(self) -> tuple[int, bytes]:
        starts, spans = self._buckets[0]
        return starts[0], spans[0]

    @property
    def end(self) -> int | None:
        if not self._buckets:
            return None
        starts, spans = self._buckets[-1]
        return starts[-1] + len(spans[-1])

    def between(self, start: int, end: int) -> list[tuple[int, bytes]]:
        """Return the spans with bytes from ``start`` to ``end``."""
        found: list[tuple[int, bytes]] = []
        number = max(0, bisect_right(self._firsts, start) - 1)
        for starts, spans in self._buckets[number : bisect_left(self._firsts, end)]:
            at = max(0, bisect_right(starts, start) - 1)
            stop = bisect_left(starts, end)
            found += zip(starts[at:stop], spans[at:stop], strict=True)
        if found and found[0][0] + len(found[0][1]) <= start:
            del found[0]
        return found

    def add(self, start: int, data: bytes) -> None:
        """Add a span, which overlaps no other."""
        if not self._buckets:
            self._buckets.append(([], []))
            self._firsts.append(start)
        number = max(0, bisect_right(self._firsts, start) - 1)
        starts, spans = self._buckets[number]
        at = bisect_right(starts, start)
        starts.insert(at, start)
        spans.insert(at, data)
        self._firsts[number] = starts[0]
        if len(starts) > _MOST_SPANS:
            self._split(number)

    def _split(self, number: int) -> None:
        starts, spans = self._buckets[number]
        at = len(starts) // 2
        self._buckets.insert(number + 1, (starts[at:], spans[at:]))
        self._firsts.insert(number + 1, starts[at])
        del starts[at:], spans[at:]

    def remove(self, start: int) -> None:
        """Remove the span that begins at ``start``."""
        number = bisect_right(self._firsts, start) - 1
        starts, spans = self._buckets[number]
        at = bisect_left(starts, start)
        del starts[at], spans[at]
        if starts:
            self._firsts[number] = starts[0]
        else:
            del self._buckets[number], self._firsts[number]


def _note(repeated: list[Repeated], new: Repeated) -> None:
    if repeated and repeated[-1].start + repeated[-1].length == new.start:
        last = repeated.pop()
        new = Repeated(last.start, last.length + new.length, last.differing + new.differing)
    repeated.append(new)


def count_differing(first: bytes, again: bytes) -> int:
    """Return at how many places two strings of equal length differ."""
    if first == again:
        return 0
    size = len(first)
    return size - (int.from_bytes(first) ^ int.from_bytes(again)).to_bytes(size).count(0)
