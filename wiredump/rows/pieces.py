"""Many rows of one table at a time, as columns: where there is too much for an object a row.

The same as rows one by one, and whoever wants may take them as such (``Piece.rows``). What the
tables are is not known here, nor is pyarrow: buffers are as Arrow has them (``kproto.arrow``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeAlias, overload

import msgspec

from kproto.arrow import Column
from wiredump.rows.exchanges import Row

__all__ = ["Chosen", "Piece", "Rows", "Whole"]

Whole: TypeAlias = memoryview
"""Whole numbers of eight bytes each, perhaps some of many."""


class Chosen(Sequence[Any]):
    """Few values, each of which stands in many places: ``places`` has the number of each one's."""

    def __init__(self, values: list[Any], places: Whole) -> None:
        self.values = values
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Chosen: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return Chosen(self.values, self.places[index])
        return self.values[self.places[index]]


class Piece(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Runs of rows. ``counts`` are the rows of each run; ``shared`` has a column's value for each
    run, by the column's name, and ``own`` one for each row. A table takes what it has columns for.
    What many runs share is kept as ``Whole`` or ``Chosen``.
    """

    counts: list[int]
    shared: dict[str, list[Any] | Whole | Chosen]
    own: dict[str, Column]

    @property
    def number(self) -> int:
        """How many rows."""
        return sum(self.counts)

    def runs(self, first: int, stop: int) -> tuple[slice, list[int]]:
        """Which runs have the rows from ``first`` to ``stop``, and how many of those each has."""
        ends = list(accumulate(self.counts))
        begin, end = bisect_right(ends, first), bisect_left(ends, stop) + 1
        counts = self.counts[begin:end]
        if first >= stop or not counts:
            return slice(0, 0), []
        counts[0] = ends[begin] - first
        counts[-1] -= ends[begin + len(counts) - 1] - stop
        return slice(begin, begin + len(counts)), counts

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """One by one: the values of ``columns``."""
        values = [
            self.own[name].to_list() if name in self.own else self._repeated(name)
            for name in columns
        ]
        return zip(*values, strict=True)

    def _repeated(self, name: str) -> list[Any]:
        runs = zip(self.shared[name], self.counts, strict=True)
        return [value for value, count in runs for _ in range(count)]


Rows: TypeAlias = Row | tuple[str, Piece]
"""A table's name with a row of it, or with many."""
