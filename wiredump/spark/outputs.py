"""Where the rows of a stream become visible, a batch at a time.

::

    out = outputs_of(settings)
    out.require_room(spark, mode)           for a new stream
    out.begin(spark, has_rows=False)        tables without rows
    parts = out.divided(spark, staging, parts)
    out.publish(spark, staging, parts, 7)   the rows of batch 7
    out.conclude(spark, staging, parts, 8)  the end, and tables that depend on all batches

Tasks wrote the files of ``parts`` into ``staging``. Publishing them again with the same number
changes nothing, so that a stream repeats the batch during which it was killed.

**Parquet.** A file's name shows its batch: ``TABLE/run=ID/batch-000007-00003.parquet``;
``end-*`` has rows that depend on all batches, or that the end of the stream added, and
``none.parquet`` no rows at all, so that every table has its columns. With ``partition_by`` there
are folders in between.

**Delta and Iceberg.** A table gets the rows of a batch in one transaction (``sinks``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from wiredump.spark.partitioning import divide, keys_of, write_empty
from wiredump.spark.sinks import Files, Sink, sink_of
from wiredump.spark.stream_folder import Settings, put
from wiredump.spark.table_schema import AT_THE_END
from wiredump.storage import Location, sync_all
from wiredump.tables.completion import written_tables
from wiredump.tables.publishing import OutputError, Part, RunFolder, changing
from wiredump.tables.run import Mode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Outputs", "Parts", "outputs_of"]

_NONE: Final = "none.parquet"
Parts = Mapping[str, Part]
"""Files by table."""


class Outputs(Protocol):
    """Tables, which include those written beside the tables of the options."""

    tables: list[str]

    def require_room(self, spark: SparkSession, mode: Mode) -> None:
        """Raise OutputError if a new stream must not write here."""

    def begin(self, spark: SparkSession, *, has_rows: bool) -> None:
        """Create the tables. Raises OutputError if tables that have rows are gone."""

    def divided(self, spark: SparkSession, staging: Location, parts: list[Parts]) -> list[Parts]:
        """Return the files that are to be published."""

    def publish(
        self, spark: SparkSession, staging: Location, parts: Sequence[Parts], batch: int
    ) -> None:
        """Make the rows of a batch visible."""

    def conclude(
        self, spark: SparkSession, staging: Location, parts: Sequence[Parts], batch: int
    ) -> None:
        """Make rows visible that the end of the stream adds as batch ``batch``, and those of the
        tables that depend on all batches, in place of earlier ones."""

    def succeed(self) -> None:
        """Mark the tables as complete, for readers that look for it."""


def outputs_of(settings: Settings) -> Outputs:
    """Return the outputs of a stream."""
    tables = written_tables(settings.tables)
    layout = settings.layout
    if layout.form == "parquet":
        return _Folder(settings.out, tables, settings.run, layout.partition_by)
    sink = sink_of(layout, settings.out, settings.run, settings.id)
    return _Lake(sink, tables, settings.run)


class _Folder(RunFolder):
    """Files of Parquet, directly in the folder of the table or of its run, or in those of their
    keys."""

    def __init__(self, folder: str, tables: list[str], run: str, by: Sequence[str]) -> None:
        super().__init__(folder, run)
        self.tables = tables
        self._by = by

    def require_room(self, spark: SparkSession, mode: Mode) -> None:
        self.require("append" if mode == "append" else "error")

    def begin(self, spark: SparkSession, *, has_rows: bool) -> None:
        if has_rows:
            self._require()
        for name in self.tables:
            place = self.folder_of(name)
            place.mkdir()
            keys = keys_of(name, self._by)
            if keys:
                write_empty(place, name, keys, _NONE)
            elif not (place / _NONE).exists():
                self.write_empty(name, _NONE)

    def _require(self) -> None:
        """Raise OutputError if a table is gone. Object stores have no folders."""
        places = [self._root, *map(self.folder_of, self.tables)]
        gone = [each for each in places if not each.is_object and not each.is_dir()]
        if gone:
            raise OutputError(
                f"{gone[0].shown} does not exist, but the checkpoint continues its tables: restore "
                "it, or begin a new stream with another --checkpoint"
            )

    def divided(self, spark: SparkSession, staging: Location, parts: list[Parts]) -> list[Parts]:
        return divide(spark, staging, self._by, (), parts) if self._by else parts

    def publish(
        self, spark: SparkSession, staging: Location, parts: Sequence[Parts], batch: int
    ) -> None:
        self._require()
        with changing(self._root):
            placed = self._put(staging, parts, f"batch-{batch:06d}")
        sync_all(each.parent for each in placed)

    def conclude(
        self, spark: SparkSession, staging: Location, parts: Sequence[Parts], batch: int
    ) -> None:
        parts = self.divided(spark, staging, list(parts))
        self._require()
        with changing(self._root):
            kept = self._put(staging, parts, "end")
            sync_all(kept)
            sync_all(each.parent for each in kept)
            for name in self.tables:
                for path in self.folder_of(name).glob("**/end-*.parquet"):
                    if path not in kept:
                        path.unlink()

    def _put(self, staging: Location, parts: Iterable[Parts], begin: str) -> Collection[Location]:
        """Move files to where readers find them, and return their places."""
        numbers = dict.fromkeys(self.tables, 0)
        places = set()
        for table, part in _parts_of(parts):
            folder = self.folder_of(table)
            for name in part.file.split("/")[:-1]:
                folder /= name
            target = folder / f"{begin}-{numbers[table]:05d}.parquet"
            numbers[table] += 1
            places.add(target)
            try:
                put(staging / table / part.file, target)
            except FileNotFoundError:
                if not target.exists():  # else it was moved before a kill
                    raise
        return places


class _Lake:
    """Tables of Delta or Iceberg."""

    def __init__(self, sink: Sink, tables: list[str], run: str) -> None:
        self._sink, self.tables, self._run = sink, tables, run

    def require_room(self, spark: SparkSession, mode: Mode) -> None:
        self._sink.prepare(spark, self.tables)
        if self._sink.has_run(spark, self.tables):
            raise OutputError(
                f"the tables already have the run {self._run}: set another id with --run, or "
                "delete its rows in SQL"
            )

    def begin(self, spark: SparkSession, *, has_rows: bool) -> None:
        self._sink.prepare(spark, self.tables)

    def divided(self, spark: SparkSession, staging: Location, parts: list[Parts]) -> list[Parts]:
        return parts

    def publish(
        self, spark: SparkSession, staging: Location, parts: Sequence[Parts], batch: int
    ) -> None:
        self._sink.write(spark, _files_of(staging, parts), batch)

    def conclude(
        self, spark: SparkSession, staging: Location, parts: Sequence[Parts], batch: int
    ) -> None:
        files = _files_of(staging, parts)
        added = {name: each for name, each in files.items() if name not in AT_THE_END}
        self._sink.write(spark, added, batch)
        replaced = {name: files.get(name, []) for name in self.tables if name in AT_THE_END}
        self._sink.write(spark, replaced)

    def succeed(self) -> None:
        return


def _files_of(staging: Location, parts: Iterable[Parts]) -> Files:
    files: dict[str, list[Location]] = {}
    for table, part in _parts_of(parts):
        files.setdefault(table, []).append(staging / table / part.file)
    return files


def _parts_of(parts: Iterable[Parts]) -> Iterable[tuple[str, Part]]:
    return ((table, part) for each in parts for table, part in each.items() if part.rows)
