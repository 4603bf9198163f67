"""Rotating captures to tables as they come, by Structured Streaming.

Spark's log decides which files a batch has (``capture_files``), ``foreachBatch`` makes its rows
(``stream_batch``), and triggers, limits, recovery, listeners and the page of a query are Spark's.
The rows are those of one batch over all files, whatever the rotation, however files fall into
batches, and whenever the driver or the machine dies.

Rows come with the batch in which an exchange is complete; a connection's row comes when it has
ended or was silent for ``idle``. Tables that depend on all batches (``end-*``) are written by
``complete``, as of the last batch. ``end`` closes what is open; nothing follows.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kproto.durations import parse_duration
from kproto.errors import KprotoError, MissingExtraError
from wiredump.sources.request_logs import time_zone
from wiredump.spark.arguments import SPLIT_BYTES, chosen_tables, dialect_of_tasks, hadoop_uri
from wiredump.spark.bad_files import OnBadFile
from wiredump.spark.connections import Options
from wiredump.spark.ending import prepare
from wiredump.spark.job import require_accounted
from wiredump.spark.outputs import outputs_of
from wiredump.spark.progress import Follower, Progress
from wiredump.spark.rotation import Rotated, Rotation
from wiredump.spark.session import cores_of, master_of
from wiredump.spark.sinks import Format, Layout
from wiredump.spark.stream_batch import Batch, explained
from wiredump.spark.stream_folder import RESTORE, Ended, Settings, StreamError, StreamFolder
from wiredump.storage import Location, StorageError, absolute, shown
from wiredump.tables.completion import written_tables
from wiredump.tables.making import Made
from wiredump.tables.publishing import STAGING
from wiredump.tables.run import Mode, random_run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Stream", "cause_of", "end", "stream"]

_FOLDER: Final = "wiredump"
_OURS: Final = re.compile(r"\b((?:wiredump|kproto)(?:\.\w+)+)\.(\w+): (.+)")
_ENDED: Final = re.compile(r"terminated with exception: (.+)")
_TASKS: Final = 32
"""Tasks that share the connections on a cluster, whose cores come and go."""


class Stream(msgspec.Struct, kw_only=True):
    """A stream. ``where`` is a folder or a pattern; ``options`` has the place of the tables and
    what to write, ``layout`` their form. ``checkpoint`` is Spark's, ``state`` the folder of what is
    kept between batches, if not in it. ``partitions`` None: as before, or one for each core of this
    machine, or 32."""

    where: str
    checkpoint: str
    options: Options
    layout: Layout = Layout()
    state: str | None = None
    partitions: int | None = None
    split_bytes: int = SPLIT_BYTES
    max_files: int | None = None
    max_bytes: int | None = 1 << 30
    idle_ns: int | None = 3_600_000_000_000
    start_after: str | None = None
    mode: Mode = "error"
    on_bad_file: OnBadFile = "fail"
    closed: bool = False

    @property
    def folder(self) -> str:
        """The folder of what is kept between batches."""
        return self.state or str(Location(absolute(self.checkpoint)) / _FOLDER)

    def begin(self, spark: SparkSession) -> None:
        """Begin, or check that the stream continues as it began. Raises StreamError, RotationError
        and OutputError."""
        store = StreamFolder(self.folder)
        before = store.settings
        options, rotation = self.options, Rotation(self.where)
        rotation.require()
        if before is None:
            self._require_new()
        self.partitions = self.partitions or (
            before.partitions if before is not None else _tasks(spark)
        )
        settings = Settings(
            where=rotation.where,
            out=options.out,
            partitions=self.partitions,
            tables=options.tables,
            dialect=options.dialect,
            ports=options.ports,
            bodies=options.bodies,
            values=options.values,
            secrets=options.secrets,
            idle_ns=self.idle_ns,
            zone=str(options.zone),
            run=options.run,
            skipped=before.skipped if before is not None else self._skipped(rotation),
            layout=self.layout,
            id=before.id if before is not None else random_run(),
        )
        has_rows = store.batches > 0
        outputs = outputs_of(settings)
        if before is None:
            outputs.require_room(spark, self.mode)
        # Before the tables: a stream that was killed in between has to know them again.
        with explained("the start of the stream"):
            store.begin(settings)
            store.require_whole()
            outputs.begin(spark, has_rows=has_rows)

    def _require_new(self) -> None:
        """Raise StreamError if Spark's checkpoint has batches of a stream whose state is gone."""
        place = Location(absolute(self.checkpoint)) / "offsets"
        with suppress(StorageError, MissingExtraError):  # only Spark has a client for it
            if place.listed(recursive=False):
                raise StreamError(
                    f"{shown(self.checkpoint)} continues a stream, but there is no state in "
                    f"{shown(self.folder)}: {RESTORE}"
                )

    def _skipped(self, rotation: Rotation) -> list[Rotated]:
        """Return the files up to ``start_after``."""
        if self.start_after is None:
            return []
        last = absolute(self.start_after)
        files = rotation.new({}, None).files
        paths = [each.path for each in files]
        if last not in paths:
            raise StreamError(
                f"--start-after: there is no capture {shown(last)} in {shown(rotation.where)}"
            )
        return files[: paths.index(last) + 1]

    @property
    def batch(self) -> Batch:
        """How batches run."""
        assert self.partitions is not None
        return Batch(
            folder=self.folder, options=self.options, partitions=self.partitions,
            split_bytes=self.split_bytes, idle_ns=self.idle_ns, on_bad_file=self.on_bad_file,
            quarantine=str(self.layout.place(self.options.out)),
        )  # fmt: skip

    @property
    def source_options(self) -> dict[str, str]:
        """The options of the data source."""
        named = {
            "path": self.where, "folder": self.folder, "maxfiles": self.max_files,
            "maxbytes": self.max_bytes, "closed": str(self.closed).lower(),
            "onbadfile": self.on_bad_file,
        }  # fmt: skip
        return {name: str(value) for name, value in named.items() if value is not None}

    def start(
        self, spark: SparkSession, trigger: dict[str, Any], name: str | None = None
    ) -> StreamingQuery:
        """Start a query. Raises what ``begin`` does."""
        # Imported late: it needs another release of Spark than the tables of a stream do.
        from wiredump.spark.capture_files import FORMAT, CaptureFiles
        from wiredump.spark.listening import OBSERVED, observations

        self.begin(spark)
        spark.dataSource.register(CaptureFiles)
        rows = spark.readStream.format(FORMAT).options(**self.source_options).load()
        files = rows.observe(OBSERVED, *observations(self.folder))
        checkpoint = hadoop_uri(absolute(self.checkpoint))
        writer = files.writeStream.option("checkpointLocation", checkpoint)
        writer = writer.queryName(name or f"wiredump {shown(self.where)}")
        return writer.foreachBatch(_Each(self.batch)).trigger(**trigger).start()

    def complete(self, spark: SparkSession, *, ending: bool) -> Made:
        """Write the tables that depend on all batches, as of the last one. ``ending``: close the
        connections that are open, too, and the stream. No query may run. Returns the contents of
        the tables."""
        store = StreamFolder(self.folder)
        with store.changing(), explained("the end" if ending else "the completion of the tables"):
            return self._complete(spark, store, ending)

    def _complete(self, spark: SparkSession, store: StreamFolder, ending: bool) -> Made:
        options = self.options
        ended = store.ended
        if ended is not None:
            return _made(options, ended.rows, ended.account, ended.connections)
        record, settings = store.last(), store.settings
        assert settings is not None
        last = record.batch if record is not None else -1
        begun = store.made
        if begun is not None and begun.record.batch > last:
            raise StreamError(
                f"batch {begun.record.batch} is not complete: run the query before its end"
            )
        outputs = outputs_of(settings)
        store.clear_work()
        batch = self.batch
        if ending:
            store.begin_end(last)
        micro = batch.end(spark, record) if ending else None
        made = prepare(
            spark, store, outputs.tables, record, micro, batch.partitions,
            Rotation(self.where).shown,
        )  # fmt: skip
        rows = dict(record.rows) if record is not None else {}
        for table, count in made.rows.items():
            rows[table] = rows.get(table, 0) + count
        sums = made.sums
        account = require_accounted(sums.account, sums.expected) if ending else sums.account
        outputs.conclude(spark, store.work / STAGING, made.parts, last + 1)
        if ending:
            outputs.succeed()
            store.end(Ended(batch=last, rows=rows, account=account, connections=sums.connections))
        store.clear_work()
        return _made(options, rows, account, sums.connections)

    def made(self) -> Made:
        """Return the contents of the tables that need no completion."""
        record = StreamFolder(self.folder).last()
        if record is None:
            return _made(self.options, {}, {}, 0)
        total = record.total
        return _made(self.options, record.rows, total.account, total.connections)


