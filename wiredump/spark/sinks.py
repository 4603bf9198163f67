"""Where the rows of a run become visible: Parquet files, Delta tables or Iceberg tables.

Batches and streams use one interface. A stream calls, for its batch 7, in ``foreachBatch`` or in a
loop of its own::

    sink = sink_of("delta", out, run, by=("date", "hour"))
    sink.prepare(spark, tables)                         once, before the first batch
    sink.write(spark, {"requests": [Location(...)]}, 7)

Files are Parquet with the columns of ``wiredump table``, as tasks wrote them; a sink may move them,
and never needs them again. **A batch that is written again replaces itself or is ignored**, so that
a stream repeats the batch during which it was killed, with the same number. Batches come in order.
Without a number the files are the whole run, which replaces what its tables have of that run.

Each table changes at once in Delta and in Iceberg, but not all tables together. A stream's batch is
Delta's transaction (``txnAppId``, ``txnVersion``), and properties of Iceberg's snapshot. Files are
read by this package's own clients (``wiredump.storage``); the tables of Delta and Iceberg are
written by those of Spark.

Rows have the columns of ``spark.read.format("kafka_capture")``: those of the table, timestamps, and
``run``; then ``date`` and ``hour``, if tables are divided by them (``partitioning``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kproto.errors import KprotoError
from wiredump.spark.partitioning import divide_files, key_types, keys_of, with_keys, write_empty
from wiredump.spark.stages import each_of
from wiredump.spark.table_schema import spark_schema, with_timestamps
from wiredump.storage import Location
from wiredump.tables.publishing import STAGING, Part, RunFolder, RunStaging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "FORMATS",
    "DeltaSink",
    "Files",
    "Format",
    "IcebergSink",
    "ParquetSink",
    "Sink",
    "SinkError",
    "SinkPublication",
    "sink_of",
]

Format: TypeAlias = Literal["parquet", "delta", "iceberg"]
FORMATS: Final = ("parquet", "delta", "iceberg")
Files: TypeAlias = Mapping[str, Sequence[Location]]
"""Files by table."""

_ROWS: Final = 4096
_ATTEMPTS: Final = 10
"""Of a change of a table that other writers change at the same time."""
_NONE: Final = "none.parquet"
_BATCHES: Final = "_batches"


class SinkError(KprotoError):
    """Tables cannot be written. The message has the reason and a remedy."""


class Sink(Protocol):
    """Where rows become visible."""

    def prepare(self, spark: SparkSession, tables: Sequence[str]) -> None:
        """Create tables that do not exist, without rows. Raises SinkError."""

    def write(self, spark: SparkSession, files: Files, batch: int | None = None) -> None:
        """Make the rows of the files visible as batch ``batch``, or as the whole run. Tables that
        ``files`` lacks are left alone; one without a file has no rows."""


def sink_of(form: Format, out: str, run: str, by: Sequence[str] = ()) -> Sink:
    """Return the sink of a format. ``out`` is a folder; for Iceberg, ``CATALOG.NAMESPACE``."""
    kinds: dict[str, Callable[..., Sink]] = {
        "parquet": ParquetSink, "delta": DeltaSink, "iceberg": IcebergSink,
    }  # fmt: skip
    return kinds[form](out, run, by)


# ---- Parquet ------------------------------------------------------------------------------------


class _Batch(msgspec.Struct):
    """The last batch whose files were published, or began to be."""

    number: int
    files: list[str]


_BATCH: Final = msgspec.json.Decoder(_Batch)


class ParquetSink:
    """``TABLE/run=RUN/[date=...]/batch-000007-00003.parquet``. ``_batches/RUN.json`` names the
    files of the last batch, which those of a repetition replace. (The files of a whole run are
    published by ``wiredump.tables.publishing``.)"""

    def __init__(self, out: str, run: str, by: Sequence[str] = ()) -> None:
        self._root, self._run, self._by = Location(out), run, tuple(by)
        self._folder = RunFolder(out, run)

    def prepare(self, spark: SparkSession, tables: Sequence[str]) -> None:
        for table in tables:
            place = self._folder.folder_of(table)
            if not any(place.listed(recursive=False)):
                write_empty(place, table, keys_of(table, self._by), _NONE)

    def write(self, spark: SparkSession, files: Files, batch: int | None = None) -> None:
        if batch is None:
            raise ValueError("Publication publishes the files of a whole run")
        moves: list[tuple[Location, Location]] = []
        for table, sources in files.items():
            place = self._folder.folder_of(table)
            for number, (source, folder) in enumerate(self._divided(spark, table, sources)):
                name = f"batch-{batch:06d}-{number:05d}.parquet"
                moves.append((source, place / (f"{folder}/{name}" if folder else name)))
        self._note(batch, [target for _, target in moves])
        for place in {target.parent for _, target in moves}:
            place.mkdir()
        for source, target in moves:
            source.publish(target)
            target.sync()

    def _divided(
        self, spark: SparkSession, table: str, files: Sequence[Location]
    ) -> list[tuple[Location, str]]:
        keys = keys_of(table, self._by)
        return divide_files(spark, table, files, keys) if keys else [(file, "") for file in files]

    def _note(self, batch: int, files: list[Location]) -> None:
        """Record the files of a batch, and remove those of an earlier attempt at it."""
        place = self._root / _BATCHES / f"{self._run or 'all'}.json"
        names = [str(each).removeprefix(f"{self._root}/") for each in files]
        try:
            last = _BATCH.decode(place.read_bytes())
        except FileNotFoundError:
            last = _Batch(0, [])
        if last.number > batch:
            raise SinkError(
                f"{self._root.shown} has batch {last.number} of the run {self._run}, and batch "
                f"{batch} cannot follow it: use the checkpoint that the tables were written with"
            )
        if last.number == batch:
            for name in last.files:
                (self._root / name).unlink(missing_ok=True)
        place.parent.mkdir()
        place.replace_bytes(msgspec.json.encode(_Batch(batch, names)))


# ---- a whole run --------------------------------------------------------------------------------


class SinkPublication:
    """The way of a run's files to the tables of a sink: tasks write to ``work``, into ``staging``,
    which is below ``root``; then files are published or abandoned."""

    def __init__(self, spark: SparkSession, sink: Sink, root: Location, run: str) -> None:
        self._spark, self._sink = spark, sink
        self._staging = RunStaging(root, run)
        self.work = str(self._staging.folder)
        self.staging = self._staging.folder / STAGING
        self.staging.mkdir()

    def publish(self, tables: Iterable[str], parts: Iterable[Mapping[str, Part]]) -> None:
        """Publish the files in the manifests of tasks, and remove what the tasks wrote."""
        files: dict[str, list[Location]] = {name: [] for name in tables}
        for each in parts:
            for name, part in each.items():
                files[name].append(self.staging / name / part.file)
        self._sink.prepare(self._spark, list(files))
        self._staging.require_owner()
        self._sink.write(self._spark, files)
        self._staging.remove()

    def abandon(self) -> None:
        """Remove what the tasks wrote."""
        self._staging.remove()


# ---- rows for Spark's writers -------------------------------------------------------------------


def rows_of(
    spark: SparkSession, table: str, files: Sequence[Location], run: str, by: Sequence[str]
) -> DataFrame:
    """Return the rows of files, with timestamps, the run, and ``date`` and ``hour`` if wanted."""
    keys = keys_of(table, by)
    schema = spark_schema(table)
    for name, type_ in key_types(table, keys).items():
        schema = schema.add(name, type_)
    return each_of(spark, [(str(file), table, run, keys) for file in files], _rows, schema)


def _rows(work: tuple[str, str, str, list[str]]) -> Iterator[pa.RecordBatch]:
    file, table, run, keys = work
    with Location(file).open_input() as opened, pq.ParquetFile(opened) as rows:
        for batch in rows.iter_batches(_ROWS):
            yield with_keys(table, with_timestamps(table, batch, run), keys)


def _is_contended(error: Exception) -> bool:
    """Whether a change failed because another writer changed the table meanwhile."""
    text = f"{type(error).__name__} {error}"
    return "DELTA_CONCURRENT" in text or "Concurrent" in text.partition("\n")[0]


def _repeated(change: Callable[[], object]) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            change()
            return
        except Exception as error:  # of Java
            if attempt == _ATTEMPTS or not _is_contended(error):
                raise


# ---- Delta --------------------------------------------------------------------------------------


class DeltaSink:
    """Delta tables ``OUT/TABLE``. The session needs Delta's extension and catalog."""

    def __init__(self, out: str, run: str, by: Sequence[str] = ()) -> None:
        self._out, self._run, self._by = _of_spark(out), run, tuple(by)

    def prepare(self, spark: SparkSession, tables: Sequence[str]) -> None:
        for table in tables:
            # An append without rows creates the table, or adds the columns that it lacks.
            _repeated(self._writer(spark, table, []).mode("append").save)

    def write(self, spark: SparkSession, files: Files, batch: int | None = None) -> None:
        for table, sources in files.items():
            writer = self._writer(spark, table, sources)
            if batch is None:
                writer = writer.mode("overwrite").option("replaceWhere", f"run = '{self._run}'")
            else:
                writer = writer.mode("append").option("txnAppId", f"wiredump-{self._run}")
                writer = writer.option("txnVersion", str(batch))
            _repeated(writer.save)

    def _writer(self, spark: SparkSession, table: str, files: Sequence[Location]) -> Any:
        rows = rows_of(spark, table, files, self._run, self._by)
        writer = rows.write.format("delta").option("mergeSchema", "true")
        writer = writer.option("path", f"{self._out}/{table}")
        keys = keys_of(table, self._by)
        return writer.partitionBy(*keys) if keys else writer


