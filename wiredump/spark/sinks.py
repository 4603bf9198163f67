"""Where the rows of a run become visible in a lake: tables of Delta or Iceberg. Parquet files are
published by ``wiredump.tables.publishing``.

Whole runs and the batches of a stream use one interface. A stream of your own calls, for its batch
7, in ``foreachBatch``::

    sink = sink_of(Layout(form="delta", partition_by=("date", "hour")), out, run, stream)
    sink.prepare(spark, tables)                         once, before the first batch
    sink.write(spark, {"requests": [Location(...)]}, 7)

Files are Parquet with the columns of ``wiredump table``, as tasks wrote them; a sink may move them,
and never needs them again. **A batch that is written again replaces itself or is ignored**, so that
a stream repeats the batch during which it was killed, with the same number. Batches come in order,
from 0. ``stream`` is an id of their numbers: another stream of the same run has another one.
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
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kproto.errors import KprotoError
from wiredump.rows.schema import TABLES
from wiredump.spark.arguments import hadoop_uri
from wiredump.spark.partitioning import key_types, keys_of, require_columns, with_keys
from wiredump.spark.stages import each_of
from wiredump.spark.table_schema import spark_schema, with_timestamps
from wiredump.storage import Location, absolute, shown
from wiredump.tables.compaction import Compacted
from wiredump.tables.publishing import STAGING, Part, RunStaging
from wiredump.tables.reading import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "DeltaSink",
    "Files",
    "Format",
    "IcebergSink",
    "Layout",
    "LayoutError",
    "Sink",
    "SinkPublication",
    "sink_of",
]

Format: TypeAlias = Literal["parquet", "delta", "iceberg"]
ResultT = TypeVar("ResultT")
Files: TypeAlias = Mapping[str, Sequence[Location]]
"""Files by table."""

_ROWS: Final = 4096
_ATTEMPTS: Final = 10
"""Of a change of a table that other writers change at the same time."""
_OPTIMIZE: Final = "spark.databricks.delta.optimize"
_CONTENDED: Final = (
    "DELTA_CONCURRENT", "another concurrent Iceberg operation", "Missing required files to delete",
    "Found conflicting files",
)  # fmt: skip
"""What an error has if another writer changed the table meanwhile."""
_ABSENT: Final = ("PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND")
"""What the error of Spark has for a table of Delta that does not exist."""


class LayoutError(KprotoError):
    """Tables cannot be laid out as wanted."""


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The form of tables, of a batch as of a stream: their format, the columns that divide them
    (``partitioning``), and the folder for files that are not tables: those that are not complete,
    and quarantined ones; None: that of the tables."""

    form: Format = "parquet"
    partition_by: tuple[str, ...] = ()
    staging: str | None = None

    def require(self) -> None:
        """Raise PartitionError for a column that no table has, and LayoutError without a folder for
        files."""
        require_columns(self.partition_by)
        if self.form == "iceberg" and self.staging is None:
            raise LayoutError("--format iceberg needs --staging: a folder for the files of tasks")

    def absolute(self, out: str) -> str:
        """Return the place of the tables as every process finds it."""
        return out if self.form == "iceberg" else absolute(out)

    def place(self, out: str) -> Location:
        """Return the folder for files that are not tables."""
        return Location(absolute(self.staging or out))


class Sink(Protocol):
    """Where rows become visible."""

    def prepare(self, spark: SparkSession, tables: Sequence[str]) -> None:
        """Create tables that do not exist, without rows."""

    def write(self, spark: SparkSession, files: Files, batch: int | None = None) -> None:
        """Make the rows of the files visible as batch ``batch``, or as the whole run. Tables that
        ``files`` lacks are left alone; one without a file has no rows."""

    def has_run(self, spark: SparkSession, tables: Sequence[str]) -> bool:
        """Whether one of the tables, which exist, has a row of the run."""

    def compact(
        self, spark: SparkSession, target_bytes: int, keep_seconds: float | None = None
    ) -> dict[str, Compacted]:
        """Merge small files of the tables that there are, by the means of the format. With
        ``keep_seconds`` delete the files that only versions older than this need."""


def sink_of(layout: Layout, out: str, run: str, stream: str = "") -> Sink:
    """Return the sink of a format. ``out`` is a folder; for Iceberg, ``CATALOG.NAMESPACE``."""
    made = DeltaSink if layout.form == "delta" else IcebergSink
    return made(out, run, layout.partition_by, stream)


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
    return "Concurrent" in text.partition("\n")[0] or any(each in text for each in _CONTENDED)


