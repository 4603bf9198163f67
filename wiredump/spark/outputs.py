"""The folder of tables that a stream writes. A file's name shows its batch.

``TABLE/batch-000007-00003.parquet`` belongs to a batch and a task; ``...-named.parquet`` has those
of its rows that may still get a topic name, ``end-*`` the rows of the end, and ``none.parquet`` no
rows at all, so that every table has its columns. All are directly in the folder of the table, or of
its run, where any reader finds them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from wiredump.rows.schema import TABLES
from wiredump.spark.job import DRIVER_TABLES
from wiredump.storage import Location
from wiredump.tables.publishing import SUCCESS, OutputError, require_room, write_empty
from wiredump.tables.run import run_folder

__all__ = ["Outputs"]

_NONE: Final = "none.parquet"


class Outputs:
    """``tables`` include those written beside them; the files belong to ``run``. With ``append``
    the folder may have those of other runs."""

    def __init__(
        self, folder: str, tables: Iterable[str], run: str = "", append: bool = False
    ) -> None:
        self._folder = Location(folder)
        self._run, self._append = run, append
        wanted = {*tables, *DRIVER_TABLES}
        self.tables = [name for name in TABLES if name in wanted]

    def begin(self) -> None:
        """Start a new stream. Raises OutputError if the folder is not empty."""
        require_room(self._folder, self._run, self._append)

    def make(self, *, anew: bool) -> None:
        """Create the tables' folders. Raises OutputError if they cannot be created, or no longer
        exist."""
        if not anew and not self._folder.is_dir():
            raise OutputError(
                f"{self._folder.shown} does not exist, but the checkpoint continues its tables"
            )
        for name in self.tables:
            place = self._of(name)
            try:
                place.mkdir()
            except OSError as error:
                raise OutputError(f"cannot create {place.shown}: {error}") from error
            none = place / _NONE
            if not none.exists():
                write_empty(name, none)

    def place(self, table: str, name: str) -> Location:
        """Return where a file belongs."""
        return self._of(table) / f"{name}.parquet"

    def _of(self, table: str) -> Location:
        return run_folder(self._folder, table, self._run)

    def keep_batches(self, last: int) -> None:
        """Remove the files of batches after ``last``."""
        for path in self._files("batch-*.parquet"):
            if int(path.name.split("-")[1]) > last:
                path.unlink()

    def forget_end(self) -> None:
        """Remove the files of the end, which is no longer valid."""
        (self._folder / SUCCESS).unlink(missing_ok=True)
        for path in self._files("end-*.parquet"):
            path.unlink()

    def succeed(self) -> None:
        """Mark the tables as complete."""
        (self._folder / SUCCESS).write_bytes(b"")

    def _files(self, pattern: str) -> list[Location]:
        return [path for name in self.tables for path in self._of(name).glob(pattern)]
