"""A batch of a stream: from its files, and the record and the state of the batch before, to rows
where readers look and a record of its own.

It is a function of these. First everything is made, as files in the work folder and as state whose
names the number of the batch determines; a batch that is killed before that is made again. Then the
rows are published and the record is written; a batch that is killed before that is published again.
Rows are final when they are published. Those that lack a topic's name wait for it in the stream's
folder.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from kproto.os_errors import os_error_text
from wiredump.readers.tcp import STALE_NS
from wiredump.spark.bad_files import BadFiles, OnBadFile
from wiredump.spark.carrying import LATE_NS, Carrying, Kept
from wiredump.spark.connections import Options
from wiredump.spark.ending import learn_names, staged
from wiredump.spark.job import LostError, write_texts
from wiredump.spark.microbatch import Micro, MicroBatch
from wiredump.spark.naming import give
from wiredump.spark.outputs import Parts, outputs_of
from wiredump.spark.progress import summary_of
from wiredump.spark.rotation import FaultError, as_it_is, require_unchanged
from wiredump.spark.session import describe
from wiredump.spark.stream_folder import (
    RESTORE,
    Bad,
    BatchMade,
    Planned,
    Record,
    StreamError,
    StreamFolder,
    Taken,
    Waiting,
    put,
)
from wiredump.storage import Location, shown, sync_all
from wiredump.tables.deferred_rows import EXCERPTS, NAMED, unnamed
from wiredump.tables.parts import Manifest, summed
from wiredump.tables.publishing import STAGING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Batch", "explained"]


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Raise StreamError for a file or folder that cannot be written or read, with what to do."""
    try:
        yield
    except OSError as error:
        raise StreamError(
            f"{what} is not complete: {os_error_text(error)}: correct this, and start again, which "
            "repeats it"
        ) from error


