"""Write rows to Parquet files, a folder for each table, in a streaming way: memory holds one row
group for each table.

Rows may come one by one or in pieces; the boundaries and the order of row groups are the same.
``pyarrow.compute`` is imported on use (``wiredump.tables.arrow``).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from wiredump.rows.pieces import Piece, Rows
from wiredump.rows.schema import TABLES
from wiredump.tables.arrow import arrow_schema, file_schema, of_file, ordered
from wiredump.tables.held_rows import HeldRows, feed, held_rows, taken
from wiredump.tables.merging import Part, merged

__all__ = ["ROW_GROUP", "RowGroups", "encodings"]

ROW_GROUP: Final = 65_536
"""Rows of a table that are held, sorted and written together."""

ROW_GROUP_BYTES: Final = 4 * 1024 * 1024
"""The same in bytes of text and binary, if that limit is reached first. Writing a row group takes
twice as much again, of which the process keeps what other tables do not use."""

FEW: Final = 32
"""A piece with fewer rows is cheaper row by row."""


def _sized(schema: pa.Schema) -> list[int]:
    """Return the places of the columns of text and binary."""
    types = (pa.string(), pa.binary())
    return [place for place, each in enumerate(schema) if each.type in types]


def _measured(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the length of each value: of text in characters, as ``len`` counts."""
    import pyarrow.compute as pc

    measure = pc.utf8_length if column.type == pa.string() else pc.binary_length
    return measure(column)


def _size(rows: pa.Table, places: list[int]) -> int:
    """Return the total length of those columns."""
    import pyarrow.compute as pc

    return sum(pc.sum(_measured(rows.column(place))).as_py() or 0 for place in places)


def _filling(rows: pa.Table, places: list[int], room: int) -> int:
    """Return how many rows from the front reach this length."""
    import pyarrow.compute as pc

    sizes = [pc.fill_null(_measured(rows.column(place)), 0) for place in places]
    sums = pc.cumulative_sum(reduce(pc.add, (pc.cast(each, pa.int64()) for each in sizes)))
    last: int = pc.index(pc.greater_equal(sums, room), True).as_py()
    return last + 1


def encodings(schema: pa.Schema) -> dict[str, Any]:
    """Return the encodings of columns. Numbers and times use differences, since most rise with the
    rows; a dictionary would take twice the time and three times the space. Text uses a dictionary.
    Timestamps are in microseconds, because Spark has no finer ones."""
    numbers = [
        field.name
        for field in schema
        if field.type in (pa.int32(), pa.int64()) or pa.types.is_timestamp(field.type)
    ]
    return {
        "compression": "zstd",
        "use_dictionary": [name for name in schema.names if name not in numbers],
        "column_encoding": dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        "coerce_timestamps": "us",
        "allow_truncated_timestamps": True,
    }


class RowGroups:
    """Holds rows of each table and writes them in row groups, to files that ``_open`` opens when
    there is something to write. ``rows`` counts the rows written."""

    def __init__(self, tables: Iterable[str]) -> None:
        self.rows: dict[str, int] = dict.fromkeys(tables, 0)
        self._files: dict[str, pq.ParquetWriter] = {}
        self._sized = {name: _sized(self._schema(name)) for name in self.rows}
        self._held: dict[str, HeldRows] = {
            name: held_rows(self._schema(name), ROW_GROUP, ROW_GROUP_BYTES) for name in self.rows
        }
        # Earlier pieces.
        self._parts: dict[str, list[pa.Table | Part]] = {name: [] for name in self.rows}

    def _open(self, name: str) -> pq.ParquetWriter:
        raise NotImplementedError

    def _schema(self, name: str) -> pa.Schema:
        return arrow_schema(name)

    def _stored_schema(self, name: str) -> pa.Schema:
        """Return the schema of the file, which for a table has timestamps, too."""
        return file_schema(name) if name in TABLES else self._schema(name)

    def _piece(self, name: str, piece: Piece) -> tuple[str, Piece]:
        """Return where the rows of a piece go, and in which form."""
        return name, piece

    def _ordered(self, name: str, rows: pa.Table) -> pa.Table:
        return ordered(name, rows) if name in TABLES else rows

    def add(self, rows: Iterable[Rows]) -> None:
        """Add rows; those of tables that are not written are ignored."""
        left = iter(rows)
        while (found := feed(left, self._held)) is not None:
            name, row = found
            if row is None:
                self.flush(name)
            else:
                self._add_piece(*self._piece(name, row))

    def _add_piece(self, name: str, piece: Piece) -> None:
        schema = self._schema(name)
        if piece.number < FEW:
            self.add((name, row) for row in piece.rows(schema.names))
            return
        held, places = self._held[name], self._sized[name]
        first, number = 0, piece.number
        while first < number:
            self._gather(name)
            part = Part(piece, first, min(number, first + ROW_GROUP - held.number))
            size = part.size([schema.names[place] for place in places])
            if size is None:
                size = _size(part.table(schema), places)
            size += held.size
            if size >= ROW_GROUP_BYTES:
                taken = _filling(part.table(schema), places, ROW_GROUP_BYTES - held.size)
                part = part._replace(stop=first + taken)
            self._parts[name].append(part)
            held.number += part.num_rows
            held.size = size
            first = part.stop
            if held.number >= ROW_GROUP or size >= ROW_GROUP_BYTES:
                self.flush(name)

    def _gather(self, name: str) -> None:
        """Turn the rows held into a part like any other."""
        held = self._held[name]
        if number := len(held):
            self._parts[name].append(taken(held, self._schema(name)))
            held.number += number

    def held(self, name: str) -> HeldRows | None:
        """Return where rows of a table are held until there are enough of them for ``flush``; None
        if the table is not written."""
        return self._held.get(name)

    def close(self) -> None:
        """Write the rows held, and close every file."""
        for name in self._held:
            self.flush(name)
        for file in self._files.values():
            file.close()

    def flush(self, name: str) -> None:
        """Write the rows held as a row group."""
        held, parts = self._held[name], self._parts[name]
        if not parts and not len(held):
            return
        if parts:
            self._gather(name)
            rows = self._sorted(name, parts)
        else:
            order = TABLES[name].order if name in TABLES else ()
            rows = taken(held, self._schema(name), order)
        if name not in self._files:
            self._files[name] = self._open(name)
        self._write(name, rows)
        parts.clear()
        held.number = held.size = 0

    def _write(self, name: str, rows: pa.Table) -> None:
        """Write a row group."""
        self._files[name].write_table(of_file(name, rows) if name in TABLES else rows)
        self.rows[name] += rows.num_rows

    def _sorted(self, name: str, parts: list[pa.Table | Part]) -> pa.Table:
        schema = self._schema(name)
        pieces = [part for part in parts if isinstance(part, Part)]
        if len(pieces) == len(parts):
            rows = merged(schema, TABLES[name].order if name in TABLES else (), pieces)
            if rows is not None:
                return rows
        tables = [part.table(schema) if isinstance(part, Part) else part for part in parts]
        return self._ordered(name, pa.concat_tables(tables).combine_chunks())
