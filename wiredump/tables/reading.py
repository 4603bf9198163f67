"""Read tables from Parquet files in batches: any file whose name ends in .parquet, at any depth of
a table's folder, whichever program wrote it."""

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
    """A folder, or a file in it, cannot be read as tables. The message names it and the reason."""


class TableFolder:
    """A folder that ``wiredump table`` or ``wiredump spark`` wrote.

    ``progress`` is called with a table's name and the number of rows just read. Raises InputError
    for a folder without tables.
    """

    def __init__(
        self, folder: str, progress: Callable[[str, int], object] = lambda what, more: None
    ) -> None:
        self.path = folder
        self._folder = Path(folder)
        self._progress = progress
        if not self._folder.is_dir():
            raise InputError(f"{folder} is not a folder of tables")
        self.names = [name for name in TABLES if (self._folder / name).is_dir()]
        if not self.names:
            raise InputError(f"{folder} has no tables ({', '.join(TABLES)})")

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of a table in batches, in the same order each time; nothing if the folder
        does not have the table. Raises InputError."""
        place = self._folder / name
        for path in sorted(place.rglob("*.parquet")):
            try:
                for rows in _read(path, columns):
                    self._progress(name, rows.num_rows)
                    yield rows
            except (pa.ArrowException, OSError, KeyError) as error:
                raise InputError(f"cannot read {path}: {error}") from error


def _read(path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        version = (schema.metadata or {}).get(b"wiredump.schema")
        if version is not None and version != str(SCHEMA_VERSION).encode():
            found = version.decode(errors="replace")
            raise InputError(
                f"{path} has version {found} of the tables' schema, but this release reads version "
                f"{SCHEMA_VERSION}: write the tables again"
            )
        missing = [column for column in columns if column not in schema.names]
        if missing:
            raise InputError(f"{path} has no column {', '.join(missing)}")
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(columns)):
            # Files may have the columns in another order.
            yield pa.Table.from_batches([batch]).select(list(columns))
