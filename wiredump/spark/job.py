"""The pipeline as its driver sees it: the stages in order, and their results.

The driver receives a note for each part and a manifest for each task, but never packets or rows.
Only DataFrames are used, so that a session on a Spark Connect server works, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from kproto.errors import KprotoError
from wiredump.skipped import out_of_order
from wiredump.spark.columns import SQL_SCHEMA
from wiredump.spark.connections import Options, write_connections
from wiredump.spark.fragments import join_fragments
from wiredump.spark.partitioning import divide
from wiredump.spark.planning import Learnt, packed, parts_of, plan, read_of, read_until_certain
from wiredump.spark.session import cores_of
from wiredump.spark.splits import Split, read_split, read_splits
from wiredump.spark.stages import (
    Task,
    answer,
    by_connection,
    each_of,
    from_excerpts,
    manifests_of,
    run_tasks,
    task_number,
)
from wiredump.spark.survey import Surveyed, survey
from wiredump.storage import Location
from wiredump.tables.completion import Parts, complete, written_tables
from wiredump.tables.jobs import write_text
from wiredump.tables.making import Made
from wiredump.tables.parts import Manifest, SplitNote, summed
from wiredump.tables.publishing import STAGING, WRITING, Publication
from wiredump.tables.run import Mode
from wiredump.tables.work import Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Job", "LostError", "require_accounted"]

_BYTES_A_TASK: Final = 256 << 20
_AT_ONCE: Final = 1 << 30
"""Of captures of more bytes all headers are read first, to check the parts: connections, which take
many times as long, are then processed only once."""
_COPY: Final = "decompressed-"
_BYTES_A_CORE: Final = 64 << 20
"""Used if the number of cores is unknown."""


class LostError(KprotoError):
    """Tasks wrote less than they read: a bug, or a fault of a file system."""


class Job(msgspec.Struct, kw_only=True):
    """What to write from which files. ``options.paths`` has captures and text files. ``rotated``:
    the captures are the parts of one; ``mode``: what to do if the folder has tables;
    ``partition_by`` are columns (``partitioning``). ``surveyed`` is what is known of the files;
    None: each is opened."""

    options: Options
    split_bytes: int
    partitions: int | None = None
    rotated: bool = False
    mode: Mode = "error"
    partition_by: tuple[str, ...] = ()
    surveyed: Mapping[int, Surveyed] | None = None
    say: Callable[[str], object] = lambda text: None

    def run(self, spark: SparkSession) -> Made:
        """Write the tables. Raises OutputError if the folder cannot be used, and whatever Spark
        raises for a failed task; then there are no tables, and no ``_SUCCESS``."""
        publication = Publication(self.options.out, self.options.run, self.mode)
        try:
            files = self.surveyed if self.surveyed is not None else survey(self.options.paths)
            captures = {number: each for number, each in files.items() if each.kind == "capture"}
            texts = [number for number in files if number not in captures]
            return self._run(spark, captures, texts, publication)
        except BaseException:
            publication.abandon()
            raise

    def _run(
        self, spark: SparkSession, captures: Mapping[int, Surveyed], texts: list[int],
        publication: Publication,
    ) -> Made:  # fmt: skip
        manifests: list[Manifest] = []
        notes: list[SplitNote] = []
        redone: list[str] = []
        if captures:
            found, notes, redone = self._captures(spark, captures)
            manifests += found
        if texts:
            self.say(f"reading {len(texts)} journals and logs")
            manifests += manifests_of(spark, texts, partial(_write_text, self.options))
        return self._commit(spark, manifests, notes, redone, list(captures), publication)

    def _captures(
        self, spark: SparkSession, captures: Mapping[int, Surveyed]
    ) -> tuple[list[Manifest], list[SplitNote], list[str]]:
        """Read captures; returns the manifests, and the captures that were read again."""
        paths = [(number, self.options.paths[number]) for number in captures]
        size = sum(each.size for each in captures.values())
        cores = cores_of(spark) or max(1, size // _BYTES_A_CORE)
        part = parts_of(size, self.split_bytes, cores)
        splits = plan(
            paths,
            part,
            merged=len(captures) > 1 and not self.rotated,
            packets="packets" in self.options.tables,
            max_decompressed=self.options.max_decompressed,
            surveyed=captures,
        )
        copies = self._copies(splits)
        for split in splits:
            split.copy = copies.get(split.capture, "")
        learnt, redone = Learnt(), set[int]()
        if size > _AT_ONCE:
            self.say(f"checking {len(splits)} parts")
            checked = read_until_certain(
                partial(_notes, spark, part), self._clear, splits, self.split_bytes
            )
            splits, learnt, redone = checked.splits, checked.learnt, checked.redone
        job = partial(
            self._connections, spark, copies, part, self.partitions or _tasks(size, cores)
        )
        made = read_until_certain(job, self._clear, splits, self.split_bytes, learnt)
        again = [self.options.paths[number] for number in sorted(redone | made.redone)]
        return made.result, made.notes, again

    def _copies(self, splits: list[Split]) -> dict[int, str]:
        """Return where tasks write what local compressed captures hold, by number: beside the files
        of tables, where all tasks can read it."""
        folder = Location(self.options.out) / STAGING
        if not folder.is_local:
            return {}
        whole = [split.capture for split in splits if split.whole and not split.carried]
        return {number: (folder / f"{_COPY}{number}").path for number in whole}

    def _clear(self) -> None:
        staging = Location(self.options.out) / STAGING
        for each in staging.iterdir():
            if each.name != WRITING:
                each.remove()

    def _connections(
        self, spark: SparkSession, copies: dict[int, str], part: int, count: int,
        splits: list[Split], learnt: Learnt,
    ) -> tuple[list[Manifest], list[SplitNote]]:  # fmt: skip
        self.say(f"reading packets: {len(splits)} parts, and connections: {count} tasks")
        options = msgspec.structs.replace(
            self.options, secrets_within=learnt.secrets, copies=copies
        )
        packets = each_of(spark, _encoded(splits, part), _read, SQL_SCHEMA)
        rows = by_connection(packets, count, join_fragments if learnt.fragments else None)
        manifests = run_tasks(rows, _connections_task(options))
        return manifests, [note for each in manifests for note in each.notes]

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
        account = require_accounted(sums.account, sums.expected)
        if self.rotated:
            account |= out_of_order([sums.times.get(number) for number in sorted(captures)])
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
        read = read_of(notes)
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


def _encoded(splits: list[Split], part: int) -> list[bytes]:
    """Return what each task reads."""
    return [msgspec.msgpack.encode(each) for each in packed(splits, part)]


def _notes(
    spark: SparkSession, part: int, splits: list[Split], learnt: Learnt
) -> tuple[None, list[SplitNote]]:
    """Read packets only for the notes."""
    manifests = manifests_of(spark, _encoded(splits, part), _noted)
    return None, [note for each in manifests for note in each.notes]


def _noted(splits: bytes) -> Manifest:
    manifest = Manifest()
    for split in msgspec.msgpack.decode(splits, type=list[Split]):
        *_, last = read_split(split)
        note = last.column("payload")[-1].as_py()  # the last row
        manifest.notes.append(msgspec.msgpack.decode(note, type=SplitNote))
    return manifest


def _read(splits: bytes) -> Iterator[pa.RecordBatch]:
    return read_splits(msgspec.msgpack.decode(splits, type=list[Split]))


def _tasks(size: int, cores: int) -> int:
    """Return the number of tasks that share connections: a few more than cores, since they differ
    in size."""
    return max(math.ceil(size / _BYTES_A_TASK), 2 * cores if cores > 1 else 1)


def _connections_task(options: Options) -> Task:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield answer(write_connections(batches, options, task_number()))

    return task
