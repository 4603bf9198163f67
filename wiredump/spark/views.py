"""Tables as views of a session of Spark, in any format and store, for the questions of ``wiredump
ask``, for the report, and for queries of your own.

::

    wiredump.spark.register(spark, "s3a://lake/kafka")
    spark.sql("SELECT api, count(*) FROM requests GROUP BY api")
    spark.sql(question("slow-apis").query)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.functions import coalesce, col, expr, lit
from pyspark.sql.types import DataType

from wiredump.questions.answers import Answer, QueryError
from wiredump.questions.twins import FOLDED, TWINS, TWINS_TABLE
from wiredump.rows.schema import SCHEMA_VERSION, TABLES
from wiredump.spark.functions import register_functions
from wiredump.spark.table_schema import spark_schema
from wiredump.tables.reading import InputError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["CATALOG", "SparkTables", "register"]

CATALOG: Final = "catalog"
"""The format of tables that are in a namespace of a catalog."""

_OWN_SCHEMA: Final = frozenset({"delta", "iceberg", "hudi"})
"""Formats that know the schema of a table."""

_ABSENT: Final = frozenset({"PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "DELTA_TABLE_NOT_FOUND"})

_TIMED: Final = 6
"""The version of the schema since which files have a timestamp beside each time."""

_HOUR: Final = 3_600_000_000_000
_DAY: Final = 24 * _HOUR

_TYPES: Final = {
    "tinyint": "SMALLINT", "int": "INTEGER", "string": "VARCHAR", "binary": "BLOB",
}  # fmt: skip
"""DuckDB's names of types, which the others have but for capitals."""


def register(
    spark: SparkSession, tables: str | Mapping[str, DataFrame], *, form: str = "parquet",
    dialect: str = "kafka",
) -> SparkTables:  # fmt: skip
    """Create a temporary view of each table, and the functions of queries (``functions``).

    ``tables`` is a folder that has a folder for each table, as a path or URI for Spark, in the
    format ``form`` (parquet, delta, iceberg, or another of Spark's); or a namespace of a catalog
    (``lake.kafka``) if ``form`` is ``catalog``; or data frames by the names of tables. Columns that
    a table lacks are null in its view, but for timestamps, ``date`` and ``hour``; views of
    tables that are missing are empty. ``dialect`` is that of the functions that decode frames.
    Raises InputError if there is none of the tables.
    """
    found = {}
    for name in TABLES:
        view = _view(spark, name, tables, form)
        if view is not None:
            found[name] = view
    if not found:
        where = "these data frames" if isinstance(tables, Mapping) else tables
        raise InputError(f"{where} has no tables ({', '.join(TABLES)})")
    if "lineage" in found and found["lineage"].where(f"schema < {_TIMED}").take(1):
        found = {name: _with_timestamps(name, view) for name, view in found.items()}
    views = {
        name: found.get(name, spark.createDataFrame([], spark_schema(name))) for name in TABLES
    }
    views["connections"].createOrReplaceTempView("connections")
    twins = spark.sql(TWINS_TABLE)
    if "connections" in found and twins.take(1):
        for name in FOLDED & found.keys():
            views[name] = views[name].join(twins, ["run", "connection"], "left_anti")
    twins.createOrReplaceTempView(TWINS)
    for name, view in views.items():
        view.createOrReplaceTempView(name)
    register_functions(spark, dialect)
    return SparkTables(spark, list(found))


class SparkTables:
    """The tables that are registered in a session (``wiredump.questions.answers.Tables``)."""

    def __init__(self, spark: SparkSession, names: Sequence[str]) -> None:
        self._spark = spark
        self.names = names

    def require_schema(self) -> None:
        """Raise InputError for tables of another version of the schema, which ``lineage`` tells."""
        query = "SELECT DISTINCT schema FROM lineage WHERE schema IS NOT NULL ORDER BY schema"
        (found,) = self.answers([query])
        others = [version for (version,) in found.rows if version > SCHEMA_VERSION]
        if others:
            raise InputError(
                f"the tables have version {others[0]} of their schema, but this release reads "
                f"version {SCHEMA_VERSION}: use a newer release"
            )

    def answers(self, queries: Iterable[str]) -> Iterator[Answer]:
        """Yield what each query selects, from a job of its own. Raises QueryError."""
        for query in queries:
            try:
                frame = self._spark.sql(query)
                rows = frame.toArrow()
            except PySparkException as error:
                raise QueryError(_message_of(error)) from error
            columns = [map(_plain, column.to_pylist()) for column in rows.columns]
            types = tuple(_type_name(field.dataType) for field in frame.schema)
            yield Answer(tuple(frame.columns), types, list(zip(*columns, strict=True)))


def _view(
    spark: SparkSession, name: str, tables: str | Mapping[str, DataFrame], form: str
) -> DataFrame | None:
    """Return a table with all of its columns; None if there is none."""
    schema = spark_schema(name)
    try:
        if isinstance(tables, Mapping):
            frame = tables.get(name)
            if frame is None:
                return None
        elif form == CATALOG:
            frame = spark.table(f"{tables}.{name}")
        else:
            reader = spark.read.format(form)
            if form not in _OWN_SCHEMA:
                reader = reader.schema(schema)
            frame = reader.load(f"{tables.rstrip('/')}/{name}")
        has = set(frame.columns)
    except AnalysisException as error:
        if error.getCondition() in _ABSENT:
            return None
        raise QueryError(f"{tables}: not the tables of a run: {_message_of(error)}") from error
    missing = {
        field.name: lit(None).cast(field.dataType) for field in schema if field.name not in has
    }
    missing |= {column: made for column, made in _dates(name).items() if column not in has}
    frame = frame.withColumns(missing) if missing else frame
    # Without a folder for each run there is one, which has no name.
    return frame.withColumn("run", coalesce(col("run"), lit("")))


def _with_timestamps(table: str, rows: DataFrame) -> DataFrame:
    """Return rows of which some files lack timestamps. Spark no longer skips parts of files by
    them."""
    made = {
        name: coalesce(col(name), expr(f"timestamp_micros({source} div 1000)"))
        for name, source in TABLES[table].timestamps.items()
    }
    return rows.withColumns(made) if made else rows


def _dates(table: str) -> dict[str, Column]:
    """Return ``date`` and ``hour`` of a table's first time, in UTC whatever the session's zone."""
    times = list(TABLES[table].timestamps.values())
    if not times:
        return {}
    days, rest = f"{times[0]} - pmod({times[0]}, {_DAY})", f"pmod({times[0]}, {_DAY})"
    return {
        "date": expr(f"date_from_unix_date(CAST(({days}) div {_DAY} AS INT))"),
        "hour": expr(f"CAST({rest} div {_HOUR} AS INT)"),
    }


def _plain(value: Any) -> Any:
    """As DuckDB answers: timestamps in UTC without their zone."""
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value


def _type_name(type_: DataType) -> str:
    name = type_.simpleString()
    return _TYPES.get(name, name.upper())


def _message_of(error: PySparkException) -> str:
    """Spark's message in one line, without the plan."""
    return str(error).partition("; line ")[0].partition("\n")[0].strip()
