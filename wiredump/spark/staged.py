"""Packets between two Spark jobs: an Arrow file for each part, which Python tasks write and read.

One batch is held at a time. With Parquet files of Spark's own, Java would hold a block of each
column without looking into it, and load the code for both formats; this way a large capture takes
the same steps as a small one, which needs one job.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from wiredump.spark.columns import PACKET_SCHEMA, SPLIT, SQL_SCHEMA
from wiredump.spark.splits import Split, read_runs
from wiredump.spark.stages import answer_batch, each_of
from wiredump.storage import Location
from wiredump.tables.parts import SplitNote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Staged", "stage", "staged_rows"]

_SCHEMA: Final[pa.Schema] = PACKET_SCHEMA


class Staged(msgspec.Struct):
    """What a task wrote of a part; ``notes`` are among the rows, too."""

    file: str
    capture: int
    notes: list[SplitNote]


def stage(spark: SparkSession, splits: Sequence[Split], folder: str) -> list[Staged]:
    """Write the rows of every part into ``folder``. A task may run twice, or die while writing:
    only the files in results count."""
    work = [(msgspec.msgpack.encode(split), folder) for split in splits]
    rows = each_of(spark, work, _stage).collect()
    return [msgspec.json.decode(row[0], type=Staged) for row in rows]


def staged_rows(spark: SparkSession, staged: Sequence[Staged]) -> DataFrame:
    """Return the staged rows, with a task for each file."""
    return each_of(spark, [each.file for each in staged], _rows, SQL_SCHEMA)


def _stage(work: tuple[bytes, str]) -> Iterator[pa.RecordBatch]:
    encoded, folder = work
    split = msgspec.msgpack.decode(encoded, type=Split)
    place = Location(folder)
    place.mkdir()
    file = place / f"{uuid.uuid4().hex}.arrow"
    written = Staged(str(file), split.capture, [])
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with file.create() as sink, pa.ipc.new_stream(sink, _SCHEMA, options=options) as out:
        for batch in read_runs(split):
            out.write_batch(batch)
            written.notes += _notes(batch)
    yield answer_batch(msgspec.json.encode(written).decode())


def _notes(batch: pa.RecordBatch) -> Iterable[SplitNote]:
    kinds: Any = batch.column("kind").to_numpy(zero_copy_only=False)
    for row in (kinds == SPLIT).nonzero()[0].tolist():
        yield msgspec.msgpack.decode(batch.column("payload")[row].as_py(), type=SplitNote)


def _rows(file: str) -> Iterator[pa.RecordBatch]:
    with Location(file).open_input() as source, pa.ipc.open_stream(source) as batches:
        yield from batches
