"""Rows of a table that were not written yet: in C where the extension is in use, else here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from wiredump.native import quick
from wiredump.rows.pieces import Piece, Rows

__all__ = ["HeldRows", "feed", "held_rows"]


class HeldRows(Protocol):
    """``rows`` were added one by one. ``number`` counts rows that are held elsewhere, and ``size``
    is the length of the text and binary in all of them, in characters and bytes."""

    @property
    def rows(self) -> list[tuple[Any, ...]]: ...

    number: int
    size: int


class _HeldRows:
    def __init__(self, places: tuple[int, ...], most_rows: int, most_size: int) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.number = self.size = 0
        self._places = places
        self._most_rows = most_rows
        self._most_size = most_size

    def add(self, row: tuple[Any, ...]) -> bool:
        """Add a row; returns whether there are enough rows for a row group."""
        self.rows.append(row)
        for place in self._places:
            value = row[place]
            if value is not None:
                self.size += len(value)
        return self.number + len(self.rows) >= self._most_rows or self.size >= self._most_size


def held_rows(places: tuple[int, ...], most_rows: int, most_size: int) -> HeldRows:
    """Return a store for the rows of a table with text or binary in the columns at ``places``. A
    row group has ``most_rows`` rows, or fewer if those have ``most_size``."""
    module = quick()
    made: HeldRows = (_HeldRows if module is None else module.HeldRows)(
        places, most_rows, most_size
    )
    return made


def feed(rows: Iterator[Rows], held: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Add rows to the stores of their tables, up to the first that ``held`` cannot take. Rows of
    other tables are dropped.

    Returns None when there are no more rows; a table and None when it has enough rows; and a table
    with a piece, or with a row for a store of another kind.
    """
    module = quick()
    if module is not None:
        found: tuple[str, Any] | None = module.feed_rows(rows, held)
        return found
    for name, row in rows:
        store = held.get(name)
        if store is None:
            continue
        if isinstance(row, Piece) or not isinstance(store, _HeldRows):
            return name, row
        if store.add(row):
            return name, None
    return None
