"""Many rows of one table at a time, as columns: where there is too much for an object a row.

The same as rows one by one, and whoever wants may take them as such (``Piece.rows``). What the
tables are is not known here, nor is pyarrow: buffers are as Arrow has them (``kproto.arrow``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from kproto.arrow import Column
from wiredump.rows.exchanges import Row

__all__ = ["Piece", "Rows"]


class Piece(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Runs of rows. ``counts`` are the rows of each run; ``shared`` has a column's value for each
    run, by the column's name, and ``own`` one for each row. A table takes what it has columns for.
    """

    counts: list[int]
    shared: dict[str, list[Any]]
    own: dict[str, Column]

    @property
    def number(self) -> int:
        """How many rows."""
        return sum(self.counts)

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
