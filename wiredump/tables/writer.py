"""Rows to Parquet files, a folder a table, as they come: memory holds one row group a table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from kproto.errors import KprotoError
from wiredump.rows.exchanges import Row
from wiredump.rows.schema import TABLES
from wiredump.tables.arrow import arrow_schema, to_table

__all__ = [
    "ROW_GROUP",
    "ColumnRows",
    "OutputError",
    "RowGroups",
    "TableWriter",
    "encodings",
    "require_empty",
]

ROW_GROUP: Final = 65_536
"""Rows of a table that are held, sorted and written at a time."""

ROW_GROUP_BYTES: Final = 32 * 1024 * 1024
"""Or so many bytes of text and binary among them, if that comes first."""


class OutputError(KprotoError):
    """The folder to write to cannot be used: says why, and what to do."""


class ColumnRows(Protocol):
    """Rows of one table that are kept as columns, and may come from elsewhere too. ``take`` gives
    the first so many, sorted."""

    def __len__(self) -> int: ...

    def append(self, row: tuple[Any, ...]) -> None: ...

    def take(self, count: int) -> pa.Table: ...


def _sized(schema: pa.Schema) -> list[int]:
    """The places of its columns of text and binary."""
    types = (pa.string(), pa.binary())
    return [place for place, each in enumerate(schema) if each.type in types]


def encodings(schema: pa.Schema) -> dict[str, Any]:
    """How columns are written: numbers by their differences, for most of them rise with the rows; a
    dictionary of them takes twice the time and three times the room. Text by a dictionary."""
    numbers = (pa.int32(), pa.int64())
    return {
        "compression": "zstd",
        "use_dictionary": [field.name for field in schema if field.type not in numbers],
        "column_encoding": {
            field.name: "DELTA_BINARY_PACKED" for field in schema if field.type in numbers
        },
    }


class RowGroups:
    """Holds rows of each table and writes them a row group at a time, to files that ``_open``
    opens when there is something to write. ``rows`` counts those written."""

    def __init__(self, tables: Iterable[str]) -> None:
        self.rows: dict[str, int] = dict.fromkeys(tables, 0)
        self._files: dict[str, pq.ParquetWriter] = {}
        self._held: dict[str, list[tuple[Any, ...]]] = {name: [] for name in self.rows}
        self._bytes: dict[str, int] = dict.fromkeys(self.rows, 0)
        self._sized = {name: _sized(self._schema(name)) for name in self.rows}
        self._columns: dict[str, ColumnRows] = {}

    def _open(self, name: str) -> pq.ParquetWriter:
        raise NotImplementedError

    def _schema(self, name: str) -> pa.Schema:
        return arrow_schema(name)

    def _table(self, name: str, rows: list[tuple[Any, ...]]) -> pa.Table:
        return to_table(name, rows)

    def add(self, rows: Iterable[Row]) -> None:
        """Take in rows; those of tables that are not written are passed over."""
        for name, row in rows:
            held = self._held.get(name)
            if held is None:
                continue
            if name in self._columns:
                self._columns[name].append(row)
                continue
            held.append(row)
            size = self._bytes[name]
            for place in self._sized[name]:
                value = row[place]
                if value is not None:
                    size += len(value)
            self._bytes[name] = size
            if len(held) >= ROW_GROUP or size >= ROW_GROUP_BYTES:
                self._flush(name)

    def keep_in(self, name: str, columns: ColumnRows) -> None:
        """Keep this table's rows there: in the order in which they come, whoever they are from.
        They have to be so small that ``ROW_GROUP_BYTES`` never counts."""
        self._columns[name] = columns

    def drain(self, name: str) -> None:
        """Write the whole row groups of a table that is kept in columns."""
        while len(self._columns[name]) >= ROW_GROUP:
            self._take(name, ROW_GROUP)

    def _take(self, name: str, count: int) -> None:
        if count and name not in self._files:
            self._files[name] = self._open(name)
        if count:
            self._files[name].write_table(self._columns[name].take(count))
            self.rows[name] += count

    def close(self) -> None:
        """Write what is held, and end every file."""
        for name, columns in self._columns.items():
            self.drain(name)
            self._take(name, len(columns))
        for name in self._held:
            self._flush(name)
        for file in self._files.values():
            file.close()

    def _flush(self, name: str) -> None:
        held = self._held[name]
        if held:
            if name not in self._files:
                self._files[name] = self._open(name)
            self._files[name].write_table(self._table(name, held))
            self.rows[name] += len(held)
            held.clear()
            self._bytes[name] = 0


class TableWriter(RowGroups):
    """Writes ``folder/TABLE/part-0.parquet``. As a context manager it closes every file; left by
    an exception it leaves what was written until then, which readers can tell by its missing
    footer.

    Raises OutputError where ``folder`` holds something already.
    """

    def __init__(self, folder: Path, tables: Iterable[str] = TABLES) -> None:
        super().__init__(tables)
        require_empty(folder)
        self._folder = folder
        for name in self.rows:
            (folder / name).mkdir(parents=True)
            self._files[name] = self._open(name)

    def _open(self, name: str) -> pq.ParquetWriter:
        place = self._folder / name / "part-0.parquet"
        schema = arrow_schema(name)
        return pq.ParquetWriter(place, schema, **encodings(schema))

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()


def require_empty(folder: Path) -> None:
    """Raise OutputError where ``folder`` cannot be written to without mixing with what is there."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder} is not an empty folder: name another, or empty it")
