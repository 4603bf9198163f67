"""Write all tables of a run in one process, a file each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from wiredump.rows.pieces import Rows
from wiredump.rows.schema import TABLES
from wiredump.storage import Location
from wiredump.tables.publishing import Part, Publication
from wiredump.tables.run import Mode
from wiredump.tables.writer import RowGroups, encodings

__all__ = ["TableWriter"]

_FILE: Final = "part-0.parquet"


class TableWriter(RowGroups):
    """Writes ``part-0.parquet`` of each table, all of them or none (``publishing``). As a context
    manager it closes them, and removes them after an exception. Files ``beside`` the tables are
    written if they have rows, and are removed in the end.

    Raises OutputError if ``folder`` cannot be written to in this ``mode``.
    """

    def __init__(
        self, folder: str | os.PathLike[str], tables: Iterable[str] = TABLES,
        beside: Iterable[str] = (), *, run: str = "", mode: Mode = "error",
    ) -> None:  # fmt: skip
        self._tables = tuple(tables)
        super().__init__((*self._tables, *beside))
        self._publication = Publication(os.fspath(folder), run, mode, self._tables)
        try:
            for name in self._tables:
                self._files[name] = self._open(name)
        except BaseException:
            self.abandon()
            raise

    def take(self, rows: Iterable[Rows]) -> None:
        """Add the rows of an item."""
        self.add(rows)

    def _file(self, name: str) -> Location:
        return self._publication.staging / name / _FILE

    def _open(self, name: str) -> pq.ParquetWriter:
        file = self._file(name)
        schema = self._stored_schema(name)
        file.parent.mkdir()
        return pq.ParquetWriter(file.path, schema, filesystem=file.filesystem, **encodings(schema))

    def close(self) -> None:
        """Write the rows held, close every file, and publish them."""
        super().close()
        parts = {name: Part(_FILE, self.rows[name]) for name in self._tables}
        self._publication.publish(self._tables, [parts])

    def abandon(self) -> None:
        """Remove everything that was written."""
        for file in self._files.values():
            with suppress(OSError, pa.ArrowException):
                file.close()
        self._publication.abandon()

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: object, *about: object) -> None:
        if kind is not None:
            self.abandon()
            return
        try:
            self.close()
        except BaseException:
            self.abandon()
            raise
