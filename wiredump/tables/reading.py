"""Tables out of Parquet files, a row group's part at a time. Whoever wrote them: any file that ends
in .parquet, at any depth of a table's folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from kproto.errors import KprotoError
from wiredump.rows.schema import SCHEMA_VERSION, TABLES

__all__ = ["InputError", "TableFolder"]

BATCH_ROWS: Final = 65_536


class InputError(KprotoError):
    """A folder, or a file in it, that cannot be read as tables: says which, and why."""


class TableFolder:
    """What ``wiredump table`` wrote, or Spark did. Raises InputError where there is none of it.
    ``progress`` is called with a table's name and the rows just read."""

    def __init__(
        self, folder: str, progress: Callable[[str, int], object] = lambda what, more: None
    ) -> None:
        self._folder = Path(folder)
        self._progress = progress
        if not self._folder.is_dir():
            raise InputError(f"{folder} is no folder of tables")
        self.names = [name for name in TABLES if (self._folder / name).is_dir()]
        if not self.names:
            raise InputError(f"{folder} has none of the tables {', '.join(TABLES)}")

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Rows of a table, so many at a time; none where the table is not there. The same files
        give the same rows in the same order."""
        place = self._folder / name
        for path in sorted(place.rglob("*.parquet")):
            try:
                for rows in _read(path, columns):
                    self._progress(name, rows.num_rows)
                    yield rows
            except (pa.ArrowException, OSError, KeyError) as error:
                raise InputError(f"{path} cannot be read: {error}") from error


def _read(path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        version = (schema.metadata or {}).get(b"wiredump.schema")
        if version is not None and version != str(SCHEMA_VERSION).encode():
            problem = f"its schema has version {version.decode(errors='replace')}"
            raise InputError(f"{path}: {problem}, and this reads {SCHEMA_VERSION}")
        missing = [column for column in columns if column not in schema.names]
        if missing:
            raise InputError(f"{path} has no column {', '.join(missing)}")
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(columns)):
            # In the order asked for, which files need not have.
            yield pa.Table.from_batches([batch]).select(list(columns))
