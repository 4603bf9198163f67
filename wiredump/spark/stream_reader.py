"""``spark.readStream.format("kafka_capture").option("table", NAME)``: what ``wiredump spark
--follow`` commits, as a stream.

::

    requests = spark.readStream.format("kafka_capture").option("table", "requests")
    requests.load("progress/")

There is one engine that continues connections from file to file, ``follow``. This module only reads
its batches: the path is its checkpoint, which has the place of the tables, and an offset is the
number of a committed batch. Files of a committed batch stay, so that a query that goes on from its
own checkpoint gets every row once. (A row whose topic was named later may have the name or not.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from wiredump.spark.checkpoint import Checkpoint, CheckpointError, Settings
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
    """Reads the batches of one table; options have lower-case names."""

    def __init__(self, table: str, options: Mapping[str, str]) -> None:
        if table in AT_THE_END:
            raise OptionError(f"only the end of a stream has the table {table}: read it in a batch")
        self._table = table
        self._checkpoint = Checkpoint(options.get("path", ""))

    def initialOffset(self) -> dict[str, Any]:
        return {"batch": 0}

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: object = None
    ) -> dict[str, Any]:
        return {"batch": self._checkpoint.committed((start or self.initialOffset())["batch"])}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        settings = self._settings()
        folder = run_folder(Location(settings.out), self._table, settings.run)
        return [
            _File(str(path), settings.run)
            for batch in range(start["batch"] + 1, end["batch"] + 1)
            for path in folder.glob(f"batch-{batch:06d}-*.parquet")
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _File)
        for batch in batches_of(Location(partition.path)):
            yield with_timestamps(self._table, batch, partition.run)

    def _settings(self) -> Settings:
        settings = self._checkpoint.settings
        if settings is None:
            raise CheckpointError(
                f"{self._checkpoint.folder.shown} is not a checkpoint of `wiredump spark --follow`"
            )
        if self._table not in settings.tables:
            raise OptionError(f"the stream does not write the table {self._table}")
        return settings
