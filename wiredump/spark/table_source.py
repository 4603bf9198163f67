"""``spark.read.format("kafka_capture").option("table", NAME)``: the rows of a table.

A data source cannot shuffle. Each task therefore reads the headers of all packets and takes the
connections of its share, as a process of ``wiredump table --jobs`` does. Rows that depend on
several connections come from one task; the driver reads the names of topics and sends them to every
task.

A task writes its rows to Parquet files in a temporary folder of its machine and reads them back, so
that its memory does not depend on their number. The rows are those of ``wiredump table``, by the
same code.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kproto.errors import KprotoError
from wiredump.readers.share import Share
from wiredump.rows.schema import TABLES, UNDECODED
from wiredump.sources.kinds import kind_of
from wiredump.sources.request_logs import time_zone
from wiredump.spark.push_down import exchange_filter, needs_bodies
from wiredump.spark.table_schema import AT_THE_END, spark_schema, with_timestamps
from wiredump.storage import Location
from wiredump.tables.deferred_merge import Names, named, read_names
from wiredump.tables.deferred_rows import NAMED, unnamed
from wiredump.tables.jobs import write_share
from wiredump.tables.making import make
from wiredump.tables.publishing import STAGING
from wiredump.tables.run import derived_run
from wiredump.tables.work import Work, passing_folder

__all__ = ["FilteredReader", "OptionError", "TableReader", "batches_of", "columns_of", "table_of"]

_BYTES_A_TASK: Final = 64 << 20
_MOST_TASKS: Final = 32
"""With more tasks, reading the headers of all packets in each takes longer than decoding does."""


_ROWS: Final = 4096


class OptionError(KprotoError):
    """An option of the data source is invalid."""


def table_of(options: Mapping[str, str]) -> str:
    """Return the option ``table``. Raises OptionError if it is missing or unknown."""
    name = options.get("table")
    if name not in TABLES:
        problem = "set the option table" if name is None else f"there is no table {name!r}"
        raise OptionError(f"{problem}; the tables are {', '.join(TABLES)}")
    return name


def columns_of(table: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the option ``columns``: names of columns, in the order of the table; empty for all.
    Raises OptionError for an unknown one."""
    wanted = {name.strip() for name in options.get("columns", "").split(",")} - {""}
    known = spark_schema(table).names
    if unknown := sorted(wanted.difference(known)):
        raise OptionError(
            f"the table {table} has no column {', '.join(unknown)}; its columns are "
            f"{', '.join(known)}"
        )
    return tuple(name for name in known if name in wanted)


class _Partition(InputPartition):
    """A share of the connections. ``names`` has the rows of ``topics`` as an Arrow stream, if there
    are several shares and the table needs them."""

    def __init__(self, work: Work, kinds: Sequence[str], share: Share, names: bytes) -> None:
        super().__init__(share.number)
        self.work, self.kinds, self.share, self.names = work, kinds, share, names


class TableReader(DataSourceReader):
    """Reads one table of ``paths``; options have lower-case names."""

    def __init__(self, table: str, paths: list[str], options: Mapping[str, str]) -> None:
        self._table = table
        self._options = options
        self._columns = columns_of(table, options)
        self._rotated = _flag(options, "rotated", False)
        self._work = _work(table, paths, options)
        if self._columns and not needs_bodies(table, self._columns):
            self._work = msgspec.structs.replace(self._work, bodies=False)

    def partitions(self) -> list[InputPartition]:
        work = self._work
        paths = work.paths.values()
        work = msgspec.structs.replace(work, run=work.run or derived_run(paths))
        kinds = [kind_of(path) for path in paths]
        if work.only is not None and work.only.is_empty:
            return []
        count = self._tasks()
        names = _names(work) if count > 1 and self._table in NAMED and work.bodies else b""
        return [_Partition(work, kinds, Share(number, count), names) for number in range(count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Partition)
        work, share = partition.work, partition.share
        with passing_folder() as folder:
            work = msgspec.structs.replace(work, out=os.path.join(folder, "tables"))
            if share.of == 1:
                made = _whole(work, self._rotated)
            else:
                made = _shared(work, partition.kinds, share, partition.names)
            for batch in made:
                rows = with_timestamps(self._table, batch, work.run)
                yield rows.select(self._columns) if self._columns else rows

    def _tasks(self) -> int:
        if self._table in AT_THE_END or self._rotated:
            return 1
        tasks = self._options.get("tasks")
        if tasks is not None:
            return max(1, int(tasks))
        size = sum(Location(path).info().size for path in self._work.paths.values())
        return max(1, min(_MOST_TASKS, -(-size // _BYTES_A_TASK)))


class FilteredReader(TableReader):
    """The same, for sessions that hand over filters (``push_down.is_pushing``)."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        only = exchange_filter(self._table, filters)
        self._work = msgspec.structs.replace(self._work, only=only)
        return filters  # which Spark applies again: more exchanges may have rows


def _whole(work: Work, rotated: bool) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all connections."""
    make(work, rotated=rotated)
    (table,) = work.tables
    for file in (Location(work.out) / table).glob("**/*.parquet"):
        yield from batches_of(file)


def _shared(
    work: Work, kinds: Sequence[str], share: Share, names: bytes
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a share, those that need a topic's name with it."""
    (table,) = work.tables
    parts = write_share(work, kinds, share).parts
    staging = Location(work.out) / STAGING
    if table in parts:
        yield from batches_of(staging / table / parts[table].file)
    if unnamed(table) in parts:
        known = Names(pa.ipc.open_stream(names).read_all())
        file = staging / unnamed(table) / parts[unnamed(table)].file
        yield from (batch for batch, *_ in named(known, table, file))


def batches_of(file: Location) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file."""
    with file.open_input() as opened, pq.ParquetFile(opened) as rows:
        yield from rows.iter_batches(batch_size=_ROWS)


def _names(work: Work) -> bytes:
    """Read the names of all topics."""
    with passing_folder() as folder:
        out = os.path.join(folder, "tables")
        make(msgspec.structs.replace(work, out=out, tables=("topics",), only=None))
        rows = read_names(next((Location(out) / "topics").glob("**/*.parquet")))
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, rows.schema) as out:
        out.write_table(rows)
    return bytes(stream.getvalue())


# ---- options ----------------------------------------------------------------------------------


def _work(table: str, paths: list[str], options: Mapping[str, str]) -> Work:
    bodies = _flag(options, "bodies", True)
    if not bodies and table not in UNDECODED:
        raise OptionError(f"the table {table} needs bodies: leave out the option bodies")
    memory, most = options.get("memory"), options.get("max_decompressed")
    return Work(
        out="", paths=dict(enumerate(paths)), tables=(table,),
        dialect=options.get("dialect", "auto"),
        ports=tuple(int(port) for port in options.get("ports", "9092").split(",")),
        bodies=bodies, values=_flag(options, "values", False),
        secrets=_flag(options, "secrets", False), keylog=options.get("keylog"),
        zone=time_zone(options.get("zone", "UTC")),
        memory=None if memory is None else int(memory),
        max_decompressed=None if most is None else int(most), run=options.get("run", ""),
    )  # fmt: skip


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise OptionError(f"the option {name} is {text!r}: use true or false")
    return text == "true"
