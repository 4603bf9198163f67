"""``spark.readStream.format("kafka_capture").option("table", NAME)``: the rows that a stream of
``wiredump spark --follow`` commits, as a stream.

::

    requests = spark.readStream.format("kafka_capture").option("table", "requests")
    requests.load("progress/")

The path is the checkpoint of that stream, or its ``--state``, which has the place of the tables. An
offset is how many batches were read. The rows of a committed batch stay as they are, also in a file
that was compacted (``wiredump.tables.compaction``), so that a query that goes on from its own
checkpoint gets every row once. Tables of Delta and Iceberg are streams by their own sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from wiredump.spark.partitioning import keys_of
from wiredump.spark.stream_folder import Settings, StreamError, StreamFolder
from wiredump.spark.table_schema import AT_THE_END, with_timestamps
from wiredump.spark.table_source import OptionError, batches_of
from wiredump.storage import Location
from wiredump.tables.arrow import arrow_schema
from wiredump.tables.compaction import batch_rows, batches_named
from wiredump.tables.run import run_folder

__all__ = ["StreamReader"]


class _File(InputPartition):
    """A file, of which the rows of ``batches`` are read; its path below ``folder`` has the values
    of keys."""

    def __init__(self, folder: str, name: str, batches: range, settings: Settings) -> None:
        super().__init__(name)
        self.folder, self.name, self.batches, self.settings = folder, name, batches, settings


class StreamReader(DataSourceStreamReader):
    """Reads the batches of one table, at most ``maxbatches`` at a time; options have lower-case
    names."""

    def __init__(self, table: str, options: Mapping[str, str]) -> None:
        if table in AT_THE_END:
            raise OptionError(f"a stream of batches lacks the table {table}: read it in a batch")
        self._table = table
        self._place = Location(options.get("path", ""))
        inner = self._place / "wiredump"
        self._store = StreamFolder(str(inner if inner.is_dir() else self._place))
        self._most = int(options["maxbatches"]) if "maxbatches" in options else None

    def initialOffset(self) -> dict[str, Any]:
        return {"batches": 0}

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: object = None
    ) -> dict[str, Any]:
        done = (start or self.initialOffset())["batches"]
        there = max(done, self._store.batches)
        return {"batches": there if self._most is None else min(there, done + self._most)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        settings = self._settings()
        folder = run_folder(Location(settings.out), self._table, settings.run)
        wanted = range(start["batches"], end["batches"])
        found = []
        for name, _ in folder.listed(recursive=True):
            span = batches_named(name.rpartition("/")[2])
            if span is not None and span[0] < wanted.stop and span[1] > wanted.start:
                found.append((span, name))
        return [_File(str(folder), name, wanted, settings) for _, name in sorted(found)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _File)
        settings, file = partition.settings, Location(partition.folder)
        for name in partition.name.split("/"):
            file /= name
        values = self._keys(partition.name, settings)
        for batch in _rows_of(file, partition.batches):
            for name, value in values.items():
                batch = batch.append_column(name, pa.repeat(value, batch.num_rows))
            yield with_timestamps(self._table, batch, settings.run)

    def _keys(self, path: str, settings: Settings) -> dict[str, pa.Scalar]:
        """Return the values of the table's columns that are names of folders."""
        schema = arrow_schema(self._table)
        keys = keys_of(self._table, settings.layout.partition_by)
        names = [name for name in keys if name in schema.names]
        if not names:
            return {}
        *folders, file = path.split("/")
        inside = [each for each in folders if each.partition("=")[0] in names]
        texts = ds.HivePartitioning(pa.schema([(name, pa.string()) for name in names]))
        found = ds.get_partition_keys(texts.parse("/".join([*inside, file])))
        return {
            name: pa.scalar(found.get(name), pa.string()).cast(schema.field(name).type)
            for name in names
        }

    def _settings(self) -> Settings:
        settings = self._store.settings
        if settings is None:
            raise StreamError(
                f"{self._place.shown} is not a checkpoint of `wiredump spark --follow`"
            )
        if settings.layout.form != "parquet":
            raise StreamError(
                f"the tables of this stream are {settings.layout.form}: read them as a stream with "
                f'spark.readStream.format("{settings.layout.form}")'
            )
        if self._table not in settings.tables:
            raise OptionError(f"the stream does not write the table {self._table}")
        return settings


def _rows_of(file: Location, wanted: range) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a file has of these batches."""
    with file.open_input() as opened, pq.ParquetFile(opened) as rows:
        batches = batch_rows(file.name, rows)
    first = sum(count for batch, count in batches if batch < wanted.start)
    left = sum(count for batch, count in batches if batch in wanted)
    for each in batches_of(file):
        taken = each.slice(first, left)
        first, left = max(0, first - each.num_rows), left - taken.num_rows
        if taken.num_rows:
            yield taken
