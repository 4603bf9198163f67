"""Name topics in rows that came before their topic was named: such rows are set aside, and named
after everything was read, by the code that several processes and Spark use.

A row gets the name that was known when its exchange was complete, by the clock of the capture. The
order of reading does not show that: a message may wait for lost bytes, or for a response that never
comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from wiredump.rows.pieces import Piece, Rows
from wiredump.storage import Location
from wiredump.tables.arrow import of_rows
from wiredump.tables.deferred_rows import NAMED, DeferredRows, nameless, schema_of, unnamed
from wiredump.tables.run import Mode
from wiredump.tables.table_rows import TableRows
from wiredump.tables.table_writer import TableWriter

__all__ = ["NamingWriter", "wanting"]


def wanting(tables: Iterable[str]) -> list[str]:
    """Return those of ``tables`` that may need a topic's name."""
    return [name for name in NAMED if name in set(tables)]


class NamingWriter(TableWriter):
    """Writes the rows of ``rows``, sorted by ``deferred``."""

    def __init__(
        self, folder: str, tables: tuple[str, ...], rows: TableRows,
        *, run: str = "", mode: Mode = "error",
    ) -> None:  # fmt: skip
        self._wanting = wanting(tables)
        super().__init__(folder, tables, map(unnamed, self._wanting), run=run, mode=mode)
        self._names = rows.names
        self.deferred = DeferredRows((), known=rows.names.name)
        rows.name_later(self.deferred.name)

    def take(self, rows: Iterable[Rows]) -> None:
        """Write rows; those that need a name wait."""
        self.add(self.deferred.rows(rows))

    def close(self) -> None:
        """Write the rows that waited, then close."""
        for table in self._wanting:
            self.flush(table)
            name = unnamed(table)
            self.flush(name)
            file = self._files.pop(name, None)
            del self.rows[name], self._held[name]
            if file is None:
                continue
            file.close()
            for batch in self._named(table, self._file(name)):
                self._write(table, self._ordered(table, pa.Table.from_batches([batch])))
        super().close()

    def _named(self, table: str, file: Location) -> Iterator[pa.RecordBatch]:
        # This needs pyarrow.compute, and many runs have no such file.
        from wiredump.tables.deferred_merge import Names, named

        rows = [row for _, row in self._names.rows()]
        names = Names(of_rows(schema_of("topics"), rows))
        return (batch for batch, *_ in named(names, table, file))

    def _schema(self, name: str) -> pa.Schema:
        return schema_of(name)

    def _piece(self, name: str, piece: Piece) -> tuple[str, Piece]:
        wanted = nameless(piece)
        return (name, piece) if wanted is None else (unnamed(name), wanted)
