"""The pipeline as its driver sees it: the stages in order, and their results.

The driver receives a note for each part and a manifest for each task, but never packets or rows.
Only DataFrames are used, so that a session on a Spark Connect server works, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from kproto.errors import KprotoError
from wiredump.sources.kinds import kind_of
from wiredump.spark.columns import FRAGMENT, SQL_SCHEMA
from wiredump.spark.connections import Options, write_connections
from wiredump.spark.fragments import join_fragments
from wiredump.spark.partitioning import divide
from wiredump.spark.planning import again, parts_of, plan
from wiredump.spark.session import cores_of
from wiredump.spark.splits import Split, read_runs
from wiredump.spark.staged import Staged, stage, staged_rows
from wiredump.spark.stages import (
    ORDER,
    Task,
    answer,
    each_of,
    from_excerpts,
    manifests_of,
    run_tasks,
    task_number,
)
from wiredump.storage import Location
from wiredump.tables.completion import Parts, complete, written_tables
from wiredump.tables.jobs import write_text
from wiredump.tables.making import Made
from wiredump.tables.parts import Manifest, SplitNote, summed
from wiredump.tables.publishing import STAGING, Publication
from wiredump.tables.run import Mode
from wiredump.tables.work import Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Job", "LostError", "require_accounted"]

_BYTES_A_TASK: Final = 256 << 20
_AT_ONCE: Final = 1 << 30
"""Captures of this many bytes are read in one job, packets and connections; if a guessed boundary
was wrong, everything is repeated."""
_BYTES_A_CORE: Final = 64 << 20
"""Used if the number of cores is unknown."""


class LostError(KprotoError):
    """Tasks wrote less than they read: a bug, or a fault of a file system."""


class Job(msgspec.Struct, kw_only=True):
    """What to write from which files. ``options.paths`` has captures and text files. ``rotated``:
    the captures are the parts of one; ``mode``: what to do if the folder has tables;
    ``partition_by`` are columns (``partitioning``)."""

    options: Options
    split_bytes: int
    partitions: int | None = None
    rotated: bool = False
    mode: Mode = "error"
    partition_by: tuple[str, ...] = ()
    say: Callable[[str], object] = lambda text: None

    def run(self, spark: SparkSession) -> Made:
        """Write the tables. Raises OutputError if the folder cannot be used, and whatever Spark
        raises for a failed task; then there are no tables, and no ``_SUCCESS``."""
        publication = Publication(self.options.out, self.options.run, self.mode)
        kinds = {number: kind_of(path) for number, path in self.options.paths.items()}
        captures = [number for number, kind in kinds.items() if kind == "capture"]
        texts = [number for number, kind in kinds.items() if kind != "capture"]
        try:
            return self._run(spark, captures, texts, publication)
        except BaseException:
            publication.abandon()
            raise

    def _run(
        self, spark: SparkSession, captures: list[int], texts: list[int], publication: Publication
    ) -> Made:
        manifests: list[Manifest] = []
        notes: list[SplitNote] = []
        redone: list[str] = []
        if captures:
            found, notes, redone = self._captures(spark, captures)
            manifests += found
        if texts:
            self.say(f"reading {len(texts)} journals and logs")
            manifests += manifests_of(spark, texts, partial(_write_text, self.options))
        return self._commit(spark, manifests, notes, redone, captures, publication)

    # ---- packets -----------------------------------------------------------------------------

    def _captures(
        self, spark: SparkSession, captures: list[int]
    ) -> tuple[list[Manifest], list[SplitNote], list[str]]:
        """Read captures; returns the manifests, and the captures that were read again."""
        paths = [(number, self.options.paths[number]) for number in captures]
        size = sum(Location(path).info().size for _, path in paths)
        cores = cores_of(spark) or max(1, size // _BYTES_A_CORE)
        splits = plan(
            paths,
            parts_of(size, self.split_bytes, cores),
            merged=len(captures) > 1 and not self.rotated,
            packets="packets" in self.options.tables,
        )
        count = self.partitions or _tasks(size, cores)
        if size <= _AT_ONCE:
            found = self._at_once(spark, splits, count)
            if found is not None:
                return *found, []
        packets, notes, redone = self._packets(spark, splits)
        return self._connections(spark, packets, notes, count), notes, redone

    def _at_once(
        self, spark: SparkSession, splits: list[Split], count: int
    ) -> tuple[list[Manifest], list[SplitNote]] | None:
        """Do everything in one Spark job. Returns None, with nothing done, if a closer look is
        needed."""
        self.say(f"reading packets: {len(splits)} parts, and connections: {count} tasks")
        manifests = self._reassemble(_packets_of(spark, splits), count, notes=True)
        notes = [note for each in manifests for note in each.notes]
        unready = any(note.fragments or note.secrets for note in notes)
        if not unready and not again(splits, notes, self.split_bytes):
            return manifests, notes
        place = Location(self.options.out) / STAGING
        place.remove()
        place.mkdir()
        return None

    def _packets(
        self, spark: SparkSession, splits: list[Split]
    ) -> tuple[DataFrame, list[SplitNote], list[str]]:
        """Read the packets of all captures, until the parts are certain."""
        paths = self.options.paths
        self.say(f"reading packets: {len(splits)} parts")
        staged = stage(spark, splits, self._place)
        repeated = again(splits, _notes(staged), self.split_bytes)
        redone = sorted({split.capture for split in repeated})
        if redone:
            self.say(f"reading once more: {', '.join(paths[number] for number in redone)}")
            better = stage(spark, repeated, self._place)
            if again(repeated, _notes(better), self.split_bytes):
                # A pcapng whose packets have no times, say: only one task gets them right.
                whole = [split.of_whole_file() for split in repeated if split.start == 0]
                better = stage(spark, whole, self._place)
            staged = [each for each in staged if each.capture not in redone] + better
        notes = _notes(staged)
        return staged_rows(spark, staged), notes, [paths[number] for number in redone]

    @property
    def _place(self) -> str:
        return str(Location(self.options.out) / STAGING / "packets")

    # ---- connections -------------------------------------------------------------------------

    def _connections(
        self, spark: SparkSession, packets: DataFrame, notes: list[SplitNote], count: int
    ) -> list[Manifest]:
        rows = packets.filter(packets.kind != FRAGMENT)
        if any(note.fragments for note in notes):
            self.say("joining fragments")
            fragments = packets.filter(packets.kind == FRAGMENT)
            joined = fragments.repartition(1).sortWithinPartitions(*ORDER)
            rows = rows.unionAll(joined.mapInArrow(join_fragments, SQL_SCHEMA))
        self.say(f"reassembling connections: {count} tasks")
        known = sorted({each for note in notes for each in note.secrets})
        return self._reassemble(rows, count, secrets=tuple(known))

    def _reassemble(
        self, rows: DataFrame, count: int, *, notes: bool = False, secrets: tuple[bytes, ...] = ()
    ) -> list[Manifest]:
        options = msgspec.structs.replace(self.options, secrets_within=secrets)
        sorted_rows = rows.repartition(count, "key").sortWithinPartitions("key", *ORDER)
        return run_tasks(sorted_rows, _connections_task(options, notes))

    # ---- the end -----------------------------------------------------------------------------

    def _commit(
        self,
        spark: SparkSession,
        manifests: list[Manifest],
        notes: list[SplitNote],
        redone: list[str],
        captures: list[int],
        publication: Publication,
    ) -> Made:
        options = self.options
        sums = summed(manifests)
        account = require_accounted(sums.account, sums.expected) if captures else {}
        wanted = written_tables(options.tables)
        self.say("completing tables")
        rows = complete(
            options.out, manifests, _Cluster(spark, options, self.partitions), publication,
            tables=wanted, names="topics" in options.taken,
            lineage=self._lineage(manifests, notes), account=account,
            divide=lambda parts: self._divided(spark, wanted, parts),
        )  # fmt: skip
        unread = self._unread(notes)
        return Made(rows, account, unread, connections=sums.connections, again=redone)

    def _divided(
        self, spark: SparkSession, tables: Sequence[str], parts: list[Parts]
    ) -> list[Parts]:
        if not self.partition_by:
            return parts
        self.say(f"dividing tables by {', '.join(self.partition_by)}")
        return divide(spark, self.options.out, self.partition_by, tables, parts)

    def _unread(self, notes: list[SplitNote]) -> dict[str, str]:
        """Return the captures without any TCP, by the paths that the user gave."""
        met: dict[int, str] = {}
        read = {note.capture for note in notes if note.segments or note.fragments}
        for note in notes:
            if note.packets or note.reason:
                met[note.capture] = met.get(note.capture) or note.reason
        if self.rotated and read:
            return {}
        paths = self.options.paths
        return {
            self.options.names.get(number, paths[number]): reason
            for number, reason in met.items()
            if number in paths and number not in read
        }

    def _lineage(
        self, manifests: Sequence[Manifest], notes: list[SplitNote]
    ) -> Iterator[tuple[Any, ...]]:
        read = {note.capture: note.read for note in notes}
        times = summed(manifests).times
        sources = {each[0]: each for manifest in manifests for each in manifest.sources}
        for number, path in self.options.paths.items():
            name = self.options.names.get(number, path)
            if number in read:
                yield number, name, "capture", read[number], *times.get(number, (None, None))
            else:
                yield number, name, *sources[number][2:]


class _Cluster:
    """Runs the last tasks in Spark."""

    def __init__(self, spark: SparkSession, options: Options, partitions: int | None) -> None:
        self._spark, self._options, self._partitions = spark, options, partitions

    def each(self, task: Callable[[Any], Manifest], items: Sequence[Any]) -> list[Manifest]:
        return manifests_of(self._spark, items, task)

    def followed(self, files: Sequence[Location]) -> list[Manifest]:
        options, count = self._options, self._partitions or len(files)
        return from_excerpts(self._spark, list(map(str, files)), options.out, options.tables, count)


def require_accounted(account: dict[str, int], expected: int) -> dict[str, int]:
    """Raise LostError unless all ``expected`` bytes of payload are in the account."""
    payload = account.get("payload", 0)
    if payload != expected:
        raise LostError(f"{expected} bytes of payload read, {payload} accounted for")
    return account


def _write_text(work: Work, number: int) -> Manifest:
    return write_text(work, number, task_number())


def _notes(staged: Iterable[Staged]) -> list[SplitNote]:
    return [note for each in staged for note in each.notes]


def _packets_of(spark: SparkSession, splits: list[Split]) -> DataFrame:
    """Read packets, with a task for each part."""
    return each_of(spark, [msgspec.msgpack.encode(split) for split in splits], _read, SQL_SCHEMA)


def _read(split: bytes) -> Iterator[pa.RecordBatch]:
    return read_runs(msgspec.msgpack.decode(split, type=Split))


def _tasks(size: int, cores: int) -> int:
    """Return the number of tasks that share connections: a few more than cores, since they differ
    in size."""
    return max(math.ceil(size / _BYTES_A_TASK), 2 * cores if cores > 1 else 1)


def _connections_task(options: Options, notes: bool) -> Task:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield answer(write_connections(batches, options, task_number(), notes=notes))

    return task