def _of_spark(out: str) -> str:
    """Return a URI as Spark's own clients take it: without a query, S3 under Hadoop's scheme."""
    plain = out.partition("?")[0].rstrip("/")
    return f"s3a://{plain.removeprefix('s3://')}" if plain.startswith("s3://") else plain


# ---- Iceberg ------------------------------------------------------------------------------------


class IcebergSink:
    """Iceberg tables ``CATALOG.NAMESPACE.TABLE``. The session needs the catalog."""

    def __init__(self, out: str, run: str, by: Sequence[str] = ()) -> None:
        self._namespace, self._run, self._by = out, run, tuple(by)

    def prepare(self, spark: SparkSession, tables: Sequence[str]) -> None:
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._namespace}")
        for table in tables:
            if not spark.catalog.tableExists(self._name(table)):
                self._create(spark, table)

    def _name(self, table: str) -> str:
        return f"{self._namespace}.{table}"

    def _create(self, spark: SparkSession, table: str) -> None:
        from pyspark.sql.functions import col

        rows = rows_of(spark, table, [], self._run, self._by)
        writer = rows.writeTo(self._name(table)).using("iceberg")
        # Rows of later releases may have more columns.
        writer = writer.tableProperty("write.spark.accept-any-schema", "true")
        # The whole id, so that it alone tells the files of a run from others.
        writer = writer.tableProperty("write.metadata.metrics.column.run", "full")
        keys = keys_of(table, self._by)
        if keys:
            writer = writer.partitionedBy(*map(col, keys))
        try:
            writer.create()
        except Exception:  # of Java
            if not spark.catalog.tableExists(self._name(table)):  # not by another run, either
                raise

    def write(self, spark: SparkSession, files: Files, batch: int | None = None) -> None:
        for table, sources in files.items():
            if batch is None:
                self._replace(spark, table, sources)
            elif batch > self._last(spark, table):
                self._writer(spark, table, sources, batch).append()

    def _writer(
        self, spark: SparkSession, table: str, files: Sequence[Location], batch: int | None = None
    ) -> Any:
        rows = rows_of(spark, table, files, self._run, self._by)
        writer = rows.writeTo(self._name(table)).option("mergeSchema", "true")
        writer = writer.option("snapshot-property.wiredump.run", self._run)
        if batch is None:
            return writer
        return writer.option("snapshot-property.wiredump.batch", str(batch))

    def _last(self, spark: SparkSession, table: str) -> int:
        """Return the last batch of the run that the table has; 0 without one."""
        rows = spark.sql(
            "SELECT max(CAST(summary['wiredump.batch'] AS BIGINT)) FROM "
            f"{self._name(table)}.snapshots WHERE summary['wiredump.run'] = '{self._run}'"
        )
        return rows.collect()[0][0] or 0

    def _replace(self, spark: SparkSession, table: str, files: Sequence[Location]) -> None:
        from pyspark.sql.functions import col

        try:
            self._writer(spark, table, files).overwrite(col("run") == self._run)
        except Exception as error:  # of Java
            if "Cannot delete file where some, but not all, rows match" not in str(error):
                raise
            # Compaction has put rows of several runs in one file.
            spark.sql(f"DELETE FROM {self._name(table)} WHERE run = '{self._run}'")
            self._writer(spark, table, files).append()
