"""The folder of tables that a stream writes. A file's name shows its batch.

``TABLE/batch-000007-00003.parquet`` belongs to a batch and a task; ``...-named.parquet`` has those
of its rows that may still get a topic name, ``end-*`` the rows that depend on all batches, and
``none.parquet`` no rows at all, so that every table has its columns. All are directly in the folder
of the table, or of its run, where any reader finds them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from wiredump.storage import Location
from wiredump.tables.completion import written_tables
from wiredump.tables.publishing import OutputError, RunFolder

__all__ = ["Outputs"]

_NONE: Final = "none.parquet"


class Outputs(RunFolder):
    """``tables`` include those written beside them."""

    def __init__(self, folder: str, tables: Iterable[str], run: str = "") -> None:
        super().__init__(folder, run)
        self.tables = written_tables(tables)

    def make(self, *, anew: bool) -> None:
        """Create the tables' folders. Raises OutputError if they cannot be created, or no longer
        exist."""
        if not anew and not self._root.is_dir():
            raise OutputError(
                f"{self._root.shown} does not exist, but the checkpoint continues its tables"
            )
        for name in self.tables:
            place = self.folder_of(name)
            try:
                place.mkdir()
            except OSError as error:
                raise OutputError(f"cannot create {place.shown}: {error}") from error
            if not (place / _NONE).exists():
                self.write_empty(name, _NONE)

    def place(self, table: str, name: str) -> Location:
        """Return where a file belongs."""
        return self.folder_of(table) / f"{name}.parquet"

    def forget_batch(self, batch: int) -> None:
        """Remove the files of a batch that was not completed."""
        for path in self._files(f"batch-{batch:06d}-*.parquet"):
            path.unlink()

    def keep_ends(self, kept: Collection[Location]) -> None:
        """Remove the rows that depend on all batches, except the newest."""
        for path in self._files("end-*.parquet"):
            if path not in kept:
                path.unlink()

    def _files(self, pattern: str) -> list[Location]:
        return [path for name in self.tables for path in self.folder_of(name).glob(pattern)]
