"""The interface that Spark needs for ``stream_source``: offsets, parts, rows. PySpark 4.2 and
newer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from wiredump.spark.planning import DEFAULT_SPLIT, plan
from wiredump.spark.source import PartError, is_true, partitions_of, read_partition
from wiredump.spark.stream_source import CaptureStream, Offset

__all__ = ["StreamReader"]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the stream. Its rows are not sorted: ``capture`` and ``ordinal`` give the order."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        path = self._options.get("path", "")
        if not path:
            raise PartError("there are no captures: name a folder or a pattern in load(...)")
        self._stream = CaptureStream(path, last_file=is_true(self._options, "lastfile"))
        self._available_now = False

    def initialOffset(self) -> dict[str, Any]:
        return _kept(Offset())

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.get("maxfilespertrigger")
        return ReadAllAvailable() if most is None else ReadMaxFiles(int(most))

    def prepareForTriggerAvailableNow(self) -> None:
        self._available_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        begin = _offset(start)
        if self._available_now:
            self._stream.stop_at(begin)
            self._available_now = False
        most = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        return _kept(self._stream.latest(begin, most))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        files = self._stream.between(_offset(start), _offset(end))
        split_bytes = int(self._options.get("splitbytes", DEFAULT_SPLIT))
        return partitions_of(plan(files, split_bytes), is_true(self._options, "whole"))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition)


def _kept(offset: Offset) -> dict[str, Any]:
    return msgspec.structs.asdict(offset)


def _offset(kept: dict[str, Any]) -> Offset:
    return msgspec.convert(kept, Offset)
