"""Write tables with several processes: ``wiredump table --jobs``.

Each process reads all of every capture, and takes some exchanges of each connection, or only some
connections (``readers.share``); no bytes pass between processes. This works because a connection in
tables depends only on its own packets (``Limits.alone``). What depends on several exchanges (topic
names, the tables of ``knowledge.following``) is set aside and merged at the end, by the code that
Spark uses (``completion``).

The rows are those of one process, but each process writes a file of its own, so the order differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kproto.cli.dialect_option import named_dialect
from kproto.errors import KprotoError
from wiredump.knowledge.following import FOLLOWED
from wiredump.model import Anomaly, Item
from wiredump.readers.share import Share
from wiredump.sources.kinds import kind_of
from wiredump.sources.opening import Sources
from wiredump.storage import Location
from wiredump.tables.completion import complete
from wiredump.tables.deferred_merge import read_names, write_followed
from wiredump.tables.deferred_rows import (
    EXCERPT_ORDER,
    EXCERPTS,
    UNNAMED,
    DeferredRows,
    taken_tables,
)
from wiredump.tables.making import Made, route_rows, sources_of
from wiredump.tables.parts import Manifest, PartWriter, summed
from wiredump.tables.processes import Progress, WorkerError, share_out
from wiredump.tables.publishing import STAGING, Publication
from wiredump.tables.table_rows import TableRows
from wiredump.tables.useful_processes import divides_connections
from wiredump.tables.work import Work
from wiredump.tables.writer import encodings

__all__ = ["Work", "WorkerError", "make_tables_in_processes", "write_share", "write_text"]


def make_tables_in_processes(
    work: Work, jobs: int, progress: Progress = lambda count: None
) -> Made:
    """Write the tables with ``jobs`` processes. Raises OutputError if the folder cannot be used,
    OSError for a source that cannot be opened, and WorkerError if a process failed. After an error
    the folder has no tables."""
    if "-" in work.paths.values():
        raise KprotoError("only one process can read standard input: leave out --jobs")
    kinds = [kind_of(path) for path in work.paths.values()]
    publication = Publication(work.out, work.run, work.mode, work.tables)
    work = msgspec.structs.replace(work, out=publication.work)
    try:
        task = partial(write_share, work, kinds, divided=divides_connections(work))
        shares = share_out(task, jobs, progress)
        _count_anomalies(work.out, shares)
        account = summed(shares).account
        rows = complete(
            work.out, shares, _InThisProcess(work, len(shares)), publication, tables=work.tables,
            names="topics" in _taken(work), lineage=_lineage(shares), account=account,
        )  # fmt: skip
        return Made(rows, account, shares[0].unread)
    except BaseException:
        publication.abandon()
        raise


def _lineage(shares: Sequence[Manifest]) -> Iterator[tuple[Any, ...]]:
    """Return the sources, each of which all processes have read."""
    times = summed(shares).times
    for number, name, kind, count, *_ in sorted(shares[0].sources):
        yield number, name, kind, count, *times.get(number, (None, None))


def _count_anomalies(folder: str, shares: Sequence[Manifest]) -> None:
    """Count the anomalies that other shares found in connections of the first one."""
    found = Counter[int]()
    for each in shares:
        found.update(each.anomalies)
    part = shares[0].parts.get("connections")
    if not found or part is None:
        return
    file = Location(folder) / STAGING / "connections" / part.file
    rows = read_names(file)
    place = rows.schema.get_field_index("anomalies")
    counts = zip(rows.column("connection").to_pylist(), rows.column(place).to_pylist(), strict=True)
    column = pa.array([count + found[number] for number, count in counts], pa.int64())
    rows = rows.set_column(place, rows.schema.field(place), column)
    pq.write_table(rows, file.path, filesystem=file.filesystem, **encodings(rows.schema))


# ---- one share --------------------------------------------------------------------------------


def _taken(work: Work) -> tuple[str, ...]:
    return taken_tables(work.tables, work.bodies)


def write_share(
    work: Work, kinds: Sequence[str], share: Share, progress: Progress = lambda count: None,
    *, divided: bool = False,
) -> Manifest:  # fmt: skip
    """Write the files of one share to the staging folder, with what ``deferral`` sets aside. With
    ``divided`` it is one of exchanges; then the first one lacks, in ``connections``, the anomalies
    that others have in their manifests."""
    if divided and share.of > 1:
        share = share._replace(divided=True)
    writer = _writer(work, share.number)
    captures = [number for number, kind in enumerate(kinds) if kind == "capture"]
    texts = [number for number, kind in enumerate(kinds) if kind != "capture"]
    read: list[_Read] = []
    if captures:
        read.append(_read(work, captures, share, writer, progress))
    if share.is_first:
        whole = Share(0, 1)
        read += [_read(work, [number], whole, writer, progress) for number in texts]
    manifest = _manifest(writer, read)
    if captures:
        manifest.unread = dict(read[0].sources.unread)
    return manifest


def write_text(work: Work, number: int, task: int) -> Manifest:
    """Write the files of one journal or log to the staging folder, as one of many tasks."""
    writer = _writer(work, task)
    return _manifest(writer, [_read(work, [number], Share(0, 1), writer, lambda count: None)])


def _writer(work: Work, task: int) -> PartWriter:
    return PartWriter(work.out, (*_taken(work), EXCERPTS, *UNNAMED), task)


class _Read(NamedTuple):
    """What was read, and the counts of its connections if this share reports them, else only those
    of the anomalies in their rows."""

    sources: Sources
    connections: int
    anomalies: dict[int, int]


def _manifest(writer: PartWriter, read: Sequence[_Read]) -> Manifest:
    manifest = writer.manifest()
    for sources, connections, anomalies in read:
        manifest.connections += connections
        manifest.anomalies.update(anomalies)
        for name, count in sources.account.items():
            manifest.account[name] = manifest.account.get(name, 0) + count
        for each in sources.read:
            manifest.sources.append(tuple(each))  # type: ignore[arg-type] # a NamedTuple
            if each.first_ns is not None and each.last_ns is not None:
                manifest.span(each.number, each.first_ns, each.last_ns)
    return manifest


def _read(
    work: Work, numbers: list[int], share: Share, writer: PartWriter,
    progress: Progress,
) -> _Read:  # fmt: skip
    """Read all captures, or one text, to the end."""
    codec = named_dialect(work.dialect)
    memory = None if work.memory is None else work.memory // share.of
    sources = sources_of(work, codec, numbers, share=share, memory=memory, progress=progress)
    is_text = sources.read[0].kind != "capture"
    part = numbers[0] + 1 if is_text else 0
    deferred = DeferredRows(work.tables, part, lambda *of: rows.names.name(*of))
    rows = TableRows.of(work, codec, _taken(work), deferred)
    route_rows(sources, rows, writer, work.tables, lambda made: writer.add(deferred.rows(made)))
    for item in sources:
        if _has(share, item):
            writer.add(deferred.rows(rows.add(item)))
        else:
            rows.counts.add(item)
    connections = sources.connections if share.reports_connections else {}
    writer.add(rows.end(connections, (), {}))
    anomalies = {} if share.reports_connections else rows.counts.anomalies
    return _Read(sources, len(connections), anomalies)


def _has(share: Share, item: Item) -> bool:
    if isinstance(item, Anomaly):
        return share.reports_connections
    frame = item.request or item.response
    assert frame is not None
    return share.has_exchange(item.connection.id, frame.offset)


# ---- the end ----------------------------------------------------------------------------------


class _InThisProcess:
    """The ``LastTasks`` of all processes, one after the other."""

    def __init__(self, work: Work, number: int) -> None:
        self._work, self._number = work, number

    def each(self, task: Callable[[Any], Manifest], items: Sequence[Any]) -> list[Manifest]:
        return [task(item) for item in items]

    def followed(self, files: Sequence[Location]) -> list[Manifest]:
        work = self._work
        return [write_followed(work.out, work.tables, _sorted(files), self._number)]


def _sorted(files: Sequence[Location]) -> Iterator[pa.RecordBatch]:
    """Yield the exchanges kept in order, one table at a time, and one broker's fetches."""
    for table in sorted(FOLLOWED):
        chosen = pc.field("table_name") == table
        if table == "fetches":
            for key in sorted(set(_excerpts(files, chosen, ["key"]).column("key").to_pylist())):
                yield from _excerpts(files, chosen & (pc.field("key") == key)).to_batches()
        else:
            yield from _excerpts(files, chosen).to_batches()


def _excerpts(
    files: Sequence[Location], which: pc.Expression, columns: list[str] | None = None
) -> pa.Table:
    tables = [
        pq.read_table(file.path, filesystem=file.filesystem, filters=which, columns=columns)
        for file in files
    ]
    table = pa.concat_tables(tables)
    if columns is None:
        table = table.sort_by([(name, "ascending") for name in EXCERPT_ORDER])
    return table
