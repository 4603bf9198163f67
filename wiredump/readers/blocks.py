"""Bytes of a stream that arrived before earlier ones: sorted, without overlaps; the first copy
wins.

Both TCP's out-of-order segments and IP's fragments are kept here. This module knows positions and
bytes, but neither protocol.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["Block", "Blocks", "Repeated", "count_differing"]


_PLACES_LEFT: Final = 64


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
    """Blocks that do not overlap and do not change once they are added.

    A block taken from the front leaves an empty place until much of the list is empty places, so
    that taking one costs the same however many there are.
    """

    __slots__ = ("_blocks", "_front", "_starts", "size")

    def __init__(self) -> None:
        self.size = 0
        """Bytes held."""
        self._blocks: list[Block] = []
        self._starts: list[int] = []
        self._front = 0

    def __len__(self) -> int:
        return len(self._blocks) - self._front

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks[self._front :])

    @property
    def first(self) -> Block | None:
        return self._blocks[self._front] if self else None

    @property
    def last(self) -> Block | None:
        return self._blocks[-1] if self else None

    def pop_first(self) -> Block:
        """Remove the first block and return it."""
        block = self._blocks[self._front]
        self._front += 1
        self.size -= len(block.data)
        if self._front >= _PLACES_LEFT and 2 * self._front >= len(self._blocks):
            del self._blocks[: self._front]
            del self._starts[: self._front]
            self._front = 0
        return block

    def insert(self, new: Block) -> list[Repeated]:
        """Add the bytes of ``new`` that are missing; returns those that are not, joined if
        adjacent."""
        blocks, starts = self._blocks, self._starts
        index = bisect_right(starts, new.start, self._front)
        if index > self._front and blocks[index - 1].end > new.start:
            index -= 1
        if index == len(starts) or starts[index] >= new.end:
            starts.insert(index, new.start)
            blocks.insert(index, new)
            self.size += len(new.data)
            return []
        return self._insert_around(index, new)

    def _insert_around(self, index: int, new: Block) -> list[Repeated]:
        """``new`` overlaps the block at ``index`` and perhaps some that follow."""
        merged: list[Block] = []
        repeated: list[Repeated] = []
        position, end, stop = new.start, new.end, index
        while stop < len(self._blocks) and self._starts[stop] < end:
            block = self._blocks[stop]
            if position < block.start:
                merged.append(_part(new, position, block.start))
                self.size += block.start - position
                position = block.start
            merged.append(block)
            until = min(block.end, end)
            again = new.data[position - new.start : until - new.start]
            first = block.data[position - block.start : until - block.start]
            _note(repeated, Repeated(position, until - position, count_differing(first, again)))
            position, stop = until, stop + 1
        if position < end:
            merged.append(_part(new, position, end))
            self.size += end - position
        self._blocks[index:stop] = merged
        self._starts[index:stop] = [block.start for block in merged]
        return repeated


def _part(block: Block, start: int, end: int) -> Block:
    data = block.data[start - block.start : end - block.start]
    return Block(start, data, block.timestamp_ns, block.capture, block.offset)


def _note(repeated: list[Repeated], new: Repeated) -> None:
    if repeated and repeated[-1].start + repeated[-1].length == new.start:
        last = repeated.pop()
        new = Repeated(last.start, last.length + new.length, last.differing + new.differing)
    repeated.append(new)


def count_differing(first: bytes, again: bytes) -> int:
    """Return at how many places two strings of equal length differ."""
    if first == again:
        return 0
    return sum(a != b for a, b in zip(first, again, strict=True))