def _tasks(spark: SparkSession) -> int:
    """Return how many tasks share the connections by default."""
    cores = cores_of(spark)
    return cores if cores and master_of(spark).startswith("local") else _TASKS


def _made(
    options: Options, rows: dict[str, int], account: dict[str, int], connections: int
) -> Made:
    counts = {name: rows.get(name, 0) for name in written_tables(options.tables)}
    return Made(counts, account, connections=connections)


class _Each:
    """What ``foreachBatch`` calls: in this process or, with Spark Connect, on the server."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __call__(self, rows: DataFrame, number: int) -> None:
        from wiredump.spark.capture_files import planned_of

        self._batch.run(rows.sparkSession, number, planned_of(rows.collect()))


def cause_of(error: Exception) -> KprotoError | None:
    """Return what ended a query: the error of this package, of which Spark only has the text, or
    Spark's reason. None if that is unknown."""
    for module, name, text in reversed(_OURS.findall(str(error))):
        found = getattr(importlib.import_module(module), name, None)
        if isinstance(found, type) and issubclass(found, KprotoError):
            made = KprotoError.__new__(found)
            made.args = (text,)
            return made
    ended = _ENDED.search(str(error))
    return KprotoError(f"the query failed: {ended[1]}") if ended is not None else None


# -- for jobs of your own --------------------------------------------------------------------------


