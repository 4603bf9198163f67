"""Write tables with several processes: ``wiredump table --jobs``.

Each process reads all of every capture, but takes only the connections of some pairs of ends
(``readers.share``): finding the pair of a packet is cheap, and no bytes pass between processes.
This works because a connection in tables depends only on its own packets (``Limits.alone``). What
depends on several connections (topic names, the tables of ``knowledge.following``) is set aside
and merged at the end, by the code that Spark uses (``completion``).

The rows are those of one process, but each process writes a file of its own, so the order differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kproto.cli.dialect_option import named_dialect
from kproto.errors import KprotoError
from wiredump.knowledge.following import FOLLOWED
from wiredump.readers.share import Share
from wiredump.sources.kinds import kind_of
from wiredump.sources.opening import Sources
from wiredump.storage import Location
from wiredump.tables.completion import complete
from wiredump.tables.deferred_merge import write_followed
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
from wiredump.tables.publishing import Publication
from wiredump.tables.table_rows import TableRows
from wiredump.tables.work import Work

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
    publication = Publication(work.out, work.run, work.mode)
    try:
        shares = _shared_out(work, kinds, jobs, progress)
        account = summed(shares).account
        rows = complete(
            work.out, shares, _InThisProcess(work, len(shares)), publication, tables=work.tables,
            names="topics" in _taken(work), lineage=_lineage(shares), account=account,
        )  # fmt: skip
        return Made(rows, account, shares[0].unread)
    except BaseException:
        publication.abandon()
        raise


def _shared_out(work: Work, kinds: Sequence[str], jobs: int, progress: Progress) -> list[Manifest]:
    return share_out(partial(write_share, work, kinds), jobs, progress)


def _lineage(shares: Sequence[Manifest]) -> Iterator[tuple[Any, ...]]:
    """Return the sources, each of which all processes have read."""
    times = summed(shares).times
    for number, name, kind, count, *_ in sorted(shares[0].sources):
        yield number, name, kind, count, *times.get(number, (None, None))


# ---- one share --------------------------------------------------------------------------------


def _taken(work: Work) -> tuple[str, ...]:
    return taken_tables(work.tables, work.bodies)


def write_share(
    work: Work, kinds: Sequence[str], share: Share, progress: Progress = lambda count: None
) -> Manifest:
    """Write the files of one share to the staging folder, with what ``deferral`` sets aside."""
    writer = _writer(work, share.number)
    captures = [number for number, kind in enumerate(kinds) if kind == "capture"]
    texts = [number for number, kind in enumerate(kinds) if kind != "capture"]
    read: list[Sources] = []
    if captures:
        read.append(_read(work, captures, share, writer, progress))
    if share.is_first:
        read += [_read(work, [number], share, writer, progress) for number in texts]
    manifest = _manifest(writer, read)
    if captures:
        manifest.account, manifest.unread = dict(read[0].account), dict(read[0].unread)
    return manifest


def write_text(work: Work, number: int, task: int) -> Manifest:
    """Write the files of one journal or log to the staging folder, as one of many tasks."""
    writer = _writer(work, task)
    return _manifest(writer, [_read(work, [number], Share(0, 1), writer, lambda count: None)])


def _writer(work: Work, task: int) -> PartWriter:
    return PartWriter(work.out, (*_taken(work), EXCERPTS, *UNNAMED), task)


def _manifest(writer: PartWriter, read: Sequence[Sources]) -> Manifest:
    manifest = writer.manifest()
    for sources in read:
        manifest.connections += len(sources.connections)
        for each in sources.read:
            manifest.sources.append(tuple(each))  # type: ignore[arg-type] # a NamedTuple
            if each.first_ns is not None and each.last_ns is not None:
                manifest.span(each.number, each.first_ns, each.last_ns)
    return manifest


def _read(
    work: Work, numbers: list[int], share: Share, writer: PartWriter,
    progress: Progress,
) -> Sources:  # fmt: skip
    """Read all captures, or one text, to the end."""
    codec = named_dialect(work.dialect)
    memory = None if work.memory is None else work.memory // share.of
    sources = sources_of(work, codec, numbers, share=share, memory=memory, progress=progress)
    is_text = sources.read[0].kind != "capture"
    deferred = DeferredRows(work.tables, numbers[0] + 1 if is_text else 0)
    rows = TableRows.of(work, codec, _taken(work), deferred)
    route_rows(sources, rows, writer, work.tables, lambda made: writer.add(deferred.rows(made)))
    for item in sources:
        writer.add(deferred.rows(rows.add(item)))
    writer.add(rows.end(sources.connections, (), {}))
    return sources


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
