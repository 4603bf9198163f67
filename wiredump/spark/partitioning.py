"""Divide the files of tables into folders by the values of columns, as Hive names them:
``requests/run=ID/date=2026-01-31/api=Fetch/...``.

Each file that a task wrote is read and written once more, by a task of its own, within the staging
folder. A table is divided by those of the columns that it has. ``date`` is the day, in UTC, of the
table's first time.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from kproto.errors import KprotoError
from wiredump.rows.schema import TABLES
from wiredump.spark.stages import answer_batch, each_of
from wiredump.storage import Location
from wiredump.tables.deferred_rows import schema_of
from wiredump.tables.publishing import STAGING, Part
from wiredump.tables.writer import encodings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DATE", "PartitionError", "divide", "require_columns"]

DATE: Final = "date"
_NONE: Final = "part-none.parquet"
_MOST: Final = 10_000
"""Folders of one file: more than that is a mistake, such as a column with times."""
_TEXTS: Final = frozenset({"string", "bool"})
_TYPES: Final = _TEXTS | {"int16", "int32", "int64"}

_Parts = Mapping[str, Part]


class PartitionError(KprotoError):
    """A column by which no table can be divided."""


class _Divided(msgspec.Struct):
    table: str
    parts: list[Part]


def require_columns(names: Iterable[str]) -> None:
    """Raise PartitionError for a name that is neither ``date`` nor a column of a table."""
    possible = {DATE, *(each.name for table in TABLES.values() for each in table.columns
                        if each.type in _TYPES)}  # fmt: skip
    for name in names:
        if name not in possible:
            raise PartitionError(
                f"no table has a column {name!r} to divide it by: name columns of text or numbers, "
                f"or {DATE}"
            )


def divide(
    spark: SparkSession, folder: str, by: Sequence[str], tables: Iterable[str],
    parts: Iterable[_Parts],
) -> list[_Parts]:  # fmt: skip
    """Return the parts of ``tables`` after dividing them."""
    kept: list[_Parts] = []
    work = []
    empty = set(tables)
    for name, part in ((name, part) for each in parts for name, part in each.items()):
        empty.discard(name)
        columns = _columns(name, by)
        if columns:
            work.append((folder, name, part.file, columns))
        else:
            kept.append({name: part})
    if work:
        for row in each_of(spark, work, _divide).collect():
            divided = msgspec.json.decode(row[0], type=_Divided)
            kept += [{divided.table: part} for part in divided.parts]
    return kept + [_empty(folder, name, _columns(name, by)) for name in sorted(empty)]


def _columns(table: str, by: Sequence[str]) -> list[str]:
    has = {each.name for each in TABLES[table].columns}
    return [name for name in by if name in has or (name == DATE and _time(table) is not None)]


def _time(table: str) -> str | None:
    return next((each.name for each in TABLES[table].columns if each.is_time), None)


def _divide(work: tuple[str, str, str, list[str]]) -> Iterator[pa.RecordBatch]:
    folder, table, file, by = work
    staging = Location(folder) / STAGING / table
    source = staging / file
    divided = _Divided(table, [])

    def visit(written: ds.WrittenFile) -> None:
        relative = written.path.removeprefix(staging.path).lstrip("/")
        divided.parts.append(Part(relative, written.metadata.num_rows))

    with pq.ParquetFile(source.path, filesystem=source.filesystem) as rows:
        schema = rows.schema_arrow
        full = schema.append(pa.field(DATE, pa.string())) if DATE in by else schema
        kept = reduce(lambda each, name: each.remove(each.get_field_index(name)), by, full)
        ds.write_dataset(
            (_dated(table, batch, full) for batch in rows.iter_batches()),
            staging.path,
            schema=full,
            format=ds.ParquetFileFormat(),
            file_options=ds.ParquetFileFormat().make_write_options(**encodings(kept)),
            partitioning=ds.partitioning(
                pa.schema([full.field(name) for name in by]), flavor="hive"
            ),
            basename_template=f"part-{uuid.uuid4().hex}-{{i}}.parquet",
            filesystem=staging.filesystem,
            file_visitor=visit,
            existing_data_behavior="overwrite_or_ignore",
            max_partitions=_MOST,
            use_threads=False,  # so that rows keep their order
        )
    yield answer_batch(msgspec.json.encode(divided).decode())


def _dated(table: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if len(schema) == batch.num_columns:
        return batch
    times = batch.column(_time(table)).view(pa.timestamp("ns"))
    dates = pc.strftime(times.cast(pa.timestamp("s"), safe=False), "%Y-%m-%d")
    return pa.RecordBatch.from_arrays([*batch.columns, dates], schema=schema)


def _empty(folder: str, table: str, by: list[str]) -> _Parts:
    """Write a file without rows, as deep as others would be: readers expect the same columns in the
    names of all folders, and guess types from the values."""
    types = {each.name: each.type for each in TABLES[table].columns}
    values = {name: "none" if types.get(name) in _TEXTS else "0" for name in by}
    if DATE in by:
        values[DATE] = "1970-01-01"
    name = "/".join([*(f"{column}={value}" for column, value in values.items()), _NONE])
    place = Location(folder) / STAGING / table / name
    place.parent.mkdir()
    schema = schema_of(table)
    own = pa.schema([field for field in schema if field.name not in by], schema.metadata)
    pq.write_table(own.empty_table(), place.path, filesystem=place.filesystem)
    return {table: Part(name, 0)}
