"""Sources to a folder of tables, in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from wiredump.model import Anomaly, Item
from wiredump.rows.together import TableRows
from wiredump.sources import Sources
from wiredump.tables.frames import FramesOnly
from wiredump.tables.writer import RowGroups, TableWriter

__all__ = ["Made", "keep_frames", "make_tables"]


class Made(NamedTuple):
    """``rows`` by table. ``account`` says where every byte of TCP payload went, by what it is;
    empty where no source was a capture. ``late`` exchanges came too late to be in order."""

    rows: Mapping[str, int]
    account: Mapping[str, int]
    late: int


def _source(item: Item) -> int:
    if isinstance(item, Anomaly):
        return item.place.capture
    frame = item.request or item.response
    return frame.place.capture if frame is not None else 0


def keep_frames(sources: Sources, rows: TableRows, writer: RowGroups) -> None:
    """Have frames written without an object each, where the sources and the tables allow that."""
    if rows.takes_frames_only:
        sink = FramesOnly(writer, rows)
        if sources.frames_to(sink):
            writer.keep_in("frames", sink)


def make_tables(sources: Sources, rows: TableRows, folder: str, tables: tuple[str, ...]) -> Made:
    """Write ``tables`` into ``folder``. Raises OutputError where it cannot be used, and
    UnaccountedError or AccountError where bytes went nowhere, a mistake of ours."""
    texts = {each.number for each in sources.read if each.kind != "capture"}
    current: int | None = None
    with TableWriter(Path(folder), tables) as writer:
        keep_frames(sources, rows, writer)
        for item in sources:
            # Captures are merged by time, and the others follow one after the other.
            source = _source(item)
            if source in texts and source != current:
                writer.add(rows.turn())
                current = source
            writer.add(rows.add(item))
        writer.add(rows.end(sources.connections, sources.read, sources.account))
    return Made(writer.rows, sources.account, rows.order.late)
