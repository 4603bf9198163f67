"""The pipeline as its driver sees it: the stages in order, and their results.

The driver receives a note for each part and a manifest for each task, but never packets or rows.
Only DataFrames are used, so that a session on a Spark Connect server works, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from kproto.errors import DecodeError, KprotoError
from kproto.os_errors import os_error_text
from wiredump.skipped import no_tcp, out_of_order, skipped
from wiredump.spark.bad_files import BadFiles, OnBadFile
from wiredump.spark.columns import SQL_SCHEMA
from wiredump.spark.connections import Options, write_connections
from wiredump.spark.fragments import join_fragments
from wiredump.spark.partitioning import divide
from wiredump.spark.planning import Learnt, packed, parts_of, plan, read_of, read_until_certain
from wiredump.spark.session import cores_of, describe, reason_of
from wiredump.spark.sinks import Layout, SinkPublication, sink_of
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
from wiredump.storage import ChangedError, Location, StorageError, shown
from wiredump.tables.completion import Parts, complete, written_tables
from wiredump.tables.jobs import write_text
from wiredump.tables.making import Made
from wiredump.tables.parts import Manifest, SplitNote, summed
from wiredump.tables.publishing import STAGING, Publication
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


_OF_FILES: Final = ("ChangedError", "FileNotFoundError", "PermissionError")
"""Errors of tasks about a file that cannot be read as it was planned."""


class LostError(KprotoError):
    """Tasks wrote less than they read: a bug, or a fault of a file system."""


class Job(msgspec.Struct, kw_only=True):
    """What to write from which files. ``options.paths`` has captures and text files,
    ``options.out`` is the folder of the tables (of Iceberg: catalog and namespace), whose form
    is ``layout``. ``rotated``: the captures are the parts of one; ``mode``: what to do if the
    folder has tables, which those of Delta and Iceberg always are added to. ``surveyed`` has the
    survey of files that were opened already."""

    options: Options
    split_bytes: int
    partitions: int | None = None
    rotated: bool = False
    mode: Mode = "error"
    layout: Layout = Layout()
    surveyed: Mapping[int, Surveyed] = {}
    on_bad_file: OnBadFile = "fail"
    say: Callable[[str], object] = lambda text: None

    def run(self, spark: SparkSession) -> Made:
        """Write the tables. Raises OutputError if the folder cannot be used, BadFileError for a
        file of which nothing can be read, unless it is to be skipped, and whatever Spark raises for
        a failed task; then the run has no tables."""
        before = describe(spark, f"wiredump {self.options.run}")
        try:
            publication = self._publication(spark)
            try:
                return _Run(self, spark, publication).run()
            except BaseException:
                publication.abandon()
                raise
        finally:
            describe(spark, before)

    def _publication(self, spark: SparkSession) -> Publication | SinkPublication:
        out, run = self.options.out, self.options.run
        if self.layout.form == "parquet":
            return Publication(out, run, self.mode, written_tables(self.options.tables))
        return SinkPublication(spark, sink_of(self.layout, out, run), self.place, run)

    @property
    def place(self) -> Location:
        """The folder for files that are not tables."""
        return self.layout.place(self.options.out)


class _Run:
    """A run of a job, whose tasks write to a folder of their own."""

    def __init__(
        self, job: Job, spark: SparkSession, publication: Publication | SinkPublication
    ) -> None:
        self._job, self._spark, self._publication = job, spark, publication
        self._options = msgspec.structs.replace(job.options, out=publication.work)
        self._bad = BadFiles(job.on_bad_file, job.place, job.options.run)

    def run(self) -> Made:
        """Read all files, and publish the tables."""
        files = dict(self._files())
        captures = {number: each for number, each in files.items() if each.kind == "capture"}
        texts = [number for number in files if number not in captures]
        manifests: list[Manifest] = []
        notes: list[SplitNote] = []
        redone: list[str] = []
        if captures:
            found, notes, redone = self._readable(captures)
            manifests += found
        if texts:
            self._say(f"reading {len(texts)} journals and logs")
            found, unread = write_texts(self._spark, self._options, texts)
            manifests += found
            for number, reason in unread.items():
                self._bad.found(self._options.paths[number], reason)
        for number, reason in self._unread(notes).items():
            self._bad.found(self._options.paths[number], reason)
        made = self._commit(manifests, notes, redone, list(captures))
        self._bad.settle()
        return made

    def _say(self, text: str) -> None:
        """Name the stage that begins, to the user and on Spark's page."""
        self._job.say(text)
        describe(self._spark, f"wiredump {self._options.run}: {text}")

    def _files(self) -> Iterator[tuple[int, Surveyed]]:
        """Yield the number and the survey of each file; a file that cannot be opened is bad."""
        known = self._job.surveyed
        for number, path in self._options.paths.items():
            try:
                yield number, known.get(number) or survey({number: path})[number]
            except (OSError, StorageError) as error:
                self._bad.found(path, _reason(error))

    def _readable(
        self, captures: dict[int, Surveyed]
    ) -> tuple[list[Manifest], list[SplitNote], list[str]]:
        """Read captures, without those that turn out to be bad meanwhile, which are removed."""
        while captures:
            try:
                return self._captures(captures)
            except Exception as error:  # of Spark
                number = self._culprit(captures, error)
                if number is None:
                    raise
                self._bad.found(self._options.paths[number], _reason(error))
                del captures[number]
                self._clear()
        return [], [], []

    def _culprit(self, captures: Iterable[int], error: Exception) -> int | None:
        """Return the capture that changed or vanished while it was read, if that ended the job."""
        text = str(error)
        if self._job.on_bad_file == "fail" or not any(each in text for each in _OF_FILES):
            return None
        reason = _reason(error)
        paths = {number: shown(self._options.paths[number]) for number in captures}
        named = [number for number, path in paths.items() if path in reason]
        return max(named, key=lambda number: len(paths[number]), default=None)

    def _captures(
        self, captures: Mapping[int, Surveyed]
    ) -> tuple[list[Manifest], list[SplitNote], list[str]]:
        """Read captures; returns the manifests, and the captures that were read again."""
        paths = [(number, self._options.paths[number]) for number in captures]
        size = sum(each.size for each in captures.values())
        cores = cores_of(self._spark) or max(1, size // _BYTES_A_CORE)
        part = parts_of(size, self._job.split_bytes, cores)
        splits = plan(
            paths,
            part,
            merged=len(captures) > 1 and not self._job.rotated,
            packets="packets" in self._options.tables,
            max_decompressed=self._options.max_decompressed,
            surveyed=captures,
        )
        copies = self._copies(splits)
        for split in splits:
            split.copy = copies.get(split.capture, "")
        learnt, redone = Learnt(), set[int]()
        if size > _AT_ONCE:
            self._say(f"checking {len(splits)} parts")
            checked = read_until_certain(
                partial(_notes, self._spark, part), self._clear, splits, self._job.split_bytes
            )
            splits, learnt, redone = checked.splits, checked.learnt, checked.redone
        job = partial(self._connections, copies, part, self._job.partitions or _tasks(size, cores))
        made = read_until_certain(
            job, self._clear, splits, self._job.split_bytes, learnt, counts_of=iter
        )
        again = [self._options.paths[number] for number in sorted(redone | made.redone)]
        return made.result, made.notes, again

    def _copies(self, splits: list[Split]) -> dict[int, str]:
        """Return where tasks write what local compressed captures hold, by number: beside the files
        of tables, where all tasks can read it."""
        folder = Location(self._options.out) / STAGING
        if not folder.is_local:
            return {}
        whole = [split.capture for split in splits if split.whole and not split.carried]
        return {number: (folder / f"{_COPY}{number}").path for number in whole}

    def _clear(self) -> None:
        for each in (Location(self._options.out) / STAGING).iterdir():
            each.remove()

    def _connections(
        self, copies: dict[int, str], part: int, count: int,
        splits: list[Split], learnt: Learnt,
    ) -> tuple[list[Manifest], list[SplitNote]]:  # fmt: skip
        self._say(f"reading packets: {len(splits)} parts, and connections: {count} tasks")
        options = msgspec.structs.replace(
            self._options, secrets_within=learnt.secrets, copies=copies, kafka_ports=learnt.ports
        )
        packets = each_of(self._spark, _encoded(splits, part), _read, SQL_SCHEMA)
        rows = by_connection(packets, count, join_fragments if learnt.fragments else None)
        manifests = run_tasks(rows, _connections_task(options))
        return manifests, [note for each in manifests for note in each.notes]

    # ---- the end -----------------------------------------------------------------------------

    def _commit(
        self,
        manifests: list[Manifest],
        notes: list[SplitNote],
        redone: list[str],
        captures: list[int],
    ) -> Made:
        options = self._options
        sums = summed(manifests)
        account = require_accounted(sums.account, sums.expected)
        if self._job.rotated:
            account |= out_of_order([sums.times.get(number) for number in sorted(captures)])
        wanted = written_tables(options.tables)
        self._say("completing tables")
        rows = complete(
            options.out, manifests, _Cluster(self._spark, options, self._job.partitions),
            self._publication, tables=wanted, names="topics" in options.taken,
            lineage=self._lineage(manifests, notes), account=account,
            divide=partial(self._divided, wanted),
        )  # fmt: skip
        unread = {self._named(path): why for path, why in self._bad.found_so_far.items()}
        return Made(rows, account, unread, connections=sums.connections, again=redone)

    def _divided(self, tables: Sequence[str], parts: list[Parts]) -> list[Parts]:
        layout = self._job.layout
        if not layout.partition_by or layout.form != "parquet":
            return parts
        self._say(f"dividing tables by {', '.join(layout.partition_by)}")
        return divide(self._spark, self._publication.staging, layout.partition_by, tables, parts)

    def _unread(self, notes: list[SplitNote]) -> dict[int, str]:
        """Return the captures without any TCP, and the reasons."""
        read = {note.capture for note in notes if note.segments or note.fragments}
        if self._job.rotated and read:
            return {}
        met: dict[int, str] = {}
        others: dict[int, Counter[str]] = {}
        for note in notes:
            if (note.packets or note.reason) and note.capture not in read:
                met[note.capture] = met.get(note.capture) or note.reason
                others.setdefault(note.capture, Counter()).update(note.others)
        return {
            number: reason or no_tcp(skipped(others[number], 0)) for number, reason in met.items()
        }

    def _named(self, path: str) -> str:
        """Return a path as the user gave it."""
        numbers = {path: number for number, path in self._options.paths.items()}
        return self._options.names.get(numbers[path], path)

    def _lineage(
        self, manifests: Sequence[Manifest], notes: list[SplitNote]
    ) -> Iterator[tuple[Any, ...]]:
        read = read_of(notes)
        times = summed(manifests).times
        sources = {each[0]: each for manifest in manifests for each in manifest.sources}
        for number, path in self._options.paths.items():
            name = self._options.names.get(number, path)
            if number in read:
                yield number, name, "capture", read[number], *times.get(number, (None, None))
            elif number in sources:
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


def _reason(error: Exception) -> str:
    """Return why a file cannot be read, in one line."""
    if isinstance(error, OSError):
        return error.strerror or os_error_text(error)
    return reason_of(error)


def require_accounted(account: dict[str, int], expected: int) -> dict[str, int]:
    """Raise LostError unless all ``expected`` bytes of payload are in the account."""
    payload = account.get("payload", 0)
    if payload != expected:
        raise LostError(f"{expected} bytes of payload read, {payload} accounted for")
    return account


def write_texts(
    spark: SparkSession, options: Options, texts: Sequence[int]
) -> tuple[list[Manifest], dict[int, str]]:
    """Write the rows of journals and request logs, a task each. Returns the manifests, and the
    reasons why others cannot be read, of which nothing is written."""
    made = manifests_of(spark, texts, partial(_write_text, options))
    unread = {
        number: each.unread[options.paths[number]]
        for number, each in zip(texts, made, strict=True)
        if each.unread
    }
    return [each for each in made if not each.unread], unread


def _write_text(work: Work, number: int) -> Manifest:
    path = work.paths[number]
    try:
        return write_text(work, number, task_number())
    except (DecodeError, ChangedError) as error:
        return Manifest(unread={path: str(error).removeprefix(shown(path)).lstrip(":, ")})


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
