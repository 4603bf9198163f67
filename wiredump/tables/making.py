"""Write sources to a folder of tables in one pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from kproto.cli.dialect_option import named_dialect
from kproto.dialects import Dialect
from wiredump.model import Anomaly, Item
from wiredump.rows.pieces import Rows
from wiredump.sources import Sources, open_sources
from wiredump.sources.quick import Sink
from wiredump.tables.run import Mode
from wiredump.tables.table_rows import TableRows
from wiredump.tables.table_writer import TableWriter
from wiredump.tables.work import Work
from wiredump.tables.writer import RowGroups

__all__ = ["Made", "make", "make_tables", "route_rows", "sink_of", "sources_of"]


class Made(NamedTuple):
    """The result. ``rows`` counts rows by table. ``account`` has the bytes of TCP payload by where
    they went; it is empty without captures. ``unread`` has captures without any TCP
    (``Sources.unread``). ``late`` exchanges came too late to be sorted. Of Spark's runs:
    ``connections``, and ``again``, the captures that were read twice."""

    rows: Mapping[str, int]
    account: Mapping[str, int]
    unread: Mapping[str, str] = {}
    late: int = 0
    connections: int = 0
    again: Sequence[str] = ()


def _source(item: Item) -> int:
    if isinstance(item, Anomaly):
        return item.place.capture
    frame = item.request or item.response
    return frame.place.capture if frame is not None else 0


def sink_of(
    rows: TableRows, writer: RowGroups, take: Callable[[Iterable[Rows]], None]
) -> Sink | None:
    """Return where exchanges go that need no object; None without the extension. ``take`` takes
    rows that are not added to ``writer`` at once."""
    made = rows.of_exchanges(writer.held, writer.flush, take)
    return None if made is None else Sink(lambda: take(rows.gathered()), rows.counted, made)


def route_rows(
    sources: Sources, rows: TableRows, writer: RowGroups, tables: Collection[str],
    take: Callable[[Iterable[Rows]], None],
) -> None:  # fmt: skip
    """Set up the sinks for rows that are not made of items: packets, if wanted, and those of
    exchanges that need no object, if the sources allow it."""
    if "packets" in tables:
        sources.packets_to(lambda row: writer.add([("packets", row)]))
    sink = sink_of(rows, writer, take)
    if sink is not None:
        sources.rows_to(sink)


def _writer(
    folder: str, tables: tuple[str, ...], rows: TableRows, run: str, mode: Mode
) -> TableWriter:
    """Return a writer that can wait for topic names, if they may be wanted."""
    if not rows.wants_names:
        return TableWriter(folder, tables, run=run, mode=mode)
    from wiredump.tables.naming import NamingWriter  # not needed for frames alone

    return NamingWriter(folder, tables, rows, run=run, mode=mode)


def make_tables(
    sources: Sources, rows: TableRows, folder: str, tables: tuple[str, ...],
    *, run: str = "", mode: Mode = "error",
) -> Made:  # fmt: skip
    """Write ``tables`` into ``folder``, a path or a URI, as those of ``run``. Raises OutputError if
    the folder cannot be used, and UnaccountedError or AccountError if bytes are unaccounted for,
    which is a bug."""
    texts = {each.number for each in sources.read if each.kind != "capture"}
    current: int | None = None
    with _writer(folder, tables, rows, run, mode) as writer:
        route_rows(sources, rows, writer, tables, writer.take)
        for item in sources:
            # Captures are merged by time; other sources follow one after the other.
            source = _source(item)
            if source in texts and source != current:
                writer.take(rows.turn())
                current = source
            writer.take(rows.add(item))
        writer.take(rows.end(sources.connections, sources.read, sources.account))
    return Made(writer.rows, sources.account, sources.unread, rows.order.late)


def sources_of(
    work: Work, codec: Dialect, numbers: Sequence[int] | None = None, **more: Any
) -> Sources:
    """Open the sources with these ``numbers``, or all. ``more`` are arguments of
    ``open_sources``."""
    numbers = list(work.paths) if numbers is None else numbers
    options = {
        "keylog": work.keylog, "zone": work.zone, "memory": work.memory,
        "max_decompressed": work.max_decompressed, **more,
    }  # fmt: skip
    return open_sources(
        [work.paths[number] for number in numbers], codec=codec, ports=frozenset(work.ports),
        numbers=numbers, **options,
    )  # fmt: skip


def make(work: Work, **more: Any) -> Made:
    """Write the tables of ``work``. ``more`` are arguments of ``open_sources``. Raises what readers
    and writers raise."""
    codec = named_dialect(work.dialect)
    with closing(sources_of(work, codec, **more)) as sources:  # also if the folder is refused
        rows = TableRows.of(work, codec)
        return make_tables(sources, rows, work.out, work.tables, run=work.run, mode=work.mode)