_NAMELESS_NS: Final = LATE_NS + STALE_NS
"""How long rows wait for a topic's name, by the times of packets."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """How to run batches: ``folder`` has what is kept between them, ``options`` what to write.
    ``quarantine`` is the folder for bad files."""

    folder: str
    options: Options
    partitions: int
    split_bytes: int
    idle_ns: int | None
    on_bad_file: OnBadFile = "fail"
    quarantine: str = ""

    def run(self, spark: SparkSession, batch: int, planned: Planned) -> Record:
        """Run a batch, unless it has a record. Raises KprotoError for files that cannot be read or
        if another driver runs one, and whatever Spark raises for a task that failed."""
        with StreamFolder(self.folder).changing(), explained(f"batch {batch}"):
            return _Run(self, spark).run(batch, planned)

    def end(self, spark: SparkSession, record: Record | None) -> Micro:
        """Close the connections that are open after the last batch. Rows are in the work folder."""
        return _Run(self, spark).micro(record, [], (record.batch if record else -1) + 1, True)


class _Run:
    def __init__(self, about: Batch, spark: SparkSession) -> None:
        self._about = about
        self._spark = spark
        self._store = store = StreamFolder(about.folder)
        self._work = str(store.work)
        self._options = msgspec.structs.replace(about.options, out=self._work)
        self._kept: list[Location] = []

    def run(self, batch: int, planned: Planned) -> Record:
        store, began = self._store, time.monotonic()
        done = store.record(batch)
        if done is not None:
            self._require_same(done, planned)
            if store.batches == batch + 1 and store.made is None:
                store.compact(done)
            return done
        before = store.record(batch - 1) if batch else None
        if (batch and before is None) or store.batches > batch:
            lacking = batch if before is not None or not batch else batch - 1
            raise StreamError(
                f"{store.folder.shown} has no record of batch {lacking}, with which Spark's "
                f"checkpoint goes on: {RESTORE}"
            )
        made = store.made
        if made is None or made.record.batch != batch:
            made = self._made(before, batch, planned)
            self._sync(made)
            store.keep_made(made)
        record = made.record
        self._publish(made)
        record.summary["ended"] = round(time.time(), 3)
        record.summary["seconds"] = round(time.monotonic() - began, 3)
        store.commit(record)
        store.clear_work()
        store.compact(record)
        return record

    def _require_same(self, done: Record, planned: Planned) -> None:
        """Raise StreamError if Spark's log has other files for a batch than its record."""
        if _paths(done) != _paths(planned):
            raise StreamError(
                f"batch {done.batch} of {self._store.folder.shown} has other files than Spark's "
                f"checkpoint says: {RESTORE}"
            )

    def _sync(self, made: BatchMade) -> None:
        """Wait until everything that was made is on the disk: it is not made again."""
        staging = Location(self._work) / STAGING
        parts = (item for each in made.parts for item in each.items())
        files = [staging / table / part.file for table, part in parts if part.rows]
        sync_all([*files, *self._kept])
        sync_all(each.parent for each in (*files, *self._kept))

    def _publish(self, made: BatchMade) -> None:
        settings = self._store.settings
        assert settings is not None
        staging, record = Location(self._work) / STAGING, made.record
        self._say(record.batch, "publishing")
        outputs_of(settings).publish(self._spark, staging, made.parts, record.batch)
        about = self._about
        if record.bad:
            reasons = {each.file.path: each.reason for each in record.bad}
            place = Location(about.quarantine)
            BadFiles(about.on_bad_file, place, settings.run, reasons).settle()

    def _made(self, before: Record | None, batch: int, planned: Planned) -> BatchMade:
        """Run the tasks of a batch, and keep the state that they leave."""
        store = self._store
        if store.work.exists():
            store.clear_after(batch - 1)
        bad = list(planned.bad)
        files = [each for one in planned.files for each in self._readable(one, bad)]
        micro = self.micro(before, [each for each in files if _is_capture(each)], batch, False)
        for each in files:
            require_unchanged(each.file)
        self._say(batch, "journals, names and divisions")
        _require_all(micro.kept)
        texts, unread = self._texts([each for each in files if not _is_capture(each)])
        bad += [Bad(each.file, unread[each.number]) for each in files if each.number in unread]
        files = [each for each in files if each.number not in unread]
        record = self._record(batch, before, planned, files, bad, micro, texts)
        self._keep_state(record, before, micro)
        tables = self._about.options.tables
        parts: list[Parts] = [
            {name: part for name, part in each.parts.items() if name in tables and name != "topics"}
            for each in [*micro.kept, *texts]
        ]
        parts += self._named(record, before, [*micro.kept, *texts])
        made = summed([*micro.kept, *texts])
        record.summary = summary_of(record, before, made, planned.left)
        settings = store.settings
        assert settings is not None
        staging = Location(self._work) / STAGING
        parts = outputs_of(settings).divided(self._spark, staging, parts)
        return BatchMade(record, [dict(each) for each in parts])

    def _say(self, batch: int, text: str) -> None:
        """Name the stage that begins on Spark's page."""
        describe(self._spark, f"wiredump {self._options.run}, batch {batch}: {text}")

    def _readable(self, each: Taken, bad: list[Bad]) -> list[Taken]:
        """Return a file as it is now: it may have grown since it was chosen. One that is another
        file, or gone, is added to ``bad``, or FaultError is raised."""
        try:
            return [Taken(each.number, as_it_is(each.file))]
        except FaultError as error:
            if self._about.on_bad_file == "fail":
                raise
            bad.append(Bad(each.file, str(error)))
            return []

    def micro(self, before: Record | None, files: list[Taken], batch: int, ending: bool) -> Micro:
        """Read captures, and continue the connections of the batch before."""
        self._say(batch, "end" if ending else "packets and connections")
        state = before.state if before is not None else {}
        newest = [each.file.first_ns or 0 for each in files]
        fragments = before.fragments if before is not None else None
        path = self._store.path
        return MicroBatch(
            options=msgspec.structs.replace(
                self._options,
                paths={each.number: each.file.path for each in files},
                kafka_ports=tuple(before.total.kafka_ports) if before is not None else (),
            ),
            carrying=Carrying(
                batch=batch,
                before={
                    task: msgspec.structs.replace(each, index=path(each.index))
                    for task, each in state.items()
                },
                data=path("data"),
                newest_ns=max([before.newest_ns if before is not None else 0, *newest]),
                names=path(before.names) if before is not None and before.names else None,
                ending=ending,
                idle_ns=self._about.idle_ns,
                learnt=before is not None and before.learnt,
            ),
            partitions=self._about.partitions,
            split_bytes=self._about.split_bytes,
            fragments=path(fragments) if fragments is not None else None,
        ).run(self._spark)

    def _texts(self, files: Sequence[Taken]) -> tuple[list[Manifest], dict[int, str]]:
        """Read journals and logs. Returns the reasons why others cannot be read, unless such a file
        ends the stream by FaultError."""
        if not files:
            return [], {}
        paths = {each.number: each.file.path for each in files}
        options = msgspec.structs.replace(self._options, paths=paths)
        made, unread = write_texts(self._spark, options, list(paths))
        if self._about.on_bad_file == "fail":
            for number, reason in unread.items():
                raise FaultError(f"{shown(paths[number])}: {reason}")
        return made, unread

    # -- results -----------------------------------------------------------------------------

    def _record(
        self, batch: int, before: Record | None, planned: Planned, files: list[Taken],
        bad: list[Bad], micro: Micro, texts: Sequence[Manifest],
    ) -> Record:  # fmt: skip
        made = summed([*micro.kept, *texts])
        total = summed([*([before.total] if before is not None else []), made])
        rows = Counter(before.rows if before is not None else {})
        rows.update(_rows([*micro.kept, *texts]))
        read = dict(micro.read)
        times = dict(made.times)
        for each in texts:
            for number, _, _, size, first_ns, last_ns in each.sources:
                read[number] = size
                if first_ns is not None and last_ns is not None:
                    times[number] = first_ns, last_ns
        taken = planned.files
        last = taken[-1].file if taken else before.last if before is not None else None
        newest = [each.file.first_ns or 0 for each in taken]
        return Record(
            batch=batch, files=files, bad=bad, read=read, times=times, last=last,
            count=(before.count if before is not None else 0) + len(taken),
            newest_ns=max([before.newest_ns if before is not None else 0, *newest]),
            total=msgspec.structs.replace(total, times={}), rows=dict(rows),
            learnt=bool(made.kafka_ports - (before.total.kafka_ports if before else set())),
            summary={
                "others": [Location(each).shown for each in planned.others],
                "damaged": [
                    shown(each.file.path) for each in files if each.number in micro.damaged
                ],
            },
        )  # fmt: skip

    def _put(self, file: Location, place: Location) -> None:
        """Move a file of the state to its place. All of them are synced together."""
        put(file, place)
        self._kept.append(place)

    def _keep_state(self, record: Record, before: Record | None, micro: Micro) -> None:
        store, batch = self._store, record.batch
        for each in micro.kept:
            assert each.state is not None
            index, data = (f"{kind}/{batch:06d}/part-{each.task:05d}" for kind in ("state", "data"))
            self._put(Location(each.state.index), store.folder / index)
            self._put(Location(each.state.data), store.folder / data)
            record.state[each.task] = msgspec.structs.replace(each.state, index=index, data=data)
        record.fragments = before.fragments if before is not None else None
        if micro.fragments is not None:
            record.fragments = f"fragments/{batch:06d}"
            self._put(micro.fragments, store.folder / record.fragments)

    def _named(
        self, record: Record, before: Record | None, made: Sequence[Manifest]
    ) -> list[Parts]:
        """Collect what tasks set aside and the names they learnt. Returns the files of rows that
        got their names, or waited too long for them."""
        store, batch = self._store, f"{record.batch:06d}"
        kept = before.excerpts if before is not None else 0
        if kept is not None:
            kept += sum(each.parts[EXCERPTS].rows for each in made if EXCERPTS in each.parts)
        record.excerpts = kept
        for number, file in staged(self._work, made, EXCERPTS):
            self._put(file, store.folder / EXCERPTS / f"{batch}-{number:05d}")
        wanting: dict[str, int] = {}
        for table in NAMED:
            for number, file in staged(self._work, made, unnamed(table)):
                place = f"unnamed/{table}/{batch}-{number:05d}.parquet"
                self._put(file, store.folder / place)
                wanting[place] = record.newest_ns
        waiting = dict(before.unnamed) if before is not None else {}
        since = record.newest_ns - _NAMELESS_NS
        final = {name for name, each in waiting.items() if each.since_ns < since}
        record.names = before.names if before is not None else None
        learnt = any("topics" in each.parts for each in made)
        if learnt or (wanting and record.names is None):
            new, _, renamed = learn_names(store, self._work, made, record.names, waiting)
            record.names = f"names/{batch}.parquet"
            self._put(new, store.folder / record.names)
            wanting |= {name: waiting[name].since_ns for name in renamed}
        wanting |= {name: waiting[name].since_ns for name in final}
        record.unnamed = {name: each for name, each in waiting.items() if name not in wanting}
        if not wanting:
            return []
        assert record.names is not None
        files = {store.path(name): name for name in wanting}
        last = {store.path(name) for name in final}
        given = give(self._spark, list(files), store.path(record.names), self._work, last)
        for number, each in enumerate(given):
            record.rows[each.table] = record.rows.get(each.table, 0) + each.part.rows
            if each.rest is not None:
                place = f"unnamed/{each.table}/{batch}-rest-{number:05d}.parquet"
                self._put(Location(each.rest), store.folder / place)
                record.unnamed[place] = Waiting(each.without, wanting[files[each.source]])
        return [{each.table: each.part} for each in given]


def _paths(about: Record | Planned) -> set[str]:
    files = (each.file.path for each in about.files)
    return {*files, *(each.file.path for each in about.bad)}


def _is_capture(each: Taken) -> bool:
    return each.file.kind == "capture"


def _require_all(kept: Iterable[Kept]) -> None:
    expected = fed = 0
    for each in kept:
        expected, fed = expected + each.expected, fed + each.fed
    if expected != fed:
        raise LostError(f"{expected} bytes of payload in packets, {fed} came to connections")


def _rows(made: Iterable[Manifest]) -> dict[str, int]:
    """Return the rows that tasks wrote, by table."""
    rows = Counter[str]()
    for each in made:
        rows.update({name: part.rows for name, part in each.parts.items() if name != "topics"})
    return dict(rows)
