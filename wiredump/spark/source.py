"""``spark.read.format("kafka_capture")``: captures as a data source of Spark's, for any job.

::

    from wiredump.spark import KafkaCapture
    spark.dataSource.register(KafkaCapture)
    packets = spark.read.format("kafka_capture").load(["a.pcap", "b.pcapng"])

With the option ``table``, rows are those of a table (``table_source``). Without it, a row is a TCP
segment (``kind`` 0), without its payload where ``payload_at`` says where that is in
the file; see ``columns``. Paths and URIs may be patterns.
Options: ``splitBytes`` (64 MiB), ``whole`` (true: a task a file).

Whether the parts of a file fit together can only be told by all of their notes (``kind`` 3). Here
each task looks at where the next part will begin; where that is not where its own ended, or a part
cannot be read without the others, the job fails and says so. ``wiredump spark`` reads such a file
once more, and right.

``spark.readStream`` takes the tables that ``wiredump spark --follow`` writes: see
``stream_reader``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from kproto.errors import KprotoError
from wiredump.spark.columns import SPLIT, SQL_SCHEMA
from wiredump.spark.heads import head_of
from wiredump.spark.planning import DEFAULT_SPLIT, plan
from wiredump.spark.record_boundaries import find_record
from wiredump.spark.splits import Split, read_split
from wiredump.spark.stream_reader import StreamReader
from wiredump.spark.table_schema import spark_schema
from wiredump.spark.table_source import OptionError, TableReader, table_of
from wiredump.storage import Location, expand
from wiredump.tables.parts import SplitNote

__all__ = [
    "KafkaCapture",
    "PartError",
    "is_true",
    "partitions_of",
    "read_partition",
]


class PartError(KprotoError):
    """A part of a capture cannot be read on its own."""


class _Partition(InputPartition):
    def __init__(self, split: bytes) -> None:
        super().__init__(split)
        self.split = split


class KafkaCapture(DataSource):
    """The data source, which is registered by name; see the module."""

    @classmethod
    def name(cls) -> str:
        return "kafka_capture"

    def schema(self) -> Any:
        table = table_of(self.options)
        return SQL_SCHEMA if table is None else spark_schema(table)

    def reader(self, schema: Any) -> DataSourceReader:
        options = {name.lower(): value for name, value in self.options.items()}
        table = table_of(options)
        return _Reader(options) if table is None else TableReader(table, _paths(options), options)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        options = {name.lower(): value for name, value in self.options.items()}
        table = table_of(options)
        if table is None:
            raise OptionError("a stream has tables only: set the option table")
        return StreamReader(table, options)


class _Reader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        paths = _paths(self._options)
        merged = len(paths) > 1
        split_bytes = int(self._options.get("splitbytes", DEFAULT_SPLIT))
        splits = plan(list(enumerate(paths)), split_bytes, merged=merged)
        return partitions_of(splits, is_true(self._options, "whole"))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition)


def is_true(options: dict[str, str], name: str) -> bool:
    """Whether an option is set."""
    return options.get(name, "false").lower() == "true"


def read_partition(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield its rows. Raises PartError if it cannot be read on its own."""
    assert isinstance(partition, _Partition)
    split = msgspec.msgpack.decode(partition.split, type=Split)
    last = None
    for batch in read_split(split):
        yield batch
        last = batch
    if last is not None:
        _check(split, _note(last))


def partitions_of(splits: list[Split], whole: bool) -> list[InputPartition]:
    """Return a task for each part or, with ``whole``, for each file."""
    if whole:
        splits = [split.of_whole_file() for split in splits if split.start == 0]
    return [_Partition(msgspec.msgpack.encode(split)) for split in splits]


def _paths(options: dict[str, str]) -> list[str]:
    given = json.loads(options["paths"]) if "paths" in options else [options.get("path", "")]
    found = []
    for path in given:
        found += expand(path, paths=True)
    if not any(found):
        raise PartError("there are no captures: name them in load(...)")
    return found


def _note(batch: pa.RecordBatch) -> SplitNote:
    row = batch.slice(batch.num_rows - 1).to_pylist()[0]
    assert row["kind"] == SPLIT
    return msgspec.msgpack.decode(row["payload"], type=SplitNote)


def _check(split: Split, note: SplitNote) -> None:
    """Raise PartError unless the next part begins where this one ended."""
    if note.whole:
        return
    problem = note.trouble
    if note.damaged and split.end < split.size:
        problem = "the file is damaged"
    elif note.contexts and split.end < split.size:
        problem = "what follows takes a block that stands within this part"
    elif split.end < split.size and note.end < split.size:
        with Location(split.path).open_ranged() as file:
            head = head_of(file)
            assert head is not None
            if find_record(file, split.size, head, split.end) != note.end:
                problem = "the next part would begin in the midst of a packet"
    elif note.first is None and note.packets:
        problem = "no packet was found"
    if problem:
        name = Location(split.path).name
        raise PartError(
            f"{name}, bytes {split.start} to {split.end}: {problem}; "
            "set the option whole to true, or use `wiredump spark`, which finds the boundary"
        )