def stream(
    spark: SparkSession,
    where: str,
    *,
    out: str,
    checkpoint: str,
    format: Format = "parquet",
    partition_by: Sequence[str] = (),
    staging: str | None = None,
    state: str | None = None,
    available_now: bool = False,
    trigger: str = "10s",
    max_files: int | None = None,
    max_bytes: int | None = 1 << 30,
    start_after: str | None = None,
    closed: bool = False,
    idle: str | None = "1h",
    on_bad_file: OnBadFile = "fail",
    progress: Progress | None = None,
    name: str | None = None,
    mode: Mode = "error",
    run: str | None = None,
    tables: Sequence[str] | None = None,
    bodies: bool = True,
    values: bool = False,
    secrets: bool = False,
    ports: Sequence[int] = (9092,),
    dialect: str = "auto",
    zone: str = "UTC",
    memory: int | None = None,
    max_decompressed: int | None = None,
    partitions: int | None = None,
) -> StreamingQuery:
    """Start to write the tables of rotating captures, as they come, and return the query, which is
    Spark's: wait for it, stop it, listen to it as to any other. The session goes on afterwards.

    ``where`` is a folder or a pattern, by path or URI; ``checkpoint`` is the query's. A query with
    the same ``checkpoint`` continues. ``out``, ``format``, ``partition_by`` and ``staging`` are
    those of ``run``. ``trigger`` and ``idle`` are durations (``10s``, ``1h``);
    with ``available_now`` the query ends after the files that exist now. ``closed``: no file is
    being written any more, so that the newest is read, too. ``progress`` is called with a
    dictionary for each batch, from a thread of its own. The other arguments are the options of
    ``wiredump spark --follow``.

    Raises StreamError if the stream was begun with other options, RotationError if ``where`` does
    not exist, OutputError if ``out`` cannot be used. Files that cannot be read end the query
    (``on_bad_file``).
    """
    layout = Layout(form=format, partition_by=tuple(partition_by), staging=staging)
    layout.require()
    made = Stream(
        where=where, checkpoint=checkpoint, state=state, partitions=partitions, layout=layout,
        max_files=max_files, max_bytes=max_bytes, start_after=start_after, mode=mode,
        idle_ns=parse_duration(idle) if idle is not None else None,
        on_bad_file=on_bad_file, closed=closed,
        options=Options(
            out=layout.absolute(out), paths={}, tables=chosen_tables(tables, bodies),
            ports=tuple(ports), dialect=dialect_of_tasks(dialect),
            bodies=bodies, values=values, secrets=secrets, zone=time_zone(zone), memory=memory,
            max_decompressed=max_decompressed,
        ),
    )  # fmt: skip
    store = StreamFolder(made.folder)
    before = store.settings
    made.options = msgspec.structs.replace(
        made.options, run=run or (before.run if before is not None else random_run())
    )
    first = store.batches
    seconds = parse_duration(trigger) / 1e9
    when = {"availableNow": True} if available_now else {"processingTime": f"{seconds} seconds"}
    query = made.start(spark, when, name)
    if progress is not None:
        Follower(made.folder, first, progress).follow(query)
    return query


def end(
    spark: SparkSession, checkpoint: str, *, state: str | None = None, final: bool = True
) -> Made:
    """Write the tables of a stream that depend on all batches (topics, fetches, reassignments,
    groups, transactions, lineage, account), as of the last one. No query may run.

    ``final`` ends the stream: connections that are open are closed, and what comes later is
    refused. Without it, the stream can go on, and the next call replaces these tables. Returns the
    rows by table and the account of bytes. Raises StreamError without a stream.
    """
    made = Stream(
        where="", checkpoint=checkpoint, state=state, options=Options(out="", paths={}, tables=())
    )
    settings = StreamFolder(made.folder).settings
    if settings is None:
        raise StreamError(f"{shown(made.folder)} has no stream")
    made.where, made.partitions, made.layout = settings.where, settings.partitions, settings.layout
    made.idle_ns = settings.idle_ns
    made.options = Options(
        out=settings.out, paths={}, tables=settings.tables, dialect=settings.dialect,
        ports=settings.ports, bodies=settings.bodies, values=settings.values,
        secrets=settings.secrets, run=settings.run,
    )  # fmt: skip
    return made.complete(spark, ending=final)
