"""The folder of tables that a stream writes. A file's name shows its batch.

``TABLE/batch-000007-00003.parquet`` belongs to a batch and a task; ``...-named.parquet`` has those
of its rows that may still get a topic name, ``end-*`` the rows of the end, and ``none.parquet`` no
rows at all, so that every table has its columns. All are directly in the folder of the table, or of
its run, where any reader finds them.
"""

from __future__ import annotations

from collections.abc import Iterable
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

    def keep_batches(self, last: int) -> None:
        """Remove the files of batches after ``last``."""
        for path in self._files("batch-*.parquet"):
            if int(path.name.split("-")[1]) > last:
                path.unlink()

    def forget_end(self) -> None:
        """Remove the files of the end, which is no longer valid."""
        self.begin_change()
        for path in self._files("end-*.parquet"):
            path.unlink()

    def _files(self, pattern: str) -> list[Location]:
        return [path for name in self.tables for path in self.folder_of(name).glob(pattern)]
