"""``spark.readStream.format("kafka_capture").option("table", NAME)``: the rows that a stream of
``wiredump spark --follow`` commits, as a stream.

::

    requests = spark.readStream.format("kafka_capture").option("table", "requests")
    requests.load("progress/")

The path is the checkpoint of that stream, or its ``--state``, which has the place of the tables. An
offset is how many batches were read. Files of a committed batch stay, so that a query that goes on
from its own checkpoint gets every row once. (A row whose topic was named later may have the name or
not.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from wiredump.spark.stream_folder import Settings, StreamError, StreamFolder
from wiredump.spark.table_schema import AT_THE_END, with_timestamps
from wiredump.spark.table_source import OptionError, batches_of
from wiredump.storage import Location
from wiredump.tables.run import run_folder

__all__ = ["StreamReader"]


class _File(InputPartition):
    def __init__(self, path: str, run: str) -> None:
        super().__init__(path)
        self.path, self.run = path, run


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
        return [
            _File(str(path), settings.run)
            for batch in range(start["batches"], end["batches"])
            for path in folder.glob(f"batch-{batch:06d}-*.parquet")
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _File)
        for batch in batches_of(Location(partition.path)):
            yield with_timestamps(self._table, batch, partition.run)

    def _settings(self) -> Settings:
        settings = self._store.settings
        if settings is None:
            raise StreamError(
                f"{self._place.shown} is not a checkpoint of `wiredump spark --follow`"
            )
        if self._table not in settings.tables:
            raise OptionError(f"the stream does not write the table {self._table}")
        return settings
