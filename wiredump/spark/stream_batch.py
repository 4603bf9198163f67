"""A batch of a stream: from its files, and the record and the state of the batch before, to rows
where readers look and a record of its own.

It is a function of these. What it writes has names that its number determines, so that a batch that
was killed is done by doing it again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from wiredump.spark.bad_files import OnBadStreamFile
from wiredump.spark.carrying import Carrying, Kept
from wiredump.spark.connections import Options
from wiredump.spark.ending import learn_names, staged
from wiredump.spark.job import LostError, write_texts
from wiredump.spark.microbatch import Micro, MicroBatch
from wiredump.spark.naming import give, table_of_file
from wiredump.spark.outputs import Outputs
from wiredump.spark.progress import summary_of
from wiredump.spark.rotation import RotationError, require_unchanged
from wiredump.spark.stream_folder import (
    Bad,
    Planned,
    Record,
    StreamError,
    StreamFolder,
    Taken,
    Waiting,
    put,
)
from wiredump.storage import Location
from wiredump.tables.deferred_rows import EXCERPTS, NAMED, unnamed
from wiredump.tables.parts import Manifest, summed
from wiredump.tables.publishing import STAGING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Batch"]


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """How to run batches: ``folder`` has what is kept between them, ``options`` the folder of the
    tables and what to write."""

    folder: str
    options: Options
    partitions: int
    split_bytes: int
    idle_ns: int | None
    on_bad_file: OnBadStreamFile = "fail"

    def run(self, spark: SparkSession, batch: int, planned: Planned) -> Record:
        """Run a batch, unless it has a record. Raises KprotoError for files that cannot be read,
        and whatever Spark raises for a task that failed."""
        return _Run(self, spark).run(batch, planned)

    def end(self, spark: SparkSession, record: Record | None) -> Micro:
        """Close the connections that are open after the last batch. Rows are in the work folder."""
        return _Run(self, spark).micro(record, [], (record.batch if record else -1) + 1, True)


class _Run:
    def __init__(self, about: Batch, spark: SparkSession) -> None:
        self._about = about
        self._spark = spark
        self._store = store = StreamFolder(about.folder)
        options = about.options
        self._out = Outputs(options.out, options.tables, options.run)
        self._work = str(store.work)
        self._options = msgspec.structs.replace(options, out=self._work)

    def run(self, batch: int, planned: Planned) -> Record:
        store, began = self._store, time.monotonic()
        done = store.record(batch)
        if done is not None:
            store.compact(done)
            return done
        before = store.record(batch - 1) if batch else None
        if batch and before is None:
            raise StreamError(
                f"{store.folder.shown} has no record of batch {batch - 1}: it is not of the stream "
                "that Spark's checkpoint continues"
            )
        if store.work.exists():
            self._out.forget_batch(batch)
            store.clear_after(batch - 1)
        bad = list(planned.bad)
        files = [each for each in planned.files if self._is_readable(each, bad)]
        micro = self.micro(before, [each for each in files if _is_capture(each)], batch, False)
        for each in files:
            require_unchanged(each.file)
        _require_all(micro.kept)
        texts = self._texts(
            {each.number: each.file.path for each in files if not _is_capture(each)}
        )
        record = self._record(batch, before, planned, files, bad, micro, texts)
        self._keep_state(record, before, micro)
        self._name(record, before, [*micro.kept, *texts])
        self._put_visible(micro.kept, f"batch-{batch:06d}")
        self._put_visible(texts, f"batch-{batch:06d}-text")
        made = summed([*micro.kept, *texts])
        record.summary = summary_of(record, before, made, planned.left, began)
        store.commit(record)
        store.clear_work()
        store.compact(record)
        return record

    def _is_readable(self, each: Taken, bad: list[Bad]) -> bool:
        """Whether a file is as it was when it was chosen. One that is not is added to ``bad``, or
        RotationError is raised."""
        try:
            require_unchanged(each.file)
        except RotationError as error:
            if self._about.on_bad_file == "fail":
                raise
            bad.append(Bad(each.file, str(error)))
            return False
        return True

    def micro(self, before: Record | None, files: list[Taken], batch: int, ending: bool) -> Micro:
        """Read captures, and continue the connections of the batch before."""
        state = before.state if before is not None else {}
        newest = [each.file.first_ns or 0 for each in files]
        fragments = before.fragments if before is not None else None
        path = self._store.path
        return MicroBatch(
            options=msgspec.structs.replace(
                self._options, paths={each.number: each.file.path for each in files}
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
            ),
            partitions=self._about.partitions,
            split_bytes=self._about.split_bytes,
            fragments=path(fragments) if fragments is not None else None,
        ).run(self._spark)

    def _texts(self, paths: dict[int, str]) -> list[Manifest]:
        """Read journals and logs."""
        options = msgspec.structs.replace(self._options, paths=paths)
        return write_texts(self._spark, options, list(paths)) if paths else []

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
            summary={"others": [Location(each).shown for each in planned.others]},
        )  # fmt: skip

    def _keep_state(self, record: Record, before: Record | None, micro: Micro) -> None:
        store, batch = self._store, record.batch
        for each in micro.kept:
            assert each.state is not None
            index, data = (f"{kind}/{batch:06d}/part-{each.task:05d}" for kind in ("state", "data"))
            put(Location(each.state.index), store.folder / index)
            put(Location(each.state.data), store.folder / data)
            record.state[each.task] = msgspec.structs.replace(each.state, index=index, data=data)
        record.fragments = before.fragments if before is not None else None
        if micro.fragments is not None:
            record.fragments = f"fragments/{batch:06d}"
            put(micro.fragments, store.folder / record.fragments)

    def _put_visible(self, manifests: Iterable[Manifest], begin: str) -> None:
        """Publish rows."""
        for number, each in enumerate(manifests):
            for table, part in each.parts.items():
                if table in self._about.options.tables and table != "topics":
                    source = Location(self._work) / STAGING / table / part.file
                    put(source, self._out.place(table, f"{begin}-{number:05d}"))

    def _name(self, record: Record, before: Record | None, made: Sequence[Manifest]) -> None:
        """Collect what tasks set aside and the names they learnt, and name the rows that lack
        one."""
        store, batch = self._store, f"{record.batch:06d}"
        for number, file, _ in staged(self._work, made, EXCERPTS):
            put(file, store.folder / EXCERPTS / f"{batch}-{number:05d}")
        wanting: dict[str, int] = {}
        for table in NAMED:
            for number, file, rows in staged(self._work, made, unnamed(table)):
                place = f"unnamed/{table}/{batch}-{number:05d}.parquet"
                put(file, store.folder / place)
                wanting[place] = record.newest_ns
                record.rows[table] = record.rows.get(table, 0) + rows
        waiting = dict(before.unnamed) if before is not None else {}
        if self._about.idle_ns is not None:
            since = record.newest_ns - self._about.idle_ns
            waiting = {name: each for name, each in waiting.items() if each.since_ns >= since}
        record.names = before.names if before is not None else None
        learnt = any("topics" in each.parts for each in made)
        if learnt or (wanting and record.names is None):
            new, _, renamed = learn_names(store, self._work, made, record.names, waiting)
            record.names = f"names/{batch}.parquet"
            put(new, store.folder / record.names)
            wanting |= {name: waiting[name].since_ns for name in renamed}
        without = self._give(wanting, record.names)
        waiting |= {name: Waiting(ids, wanting[name]) for name, ids in without.items()}
        record.unnamed = {name: each for name, each in waiting.items() if each.ids}

    def _give(self, wanting: Iterable[str], names: str | None) -> dict[str, list[str]]:
        """Rows that were put aside to where readers look, with the names that are known; the ids
        that are not."""
        files = {name: self._store.path(name) for name in wanting}
        if not files:
            return {}
        assert names is not None
        given = give(self._spark, list(files.values()), self._store.path(names), self._work)
        found = {}
        for name, path in files.items():
            table, which = table_of_file(Location(path))
            put(Location(given[path].file), self._out.place(table, f"batch-{which}-named"))
            found[name] = given[path].without
        return found


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
