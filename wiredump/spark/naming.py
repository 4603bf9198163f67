"""Fill in topic names in rows that were set aside without one, with a task for each file."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from wiredump.spark.stages import answer_batch, each_of
from wiredump.storage import Location
from wiredump.tables.deferred_merge import Names, name_rows, read_names
from wiredump.tables.publishing import STAGING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Given", "changed_names", "give", "table_of_file"]


class Given(msgspec.Struct):
    """The file made of ``source``: its rows, and the topic ids without a name."""

    source: str
    file: str
    rows: int
    without: list[str]


def give(spark: SparkSession, sources: Sequence[str], names: str, folder: str) -> dict[str, Given]:
    """Write each of ``sources`` as a file in ``folder``, with the names of the file ``names``."""
    if not sources:
        return {}
    work = [(source, names, folder) for source in sources]
    rows = each_of(spark, work, _give).collect()
    given = [msgspec.json.decode(row[0], type=Given) for row in rows]
    return {each.source: each for each in given}


def _give(work: tuple[str, str, str]) -> Iterator[pa.RecordBatch]:
    source, names, folder = work
    staging = Location(folder) / STAGING / "named"
    staging.mkdir()
    target = staging / f"{uuid.uuid4().hex}.parquet"
    place = Location(source)
    rows, without = name_rows(Names(Location(names)), table_of_file(place)[0], place, target)
    given = Given(source, str(target), rows, sorted(without))
    yield answer_batch(msgspec.json.encode(given).decode())


def table_of_file(file: Location) -> tuple[str, str]:
    """Return the table of a file that was set aside, and its name without the suffix."""
    return file.parent.name.removeprefix("unnamed-"), file.name.removesuffix(".parquet")


def changed_names(old: Location | None, new: Location) -> set[str]:
    """Return the topic ids that ``new`` names for the first time, or from an earlier time on."""
    before = {} if old is None else _since(old)
    return {each for each, since in _since(new).items() if before.get(each) != since}


def _since(file: Location) -> dict[str, tuple[str, int]]:
    rows = read_names(file).to_pylist()
    return {row["topic_id"]: (row["topic"], row["first_ns"]) for row in rows}
