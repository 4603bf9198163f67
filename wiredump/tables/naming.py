"""Names of topics for rows that came before their topic was named: put aside as they come, named
when all was read, by the same code as those of several processes and of Spark.

A row has the name that a message had when its exchange was complete, by the clock of the capture.
Which of the two is met first while reading tells little of that: a message that waits for lost
bytes, or for an answer that never comes, is met long after it was there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from wiredump.rows.pieces import Piece, Rows
from wiredump.rows.together import TableRows
from wiredump.spark.apart import NAMED, Aside, nameless, schema_of, unnamed
from wiredump.tables.arrow import of_rows
from wiredump.tables.writer import TableWriter

__all__ = ["NamingWriter", "wanting"]

_WANTING: Final = (*NAMED, "fetches")


def wanting(tables: Iterable[str]) -> list[str]:
    """Those of ``tables`` in which a topic's name may be wanted."""
    return [name for name in _WANTING if name in set(tables)]


class NamingWriter(TableWriter):
    """Writes what ``rows`` make: those that ``aside`` sorted."""

    def __init__(
        self, folder: Path, tables: tuple[str, ...], rows: TableRows,
        *, run: str = "", append: bool = False,
    ) -> None:  # fmt: skip
        self._wanting = wanting(tables)
        super().__init__(folder, tables, map(unnamed, self._wanting), run=run, append=append)
        self._names = rows.names
        self.aside = Aside((), known=rows.names.name)
        rows.name_later(self.aside.name)

    def take(self, rows: Iterable[Rows]) -> None:
        """Those that want a name wait for it."""
        self.add(self.aside.rows(rows))

    def close(self) -> None:
        """Write the rows that waited, too."""
        for table in self._wanting:
            self._flush(table)
            name = unnamed(table)
            self._flush(name)
            file = self._files.pop(name, None)
            del self.rows[name], self._held[name]
            if file is None:
                continue
            file.close()
            for batch in self._named(table, self._file(name)):
                self._files[table].write_table(self._ordered(table, pa.Table.from_batches([batch])))
                self.rows[table] += batch.num_rows
        super().close()

    def _named(self, table: str, file: Path) -> Iterator[pa.RecordBatch]:
        # It takes pyarrow.compute, and many a run has no such file.
        from wiredump.spark.knowledge import Names, named

        rows = [row for _, row in self._names.rows()]
        names = Names(of_rows(schema_of("topics"), rows))
        return (batch for batch, _ in named(names, table, file))

    def _schema(self, name: str) -> pa.Schema:
        return schema_of(name)

    def _piece(self, name: str, piece: Piece) -> tuple[str, Piece]:
        wanted = nameless(piece)
        return (name, piece) if wanted is None else (unnamed(name), wanted)
