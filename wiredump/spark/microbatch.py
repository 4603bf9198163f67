"""The rows and the state of one micro-batch, as one job: packets, shuffled by their two ends,
continue the connections of the previous batch.

This module does not know the number of the batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import pyarrow as pa

from kproto.cli.dialect_option import named_dialect
from wiredump.spark.carrying import Carrying, Kept, carry_connections
from wiredump.spark.columns import SPLIT, SQL_SCHEMA, PacketRows
from wiredump.spark.connections import Options
from wiredump.spark.fragments import begin_waiting, join_fragments
from wiredump.spark.planning import Learnt, UnreadableError, plan, read_until_certain
from wiredump.spark.splits import Split, read_split
from wiredump.spark.stages import Task, answer, answers, by_connection, each_of, task_number
from wiredump.spark.state import dump, load, read_one, write_one
from wiredump.storage import Location
from wiredump.tables.parts import SplitNote
from wiredump.tables.publishing import STAGING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Micro", "MicroBatch"]

_LEAST_SPLIT: Final = 4 << 20
_FRAGMENTS: Final = "fragments"
_SOMETHING: Final = b"!"
"""A row without meaning at the beginning of each part, so that no stage is empty: Spark skips empty
ones, and the state of the previous batch would be lost. (No array of MessagePack begins like
this.)"""


class Micro(NamedTuple):
    """What tasks wrote. ``read`` has bytes by file, ``damaged`` the files that were not read whole;
    ``fragments`` is a file of incomplete datagrams, or None if there were no fragments."""

    kept: list[Kept]
    read: dict[int, int]
    damaged: set[int]
    fragments: Location | None


class MicroBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A job. ``options.paths`` are the files, ``options.out`` is a working folder."""

    options: Options
    carrying: Carrying
    partitions: int
    split_bytes: int
    fragments: str | None

    def run(self, spark: SparkSession) -> Micro:
        """Run it. Raises UnreadableError, and whatever Spark raises for a failed task."""
        split_bytes = self._split_bytes()
        packets = "packets" in self.options.tables
        splits = plan(
            sorted(self.options.paths.items()), split_bytes, packets=packets,
            max_decompressed=self.options.max_decompressed,
        )  # fmt: skip
        learnt = Learnt(self.fragments is not None and self.carrying.ending)
        self._clear()
        job = partial(self._job, spark)
        done = read_until_certain(job, self._clear, splits, split_bytes, learnt, counts_of=iter)
        made = self._folder() / _FRAGMENTS
        read = {note.capture: note.read for note in done.notes}
        damaged = {note.capture for note in done.notes if note.reason}
        return Micro(done.result, read, damaged, made if made.exists() else None)

    def _split_bytes(self) -> int:
        """Return the size of parts: small enough for every core to get one, even with few files."""
        size = sum(Location(path).info().size for path in self.options.paths.values())
        return min(self.split_bytes, max(_LEAST_SPLIT, -(-size // self.partitions)))

    def _folder(self) -> Location:
        return Location(self.options.out) / STAGING

    def _clear(self) -> None:
        self._folder().remove()
        self._folder().mkdir()

    def _job(
        self, spark: SparkSession, splits: list[Split], learnt: Learnt
    ) -> tuple[list[Kept], list[SplitNote]]:
        first, *others = list(map(msgspec.msgpack.encode, splits)) or [b""]
        rows = each_of(spark, [_SOMETHING + first, *others], _read, SQL_SCHEMA)
        shared = by_connection(rows, self.partitions, self._joining() if learnt.fragments else None)
        options = msgspec.structs.replace(
            self.options, kafka_ports=(*self.options.kafka_ports, *learnt.ports)
        )
        answered = answers(shared, _connections(options, self.carrying))
        kept = [msgspec.json.decode(each, type=Kept) for each in answered]
        if sorted(each.task for each in kept) != list(range(self.partitions)):
            raise UnreadableError(f"only {len(kept)} of {self.partitions} tasks returned a result")
        notes = [note for each in kept for note in each.notes if note.capture >= 0]
        for note in notes:
            note.secrets = []  # the state of ciphers is not kept between batches
        return sorted(kept, key=lambda each: each.task), notes

    def _joining(self) -> Task:
        dialect, before = self.options.dialect, self.fragments
        after, ending = str(self._folder() / _FRAGMENTS), self.carrying.ending

        def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from _join(batches, dialect, before, None if ending else after)

        return task


def _read(split: bytes) -> Iterator[pa.RecordBatch]:
    if split.startswith(_SOMETHING):
        rows = PacketRows(-1)
        rows.other(SPLIT, SplitNote(-1, 0), (0, 0), (0, 0))
        yield rows.take()
        split = split.removeprefix(_SOMETHING)
    if split:
        yield from read_split(msgspec.msgpack.decode(split, type=Split))


def _connections(options: Options, carrying: Carrying) -> Task:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield answer(carry_connections(batches, options, carrying, task_number()))

    return task


def _join(
    batches: Iterable[pa.RecordBatch], dialect: str, before: str | None, after: str | None
) -> Iterator[pa.RecordBatch]:
    """Join fragments. A task may run twice: its output has one name, and is the same each time."""
    codec = named_dialect(dialect)
    waiting = load(read_one(before), codec) if before is not None else None
    if waiting is None:
        waiting = begin_waiting()
    yield from join_fragments(batches, waiting, ending=after is None)
    if after is not None:
        place = Location(after)
        new = place.parent / f"{place.name}.{os.getpid()}.{task_number()}"
        write_one(str(new), dump(waiting, codec))
        new.publish(place)
