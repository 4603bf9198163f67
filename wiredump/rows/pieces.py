"""Many rows of one table as columns, for tables with too many rows for an object each.

They are equivalent to single rows, and can be read as such (``Piece.rows``). This module knows
neither the tables nor pyarrow: buffers have Arrow's layout (``kproto.arrow``).
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
"""Integers of eight bytes each, some of which may be repeated."""


class Chosen(Sequence[Any]):
    """A few values that are used in many places: ``places`` has the index of each one's value."""

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
    """Runs of rows. ``counts`` has the number of rows of each run; ``shared`` has a column's value
    for each run, by column name, and ``own`` has one for each row. A table uses the columns that it
    has. Values that many runs share are ``Whole`` or ``Chosen``."""

    counts: list[int]
    shared: dict[str, list[Any] | Whole | Chosen]
    own: dict[str, Column]

    @property
    def number(self) -> int:
        """The number of rows."""
        return sum(self.counts)

    def runs(self, first: int, stop: int) -> tuple[slice, list[int]]:
        """Return the runs with the rows from ``first`` to ``stop``, and how many of these rows each
        has."""
        ends = list(accumulate(self.counts))
        begin, end = bisect_right(ends, first), bisect_left(ends, stop) + 1
        counts = self.counts[begin:end]
        if first >= stop or not counts:
            return slice(0, 0), []
        counts[0] = ends[begin] - first
        counts[-1] -= ends[begin + len(counts) - 1] - stop
        return slice(begin, begin + len(counts)), counts

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows one by one, with the values of ``columns``."""
        values = [
            self.own[name].to_list() if name in self.own else self._repeated(name)
            for name in columns
        ]
        return zip(*values, strict=True)

    def _repeated(self, name: str) -> list[Any]:
        runs = zip(self.shared[name], self.counts, strict=True)
        return [value for value, count in runs for _ in range(count)]


Rows: TypeAlias = Row | tuple[str, Piece]
"""A table's name with one row, or with many."""
