"""Write tables with several processes: ``wiredump table --jobs``.

Each process reads all of every capture, but takes only the connections of some pairs of ends
(``readers.share``): finding the pair of a packet is cheap, and no bytes pass between processes.
This works because a connection in tables depends only on its own packets (``Limits.alone``). What
depends on several connections (topic names, the tables of ``knowledge.following``) is set aside
and merged at the end, by the code that Spark uses (``wiredump.tables.deferred_rows``,
``wiredump.tables.deferred_merge``).

The rows are those of one process, but each process writes a file of its own, so the order differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kproto.cli.dialect_option import named_dialect
from kproto.errors import KprotoError
from wiredump.knowledge.following import FOLLOWED
from wiredump.readers.share import Share
from wiredump.rows.connections import account_rows, lineage_rows
from wiredump.sources.opening import Sources, kind_of, open_sources
from wiredump.storage import Location
from wiredump.tables.deferred_merge import gather_names, give_names, write_followed
from wiredump.tables.deferred_rows import HEARD, HEARD_ORDER, NAMED, UNNAMED, DeferredRows, unnamed
from wiredump.tables.making import Made, keep_apart
from wiredump.tables.parts import PartWriter
from wiredump.tables.processes import Progress, WorkerError, share_out
from wiredump.tables.publishing import STAGING, Part, Publication
from wiredump.tables.table_rows import TableRows
from wiredump.tables.work import Work

__all__ = ["ShareParts", "Work", "WorkerError", "make_tables_together", "write_share"]

_LAST: Final = ("lineage", "account")
"""Tables that only the parent process can write."""


class ShareParts(NamedTuple):
    """What was written of a share: its files, the account, the sources, and ``Sources.unread``."""

    parts: dict[str, Part]
    account: dict[str, int]
    read: list[tuple[Any, ...]]
    unread: dict[str, str]


def make_tables_together(work: Work, jobs: int, progress: Progress = lambda count: None) -> Made:
    """Write the tables with ``jobs`` processes. Raises OutputError if the folder cannot be used,
    OSError for a source that cannot be opened, and WorkerError if a process failed. After an error
    the folder has no tables."""
    if "-" in work.paths:
        raise KprotoError("only one process can read standard input: leave out --jobs")
    kinds = [kind_of(path) for path in work.paths]
    publication = Publication(work.out, work.run, work.mode)
    try:
        shares = _shared_out(work, kinds, jobs, progress)
        return _put_together(work, shares, publication)
    except BaseException:
        publication.abandon()
        raise


# ---- one share --------------------------------------------------------------------------------


def _taken(work: Work) -> tuple[str, ...]:
    """Return the tables, with those that are needed to make them."""
    names = work.bodies and set(work.tables) & {*NAMED, "fetches"}
    return tuple({*work.tables, "topics"}) if names else work.tables


def write_share(
    work: Work, kinds: Sequence[str], share: Share, progress: Progress = lambda count: None
) -> ShareParts:
    """Write the files of one share to the staging folder, with what ``deferral`` sets aside."""
    writer = PartWriter(work.out, (*_taken(work), HEARD, *UNNAMED), share.number)
    captures = [number for number, kind in enumerate(kinds) if kind == "capture"]
    account: dict[str, int] = {}
    unread: dict[str, str] = {}
    read: list[tuple[Any, ...]] = []
    if captures:
        sources = _read(work, captures, share, writer, progress)
        account, unread = dict(sources.account), dict(sources.unread)
        read += [tuple(each) for each in sources.read]
    if share.is_first:
        for number, kind in enumerate(kinds):
            if kind != "capture":
                text = _read(work, [number], share, writer, progress)
                read += [tuple(each) for each in text.read]
    writer.close()
    return ShareParts(writer.parts(), account, read, unread)


def _read(
    work: Work, numbers: list[int], share: Share, writer: PartWriter,
    progress: Progress,
) -> Sources:  # fmt: skip
    """Read all captures, or one text, to the end."""
    codec = named_dialect(work.dialect)
    sources = open_sources(
        [work.paths[number] for number in numbers], codec=codec, ports=frozenset(work.ports),
        numbers=numbers, share=share, keylog=work.keylog, zone=work.zone,
        memory=None if work.memory is None else work.memory // share.of, progress=progress,
    )  # fmt: skip
    is_text = sources.read[0].kind != "capture"
    deferred = DeferredRows(work.tables, numbers[0] + 1 if is_text else 0)
    rows = TableRows(
        codec, tables=_taken(work), bodies=work.bodies, values=work.values, secrets=work.secrets,
        deferral=deferred,
    )  # fmt: skip
    keep_apart(sources, rows, writer, work.tables, lambda made: writer.add(deferred.rows(made)))
    for item in sources:
        writer.add(deferred.rows(rows.add(item)))
    writer.add(rows.end(sources.connections, (), {}))
    return sources


# ---- all of them ------------------------------------------------------------------------------


def _shared_out(
    work: Work, kinds: Sequence[str], jobs: int, progress: Progress
) -> list[ShareParts]:
    return share_out(partial(write_share, work, kinds), jobs, progress)


def _put_together(work: Work, shares: list[ShareParts], publication: Publication) -> Made:
    account: Counter[str] = Counter()
    for share in shares:
        account.update(share.account)
    told = {name: account[name] for name in shares[0].account}
    last = PartWriter(work.out, _LAST, len(shares))
    last.add(lineage_rows(_sources(shares)))
    last.add(account_rows(told))
    last.close()
    parts = [share.parts for share in shares] + [last.parts()]
    parts += _learnt(work, parts)
    wanted = [{name: part for name, part in each.items() if name in work.tables} for each in parts]
    publication.publish(work.tables, wanted)
    rows = {name: sum(each[name].rows for each in wanted if name in each) for name in work.tables}
    return Made(rows, told, 0, shares[0].unread)


def _sources(shares: list[ShareParts]) -> Iterator[tuple[Any, ...]]:
    """Return the sources, merged from all processes."""
    times: dict[int, list[int]] = {}
    for share in shares:
        for number, _, _, _, first, last in share.read:
            times.setdefault(number, []).extend(each for each in (first, last) if each is not None)
    for number, name, kind, count, _, _ in sorted(shares[0].read):
        seen = times[number]
        yield number, name, kind, count, min(seen, default=None), max(seen, default=None)


# ---- what takes more than one connection ------------------------------------------------------


def _learnt(work: Work, parts: list[dict[str, Part]]) -> list[dict[str, Part]]:
    """Write the files that depend on what was set aside; those of ``topics`` are replaced."""
    found = []
    if "topics" in _taken(work):
        files = [each.pop("topics").file for each in parts if "topics" in each]
        found.append(gather_names(work.out, files, 0).parts)
    for name in NAMED:
        for each in parts:
            if unnamed(name) in each:
                found.append(give_names(work.out, name, each[unnamed(name)].file).parts)
    staging = Location(work.out) / STAGING / HEARD
    heard = [staging / each[HEARD].file for each in parts if HEARD in each]
    if heard:
        found.append(write_followed(work.out, work.tables, _sorted(heard), len(parts)).parts)
    return found


def _sorted(files: list[Location]) -> Iterator[pa.RecordBatch]:
    """Yield the exchanges kept in order, one table at a time, and one broker's fetches."""
    for table in sorted(FOLLOWED):
        chosen = pc.field("table_name") == table
        if table == "fetches":
            for key in sorted(set(_heard(files, chosen, ["key"]).column("key").to_pylist())):
                yield from _heard(files, chosen & (pc.field("key") == key)).to_batches()
        else:
            yield from _heard(files, chosen).to_batches()


def _heard(
    files: list[Location], which: pc.Expression, columns: list[str] | None = None
) -> pa.Table:
    tables = [
        pq.read_table(file.path, filesystem=file.filesystem, filters=which, columns=columns)
        for file in files
    ]
    table = pa.concat_tables(tables)
    if columns is None:
        table = table.sort_by([(name, "ascending") for name in HEARD_ORDER])
    return table
