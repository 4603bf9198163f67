"""The columns by which tables are divided, and folders of Parquet files that Hive would name so:
``requests/run=ID/date=2026-01-31/hour=7/api=Fetch/...``.

``date`` and ``hour`` are those of the table's first time, in UTC. Another key is a column, of any
table that has it (``api``) or of one (``requests.api``). Spark's own ``partitionBy`` divides tables
of Delta and Iceberg. Parquet files are divided by pyarrow, within the tasks, because they may be in
stores that Spark has no client for.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from kproto.errors import KprotoError
from wiredump.rows.columns import TypeName
from wiredump.rows.schema import TABLES
from wiredump.spark.stages import answer_batch, each_of
from wiredump.storage import Location
from wiredump.tables.arrow import file_schema
from wiredump.tables.publishing import Part
from wiredump.tables.writer import encodings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "DATE",
    "HOUR",
    "PartitionError",
    "divide",
    "key_types",
    "keys_of",
    "require_columns",
    "with_keys",
    "write_empty",
]

DATE: Final = "date"
HOUR: Final = "hour"
_MADE: Final = {DATE: pa.date32(), HOUR: pa.int32()}
_NONE: Final = "part-none.parquet"
_FEW: Final = 20_000
"""Rows that the driver divides itself."""
_SECOND_NS: Final = 1_000_000_000
_HOUR_NS: Final = 3600 * _SECOND_NS
_MOST: Final = 10_000
"""Folders of one file: more than that is a mistake, such as a column with times."""
_TEXTS: Final = frozenset({"string", "bool"})
_TYPES: Final[frozenset[TypeName]] = frozenset({"string", "bool", "int16", "int32", "int64"})

_Parts = Mapping[str, Part]


class PartitionError(KprotoError):
    """A column by which no table can be divided."""


class _Divided(msgspec.Struct):
    """The files made of one, and the folders that they belong in."""

    table: str
    files: list[tuple[str, str, int]]


_DIVIDED: Final = msgspec.json.Decoder(_Divided)


def require_columns(names: Iterable[str]) -> None:
    """Raise PartitionError for a name that is not a key of any table."""
    for name in names:
        if not any(keys_of(table, [name]) for table in TABLES):
            raise PartitionError(
                f"no table has a column {name!r} to divide it by: name columns of text or numbers, "
                f"as COLUMN or TABLE.COLUMN, or {DATE} and {HOUR}"
            )


def keys_of(table: str, by: Iterable[str]) -> list[str]:
    """Return the columns by which a table is divided, in order."""
    columns = {each.name for each in TABLES[table].columns if each.type in _TYPES}
    if _time(table) is not None:
        columns |= _MADE.keys()
    owned = (name.rpartition(".") for name in by)
    keys = (key for owner, _, key in owned if owner in ("", table) and key in columns)
    return list(dict.fromkeys(keys))


def key_types(table: str, keys: Iterable[str]) -> dict[str, Any]:
    """Return Spark's types of the keys that are not columns of the table."""
    from pyspark.sql.types import DateType, IntegerType

    types = {DATE: DateType(), HOUR: IntegerType()}
    return {name: types[name] for name in keys if name in types}


def with_keys(table: str, rows: pa.RecordBatch, keys: Iterable[str]) -> pa.RecordBatch:
    """Return the rows with the keys that they lack."""
    for name in keys:
        if name in _MADE:
            times = rows.column(_time(table)).view(pa.timestamp("ns"))
            made = times.cast(pa.date32(), safe=False) if name == DATE else pc.hour(times)
            rows = rows.append_column(name, made.cast(_MADE[name]))
    return rows


def _time(table: str) -> str | None:
    return next((each.name for each in TABLES[table].columns if each.is_time), None)


def divide(
    spark: SparkSession, staging: Location, by: Sequence[str], tables: Iterable[str],
    parts: Sequence[_Parts],
) -> list[_Parts]:  # fmt: skip
    """Return the parts of ``tables``, files in ``staging``, after dividing them: few rows here,
    since a job of a task a file would take longer."""
    kept: list[_Parts] = []
    sources: list[tuple[str, Location]] = []
    empty = set(tables)
    for name, part in ((name, part) for each in parts for name, part in each.items()):
        empty.discard(name)
        if keys_of(name, by):
            sources.append((name, staging / name / part.file))
        else:
            kept.append({name: part})
    rows = sum(part.rows for each in parts for part in each.values())
    for divided in _divided(spark, sources, by, rows):
        for file, folder, rows in divided.files:
            kept.append({divided.table: Part(f"{folder}/{Location(file).name}", rows)})
    for name in sorted(empty):
        file = write_empty(staging / name, name, keys_of(name, by), _NONE)
        kept.append({name: Part(file, 0)})
    return kept


