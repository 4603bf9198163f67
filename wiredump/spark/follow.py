"""Rotating captures to tables, as they come: micro-batches of closed files, one behind the other.

The rows are those of one batch over all files, whatever the rotation, however files fall into
batches, and whenever the driver or the machine dies: a batch's files are noted before, its rows are
put where readers look, and then it is committed (``checkpoint``); one that was not is undone and
done again.

These batches are this module's own, not Structured Streaming's: the end of a stream, which takes
the file still being written and closes what is open, has to be taken back when more comes, and a
Connect server has to do as well. Structured Streaming reads what they commit (``stream_reader``).

Rows come with the batch in which an exchange is complete. Tables that only the end knows (lineage,
account, connections still open, topics, fetches, reassignments) come with ``available_now``: from
then on the tables are those of one batch over all that is there, until there is more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from wiredump.spark.carrying import Carrying, Kept
from wiredump.spark.checkpoint import Checkpoint, Commit, End, Intent, Settings, Taken, put
from wiredump.spark.connections import Options
from wiredump.spark.ending import Ending, Sums, learn_names, prepare, staged
from wiredump.spark.job import LostError, require_accounted
from wiredump.spark.microbatch import Micro, MicroBatch
from wiredump.spark.naming import give, table_of_file
from wiredump.spark.outputs import Outputs
from wiredump.spark.rotation import Rotated, Rotation, complete, require_unchanged
from wiredump.storage import Location
from wiredump.tables.deferred_rows import EXCERPTS, NAMED, unnamed
from wiredump.tables.making import Made
from wiredump.tables.parts import Counts, Manifest, summed
from wiredump.tables.publishing import STAGING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Follow"]


class Follow(msgspec.Struct, kw_only=True):
    """A stream. ``where`` is a folder or a pattern; ``options`` has the folder of the tables and
    what to write. ``batch_bytes`` limits a batch, which has at least one file."""

    where: str
    checkpoint: str
    options: Options
    partitions: int
    split_bytes: int
    batch_bytes: int
    append: bool = False
    say: Callable[[str], object] = lambda text: None

    def run(self, spark: SparkSession, *, available_now: bool, wait: Callable[[], bool]) -> Made:
        """Process the files, ``wait``, and repeat until that returns False; with ``available_now``,
        process all files and end. Returns the contents of the tables.

        Raises KprotoError for files or folders that cannot be processed, and whatever Spark raises
        for a task that failed; another run continues after the last batch.
        """
        with Checkpoint(self.checkpoint) as store:
            return _Run(self, spark, store).run(available_now, wait)


class _Run:
    def __init__(self, about: Follow, spark: SparkSession, store: Checkpoint) -> None:
        self._about = about
        self._spark = spark
        self._store = store
        self._rotation = Rotation(about.where)
        options = about.options
        self._out = Outputs(options.out, options.tables, options.run)
        self._work = str(store.folder / "work")
        self._options = msgspec.structs.replace(about.options, out=self._work)

    def run(self, available_now: bool, wait: Callable[[], bool]) -> Made:
        self._begin()
        while True:
            intent = self._store.intent() or self._next()
            if intent is not None:
                self._batch(intent)
            elif available_now:
                return self._end()
            elif not wait():
                return self._made(self._store.end())

    def _begin(self) -> None:
        about, options, store = self._about, self._options, self._store
        if store.settings is None:
            self._out.require("append" if about.append else "error")
        settings = Settings(
            where=self._rotation.where, out=about.options.out, partitions=about.partitions,
            tables=options.tables, dialect=options.dialect, ports=options.ports,
            bodies=options.bodies, values=options.values, secrets=options.secrets,
            run=options.run,
        )  # fmt: skip
        store.begin(settings)
        self._out.make(anew=not store.commits)
        end = store.end()
        if end is not None and not end.done:
            self._take_back()
        self._undo()

    def _undo(self) -> None:
        """Undo what was done for batches that were not committed."""
        self._store.clear()
        self._out.keep_batches(self._store.batch)

    # -- which files -------------------------------------------------------------------------

    def _new(self) -> list[Rotated]:
        files = self._store.files
        taken = {each.file.stem: each.file for each in files}
        return self._rotation.new(taken, files[-1].file if files else None)

    def _next(self) -> Intent | None:
        """Return the files of the next batch, out of those that are complete."""
        ready: list[Rotated] = []
        size = 0
        for each in complete(self._new()):
            if ready and size + each.size > self._about.batch_bytes:
                break
            ready.append(each)
            size += each.size
        return self._store.intend(self._numbered(ready)) if ready else None

    def _numbered(self, files: Iterable[Rotated]) -> list[Taken]:
        return [Taken(number, file) for number, file in enumerate(files, len(self._store.files))]

    def _micro(self, files: list[Taken], ending: bool) -> Micro:
        last = self._store.last
        everything = [*self._store.files, *files]
        newest = max((each.file.first_ns or 0 for each in everything), default=0)
        before = last.state if last is not None else {}
        fragments = last.fragments if last is not None else None
        return MicroBatch(
            options=msgspec.structs.replace(
                self._options, paths={each.number: each.file.path for each in files}
            ),
            carrying=Carrying(
                batch=self._store.batch + 1,
                before={
                    task: msgspec.structs.replace(state, index=self._path(state.index))
                    for task, state in before.items()
                },
                data=self._path("data"),
                newest_ns=newest,
                names=self._path(last.names) if last is not None and last.names else None,
                ending=ending,
            ),
            partitions=self._about.partitions,
            split_bytes=self._about.split_bytes,
            fragments=self._path(fragments) if fragments is not None else None,
        ).run(self._spark)

    def _path(self, name: str) -> str:
        return str(self._store.folder / name)

    # -- a batch -----------------------------------------------------------------------------

    def _batch(self, intent: Intent) -> None:
        store, batch = self._store, intent.batch
        self._say(f"batch {batch}", intent.files)
        if store.end() is not None:
            self._take_back()
        store.clear_work()
        require_unchanged(each.file for each in intent.files)
        micro = self._micro(intent.files, ending=False)
        require_unchanged(each.file for each in intent.files)
        _require_all(micro.kept)
        before = store.last
        sums = summed(micro.kept)
        commit = Commit(
            batch=batch, files=intent.files, read=micro.read, rows=_rows(micro.kept),
            account=sums.account, times=sums.times, connections=sums.connections,
            expected=sums.expected,
        )  # fmt: skip
        for each in micro.kept:
            assert each.state is not None
            index, data = (f"{kind}/{batch:06d}/part-{each.task:05d}" for kind in ("state", "data"))
            put(Location(each.state.index), store.folder / index)
            put(Location(each.state.data), store.folder / data)
            commit.state[each.task] = msgspec.structs.replace(each.state, index=index, data=data)
        commit.fragments = before.fragments if before is not None else None
        if micro.fragments is not None:
            commit.fragments = f"fragments/{batch:06d}"
            put(micro.fragments, store.folder / commit.fragments)
        self._name(commit, before, micro.kept)
        store.require_owner()
        self._put_visible(micro.kept, f"batch-{batch:06d}")
        store.commit(commit)

    def _put_visible(self, manifests: Iterable[Manifest], begin: str) -> None:
        """Publish rows."""
        for number, each in enumerate(manifests):
            for table, part in each.parts.items():
                if table in self._about.options.tables and table != "topics":
                    source = Location(self._work) / STAGING / table / part.file
                    put(source, self._out.place(table, f"{begin}-{number:05d}"))

    def _name(self, commit: Commit, before: Commit | None, kept: list[Kept]) -> None:
        """Collect what tasks set aside and the names they learnt, and name the rows that lack
        one."""
        store, batch = self._store, f"{commit.batch:06d}"
        for task, file, _ in staged(self._work, kept, EXCERPTS):
            place = f"aside/{EXCERPTS}/{batch}-{task:05d}.parquet"
            put(file, store.folder / place)
            commit.excerpts.append(place)
        wanting: dict[str, list[str]] = {}
        for table in NAMED:
            for task, file, rows in staged(self._work, kept, unnamed(table)):
                place = f"aside/{unnamed(table)}/{batch}-{task:05d}.parquet"
                put(file, store.folder / place)
                wanting[place] = []
                commit.rows[table] = commit.rows.get(table, 0) + rows
        commit.names = before.names if before is not None else None
        commit.unnamed = dict(before.unnamed) if before is not None else {}
        learnt = any("topics" in each.parts for each in kept)
        if learnt or (wanting and commit.names is None):
            new, _, renamed = learn_names(store, self._work, kept)
            commit.names = f"names/{batch}.parquet"
            put(new, store.folder / commit.names)
            wanting |= {name: commit.unnamed[name] for name in renamed}
        commit.unnamed |= self._give(wanting, commit.names)
        commit.unnamed = {name: ids for name, ids in commit.unnamed.items() if ids}

    def _give(self, wanting: Iterable[str], names: str | None) -> dict[str, list[str]]:
        """Rows that were put aside to where readers look, with the names that are known; the ids
        that are not."""
        if not wanting:
            return {}
        assert names is not None
        files = {name: self._path(name) for name in wanting}
        given = give(self._spark, list(files.values()), self._path(names), self._work)
        found = {}
        for name, path in files.items():
            table, which = table_of_file(Location(path))
            put(Location(given[path].file), self._out.place(table, f"batch-{which}-named"))
            found[name] = given[path].without
        return found

    # -- the end -----------------------------------------------------------------------------

    def _end(self) -> Made:
        """Complete the tables, as if nothing followed."""
        store, files = self._store, self._new()
        end = store.end()
        if end is not None and end.done and (end.after, end.files) == (store.batch, files):
            return self._made(end)
        if end is not None:
            self._take_back()
        store.clear_work()
        taken = self._numbered(files)
        self._say("to the end", taken)
        require_unchanged(files[:-1])
        micro = self._micro(taken, ending=True)
        require_unchanged(files[:-1])
        _require_all(micro.kept)
        sums = summed([*store.commits, *micro.kept])
        account = require_accounted(sums.account, sums.expected)
        ending = self._prepare(micro, taken, sums)
        end = End(
            after=store.batch, files=files, renamed=ending.renamed, rows=ending.rows,
            account=account, connections=summed(micro.kept).connections,
        )  # fmt: skip
        store.write("end.json", end)
        ending.show()
        self._out.succeed()
        end.done = True
        store.write("end.json", end)
        return self._made(end)

    def _prepare(self, micro: Micro, taken: list[Taken], made: Counts) -> Ending:
        store = self._store
        read = dict(micro.read)
        for commit in store.commits:
            read |= commit.read
        files = [*store.files, *taken]
        sums = Sums(self._rotation.shown, files, read, made.times, made.account)
        return prepare(self._spark, store, self._work, self._out, micro, sums)

    def _take_back(self) -> None:
        """Undo the end, which is no longer valid."""
        store, end, last = self._store, self._store.end(), self._store.last
        self._out.forget_end()
        if end is not None and end.renamed and last is not None:
            self._give([name for name in end.renamed if name in last.unnamed], last.names)
        store.forget_end()

    def _made(self, end: End | None) -> Made:
        rows = Counter[str]()
        for commit in self._store.commits:
            rows.update(commit.rows)
        rows.update(end.rows if end is not None else {})
        sums = summed(self._store.commits)
        counts = {name: rows[name] for name in self._out.tables}
        if end is not None:
            return Made(counts, end.account, connections=sums.connections + end.connections)
        return Made(counts, sums.account, connections=sums.connections)

    def _say(self, what: str, files: list[Taken]) -> None:
        size = sum(each.file.size for each in files)
        self._about.say(f"{what}: {len(files)} files, {size:,} bytes")


def _require_all(kept: Iterable[Kept]) -> None:
    expected = fed = 0
    for each in kept:
        expected, fed = expected + each.expected, fed + each.fed
    if expected != fed:
        raise LostError(f"{expected} bytes of payload in packets, {fed} came to connections")


def _rows(kept: Iterable[Kept]) -> dict[str, int]:
    """Return the rows that tasks wrote, by table."""
    rows = Counter[str]()
    for each in kept:
        rows.update({name: part.rows for name, part in each.parts.items() if name != "topics"})
    return dict(rows)