def _has_run(found: Iterable[DataFrame], run: str) -> bool:
    """Whether one of the tables has a row of the run."""
    runs = [each.select("run") for each in found]
    every = reduce(lambda some, more: some.unionAll(more), runs)
    return bool(every.where(every.run == run).take(1))


def _repeated(change: Callable[[], ResultT]) -> ResultT:
    for _ in range(_ATTEMPTS - 1):
        try:
            return change()
        except Exception as error:  # of Java
            if not _is_contended(error):
                raise
    return change()


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, int]) -> Iterator[None]:
    """Change settings of a session for the block."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, was in before.items():
            if was is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, was)


def _answer(spark: SparkSession, statement: str) -> Any:
    """Return the first row of what a statement returns that changes a table."""
    return _repeated(lambda: spark.sql(statement).collect()[0])


def _some(found: dict[str, Compacted], where: str) -> dict[str, Compacted]:
    """Raise InputError if there are no tables."""
    if not found:
        raise InputError(f"{shown(where)} has no tables ({', '.join(TABLES)})")
    return found


# ---- Delta --------------------------------------------------------------------------------------


class DeltaSink:
    """Delta tables ``OUT/TABLE``. The session needs Delta's extension and catalog."""

    def __init__(self, out: str, run: str, by: Sequence[str] = (), stream: str = "") -> None:
        self._out, self._run, self._by = hadoop_uri(out).rstrip("/"), run, tuple(by)
        self._transactions = "-".join(filter(None, ("wiredump", run, stream)))

    def prepare(self, spark: SparkSession, tables: Sequence[str]) -> None:
        for table in tables:
            if not self._fits(spark, table):
                # An append without rows creates the table, adds the columns that it lacks, or fails
                # because it is divided otherwise.
                _repeated(self._writer(spark, table, []).mode("append").save)

    def _fits(self, spark: SparkSession, table: str) -> bool:
        """Whether a table has all columns, and is divided by the keys."""
        keys = keys_of(table, self._by)
        if not {*spark_schema(table).names, *keys} <= {*self._columns(spark, table)}:
            return False
        if not keys:
            return True
        (detail,) = spark.sql(f"DESCRIBE DETAIL {self._name(table)}").collect()
        return list(detail["partitionColumns"]) == keys

    def write(self, spark: SparkSession, files: Files, batch: int | None = None) -> None:
        for table, sources in files.items():
            writer = self._writer(spark, table, sources)
            if batch is None:
                writer = writer.mode("overwrite").option("replaceWhere", f"run = '{self._run}'")
            else:
                writer = writer.mode("append").option("txnAppId", self._transactions)
                writer = writer.option("txnVersion", str(batch))
            _repeated(writer.save)

    def has_run(self, spark: SparkSession, tables: Sequence[str]) -> bool:
        reader = spark.read.format("delta")
        return _has_run((reader.load(f"{self._out}/{each}") for each in tables), self._run)

    def compact(
        self, spark: SparkSession, target_bytes: int, keep_seconds: float | None = None
    ) -> dict[str, Compacted]:
        found = {}
        settings = {"maxFileSize": target_bytes, "minFileSize": max(1, target_bytes // 2)}
        with _set(spark, {f"{_OPTIMIZE}.{name}": size for name, size in settings.items()}):
            for table in TABLES:
                if not self._columns(spark, table):
                    continue
                made = _answer(spark, f"OPTIMIZE {self._name(table)}")["metrics"]
                size = made["filesRemoved"]["totalSize"]
                found[table] = Compacted(made["numFilesRemoved"], made["numFilesAdded"], size)
                if keep_seconds is not None:
                    keep = f"RETAIN {keep_seconds / 3600:f} HOURS"
                    spark.sql(f"VACUUM {self._name(table)} {keep}").collect()
        return _some(found, self._out)

    def _name(self, table: str) -> str:
        return f"delta.`{self._out}/{table}`"

    def _columns(self, spark: SparkSession, table: str) -> Sequence[str]:
        """Return the columns of a table; none if it does not exist."""
        try:
            return spark.read.format("delta").load(f"{self._out}/{table}").columns
        except Exception as error:  # of Java
            if any(text in str(error) for text in _ABSENT):
                return []
            raise

    def _writer(self, spark: SparkSession, table: str, files: Sequence[Location]) -> Any:
        rows = rows_of(spark, table, files, self._run, self._by)
        writer = rows.write.format("delta").option("mergeSchema", "true")
        writer = writer.option("path", f"{self._out}/{table}")
        keys = keys_of(table, self._by)
        return writer.partitionBy(*keys) if keys else writer


# ---- Iceberg ------------------------------------------------------------------------------------


class IcebergSink:
    """Iceberg tables ``CATALOG.NAMESPACE.TABLE``. The session needs the catalog."""

    def __init__(self, out: str, run: str, by: Sequence[str] = (), stream: str = "") -> None:
        self._namespace, self._run, self._by, self._stream = out, run, tuple(by), stream

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
            elif sources and not self._has_batch(spark, table, sources, batch):
                self._writer(spark, table, sources, batch).append()

    def has_run(self, spark: SparkSession, tables: Sequence[str]) -> bool:
        return _has_run((spark.table(self._name(each)) for each in tables), self._run)

    def compact(
        self, spark: SparkSession, target_bytes: int, keep_seconds: float | None = None
    ) -> dict[str, Compacted]:
        catalog, _, namespace = self._namespace.partition(".")
        wanted = {
            "target-file-size-bytes": target_bytes,
            "min-file-size-bytes": target_bytes // 2,
            "min-input-files": 2,
        }
        options = ", ".join(f"'{name}', '{value}'" for name, value in wanted.items())
        found = {}
        for table in TABLES:
            if not spark.catalog.tableExists(self._name(table)):
                continue
            name = f"table => '{namespace}.{table}'"
            made = _answer(
                spark,
                f"CALL {catalog}.system.rewrite_data_files({name}, options => map({options}))",
            )
            found[table] = Compacted(
                made["rewritten_data_files_count"], made["added_data_files_count"],
                made["rewritten_bytes_count"],
            )  # fmt: skip
            if keep_seconds is not None:
                until = datetime.now(UTC) - timedelta(seconds=keep_seconds)
                older = f"older_than => TIMESTAMP '{until.isoformat()}'"
                _answer(spark, f"CALL {catalog}.system.expire_snapshots({name}, {older})")
        return _some(found, self._namespace)

    def _writer(
        self, spark: SparkSession, table: str, files: Sequence[Location], batch: int | None = None
    ) -> Any:
        rows = rows_of(spark, table, files, self._run, self._by)
        writer = rows.writeTo(self._name(table)).option("mergeSchema", "true")
        writer = writer.option("snapshot-property.wiredump.run", self._run)
        if batch is None:
            return writer
        writer = writer.option("snapshot-property.wiredump.stream", self._stream)
        return writer.option("snapshot-property.wiredump.batch", str(batch))

    def _has_batch(
        self, spark: SparkSession, table: str, files: Sequence[Location], batch: int
    ) -> bool:
        """Whether the table has the rows of a batch of the stream, which batches up to the last one
        in the history of its snapshots are. That ends where a snapshot has expired; if no batch is
        left in it, the rows of the table decide."""
        name = self._name(table)
        rows = spark.sql(
            f"SELECT max(CAST(summary['wiredump.batch'] AS BIGINT)) FROM {name}.snapshots "
            f"WHERE summary['wiredump.run'] = '{self._run}' "
            f"AND summary['wiredump.stream'] = '{self._stream}' "
            f"AND snapshot_id IN (SELECT snapshot_id FROM {name}.history)"
        )
        last = rows.collect()[0][0]
        return self._has_row(spark, table, files[0]) if last is None else batch <= int(last)

    def _has_row(self, spark: SparkSession, table: str, file: Location) -> bool:
        """Whether the table has the first row of a file. No other batch has one that is equal: it
        says where its bytes are."""
        with file.open_input() as opened, pq.ParquetFile(opened) as rows:
            (row,) = next(rows.iter_batches(1)).to_pylist()
        found = spark.table(self._name(table))
        found = found.where(found.run == self._run)
        for column in TABLES[table].columns:
            value = row[column.name]
            if column.name in found.columns and not isinstance(value, list):
                found = found.where(found[column.name].eqNullSafe(value))
        return bool(found.take(1))

    def _replace(self, spark: SparkSession, table: str, files: Sequence[Location]) -> None:
        from pyspark.sql.functions import col

        try:
            self._writer(spark, table, files).overwrite(col("run") == self._run)
        except Exception as error:  # of Java
            if "Cannot delete file where some, but not all, rows match" not in str(error):
                raise
            # Compaction has put rows of several runs in one file.
            delete = f"DELETE FROM {self._name(table)} WHERE run = '{self._run}'"
            _repeated(lambda: spark.sql(delete))
            self._writer(spark, table, files).append()
