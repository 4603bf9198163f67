"""Rows of a table that were not written yet: in C where the extension is in use, else here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, cast

import pyarrow as pa

from wiredump.native import quick
from wiredump.rows.pieces import Piece, Rows
from wiredump.tables.arrow import CODES_OF_TYPES, of_columns, of_rows

__all__ = ["HeldRows", "feed", "held_rows", "taken"]


class HeldRows(Protocol):
    """Rows that were added one by one; ``len`` is their number. ``number`` counts rows that are
    held elsewhere, and ``size`` is the length of the text and binary in all of them, in characters
    and bytes."""

    number: int
    size: int

    def __len__(self) -> int: ...

    def add(self, row: tuple[Any, ...]) -> bool:
        """Add a row; returns whether there are enough rows for a row group."""


class _HeldRows:
    def __init__(self, codes: bytes, most_rows: int, most_size: int) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.number = self.size = 0
        self._places = [place for place, code in enumerate(codes) if code in b"uz"]
        self._most_rows = most_rows
        self._most_size = most_size

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, row: tuple[Any, ...]) -> bool:
        self.rows.append(row)
        for place in self._places:
            value = row[place]
            if value is not None:
                self.size += len(value)
        return self.number + len(self.rows) >= self._most_rows or self.size >= self._most_size


def held_rows(schema: pa.Schema, most_rows: int, most_size: int) -> HeldRows:
    """Return a store for the rows of a table. A row group has ``most_rows`` rows, or fewer if those
    have ``most_size``."""
    module = quick()
    codes = b"".join(CODES_OF_TYPES[field.type] for field in schema)
    made: HeldRows = (_HeldRows if module is None else module.HeldRows)(codes, most_rows, most_size)
    return made


def taken(held: HeldRows, schema: pa.Schema, order: tuple[str, ...] = ()) -> pa.Table:
    """Take all rows out, sorted by the columns ``order``."""
    number = len(held)
    if isinstance(held, _HeldRows):
        rows, held.rows = held.rows, []
        made = of_rows(schema, rows)
        return made.sort_by([(name, "ascending") for name in order]) if order else made
    columns = cast(Any, held).take(tuple(map(schema.names.index, order)))
    return of_columns(schema, number, columns)


def feed(rows: Iterator[Rows], held: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Add rows to the stores of their tables. Rows of other tables are dropped.

    Returns None when there are no more rows; a table and None when it has enough rows; and a table
    with a piece.
    """
    module = quick()
    if module is not None:
        found: tuple[str, Any] | None = module.feed_rows(rows, held)
        return found
    for name, row in rows:
        store = held.get(name)
        if store is None:
            continue
        if isinstance(row, Piece):
            return name, row
        if store.add(row):
            return name, None
    return None