def _divided(
    spark: SparkSession, files: Sequence[tuple[str, Location]], by: Sequence[str], rows: int
) -> list[_Divided]:
    work = [(table, str(file), keys_of(table, by)) for table, file in files]
    if not work:
        return []
    if rows <= _FEW:
        return [_moved(*each) or _divide(*each) for each in work]
    made = each_of(spark, work, _divide_in_task).collect()
    return [_DIVIDED.decode(row[0]) for row in made]


def _divide_in_task(work: tuple[str, str, list[str]]) -> Iterator[pa.RecordBatch]:
    yield answer_batch(msgspec.json.encode(_divide(*work)).decode())


def _moved(table: str, path: str, keys: list[str]) -> _Divided | None:
    """Move a file to the folder in which all of its rows belong; None if its footer does not show
    that."""
    if not _MADE.keys() >= set(keys):
        return None  # columns are removed from the files
    source = Location(path)
    with pq.ParquetFile(source.path, filesystem=source.filesystem) as file:
        about = file.metadata
    span = _span_of(about, _time(table))
    if span is None or span[0] // _HOUR_NS != span[1] // _HOUR_NS:
        return None
    at = datetime.fromtimestamp(span[0] // _SECOND_NS, UTC)
    values = {DATE: at.date().isoformat(), HOUR: at.hour}
    folder = "/".join(f"{key}={values[key]}" for key in keys)
    target = source.parent / folder / source.name
    target.parent.mkdir()
    source.publish(target)
    return _Divided(table, [(str(target), folder, about.num_rows)])


def _span_of(about: pq.FileMetaData, column: str | None) -> tuple[int, int] | None:
    """Return the smallest and the largest value of a column; None if a value or a statistic is
    missing."""
    number = next(
        (each for each in range(about.num_columns) if about.schema.column(each).path == column),
        None,
    )
    if number is None or not about.num_row_groups:
        return None
    groups = (about.row_group(each) for each in range(about.num_row_groups))
    found = [group.column(number).statistics for group in groups]
    if any(each is None or not each.has_min_max or each.null_count for each in found):
        return None
    return min(each.min for each in found), max(each.max for each in found)


def _divide(table: str, path: str, keys: list[str]) -> _Divided:
    """Write the rows of a file beside it, into folders."""
    source = Location(path)
    base = source.parent
    divided = _Divided(table, [])

    def visit(written: ds.WrittenFile) -> None:
        relative = written.path.removeprefix(base.path).lstrip("/")
        folder = relative.rpartition("/")[0]
        divided.files.append((str(base / relative), folder, written.metadata.num_rows))

    with pq.ParquetFile(source.path, filesystem=source.filesystem) as rows:
        schema = rows.schema_arrow
        for name in keys:
            schema = schema.append(pa.field(name, _MADE[name])) if name in _MADE else schema
        kept = pa.schema([field for field in schema if field.name not in keys])
        ds.write_dataset(
            (with_keys(table, batch, keys) for batch in rows.iter_batches()),
            base.path,
            schema=schema,
            format=ds.ParquetFileFormat(),
            file_options=ds.ParquetFileFormat().make_write_options(**encodings(kept)),
            partitioning=ds.partitioning(
                pa.schema([schema.field(name) for name in keys]), flavor="hive"
            ),
            basename_template=f"part-{uuid.uuid4().hex}-{{i}}.parquet",
            filesystem=base.filesystem,
            file_visitor=visit,
            existing_data_behavior="overwrite_or_ignore",
            max_partitions=_MOST,
            use_threads=False,  # so that rows keep their order
        )
    divided.files.sort(key=lambda each: each[1])
    return divided


def write_empty(folder: Location, table: str, keys: Iterable[str], name: str) -> str:
    """Write a file without rows, and return its name in the folder. It is as deep as others would
    be: readers expect the same columns in the names of all folders, and guess types from the
    values."""
    types = {each.name: each.type for each in TABLES[table].columns}
    values = {key: "none" if types.get(key) in _TEXTS else "0" for key in keys}
    if DATE in values:
        values[DATE] = "1970-01-01"
    name = "/".join([*(f"{key}={value}" for key, value in values.items()), name])
    place = folder / name
    place.parent.mkdir()
    schema = file_schema(table)
    own = pa.schema([field for field in schema if field.name not in values], schema.metadata)
    rows = own.empty_table()
    pq.write_table(rows, place.path, filesystem=place.filesystem, coerce_timestamps="us")
    return name
