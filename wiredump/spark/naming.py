"""Fill in topic names in rows that were set aside without one, with a task for each file."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa

from wiredump.spark.stages import answer_batch, each_of
from wiredump.storage import Location
from wiredump.tables.deferred_merge import Names, name_rows, read_names
from wiredump.tables.publishing import STAGING, Part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Given", "changed_names", "give"]


class Given(msgspec.Struct):
    """What was made of ``source``, which has rows of ``table``: ``part`` is among the files of
    tasks. ``rest`` has the rows that were kept back, for want of a name of ``without``; None if
    there are none."""

    source: str
    table: str
    part: Part
    rest: str | None
    without: list[str]


# Made once: while threads make decoders of the same class for the first time, msgspec may crash.
_GIVEN: Final = msgspec.json.Decoder(Given)


def give(
    spark: SparkSession, sources: Sequence[str], names: str, folder: str,
    final: Collection[str] | None = None,
) -> list[Given]:  # fmt: skip
    """Write each of ``sources`` as a file in ``folder``, with the names of the file ``names``. Rows
    without a name are kept back, unless their source is among the ``final`` ones (None: all)."""
    if not sources:
        return []
    work = [(source, names, folder, final is None or source in final) for source in sources]
    rows = each_of(spark, work, _give).collect()
    return [_GIVEN.decode(row[0]) for row in rows]


def _give(work: tuple[str, str, str, bool]) -> Iterator[pa.RecordBatch]:
    source, names, folder, is_final = work
    place = Location(source)
    table = place.parent.name.removeprefix("unnamed-")
    name = f"named-{uuid.uuid4().hex}.parquet"
    target, rest = (Location(folder) / STAGING / kind / name for kind in (table, "rest"))
    for each in (target, rest):
        each.parent.mkdir()
    done = name_rows(Names(Location(names)), table, place, target, None if is_final else rest)
    given = Given(
        source, table, Part(name, done.rows), str(rest) if done.kept else None, done.without
    )
    yield answer_batch(msgspec.json.encode(given).decode())


def changed_names(old: Location | None, new: Location) -> set[str]:
    """Return the topic ids that ``new`` names for the first time, or from an earlier time on."""
    before = {} if old is None else _since(old)
    return {each for each, since in _since(new).items() if before.get(each) != since}


def _since(file: Location) -> dict[str, tuple[str, int]]:
    rows = read_names(file).to_pylist()
    return {row["topic_id"]: (row["topic"], row["first_ns"]) for row in rows}
