"""A capture read both ways: in Python alone, and with the extension; and what came of it, to be
compared to the last row."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from tests.support import toolchain
from wiredump import native
from wiredump.readers import Capture, Limits, Streams
from wiredump.sources import open_sources
from wiredump.sources.captures import CaptureItems
from wiredump.sources.quick import QuickStreams, walks
from wiredump.tables.making import make_tables
from wiredump.tables.table_rows import TableRows

__all__ = ["Outcome", "read_in_python", "read_quickly", "require_quick", "tables_of"]


class Outcome(NamedTuple):
    """``items`` and ``connections`` as texts: every field of every one. ``slowly`` counts packets
    that Python read."""

    items: list[str]
    connections: list[str]
    streams: Any
    bytes: Any
    slowly: int


def require_quick() -> None:
    """Skip the calling test where the extension is not built; fail it where that is required."""
    if native.built() is None:
        toolchain.absent("native", "make engine builds it, or says what is missing")


def read_in_python(
    capture: bytes, size: int = 1 << 20, items: CaptureItems | None = None
) -> Outcome:
    """By the code that is the reference."""
    items = items or CaptureItems()
    streams = Streams(Limits(alone=True))
    found = list(items.read(streams.read(Capture(io.BytesIO(capture), read_size=size))))
    streams.account.check()
    items.account.check()
    return _outcome(found, items, streams.account, streams.account.packets)


def read_quickly(
    capture: bytes, size: int = 1 << 20, limits: Limits | None = None,
    items: CaptureItems | None = None,
) -> Outcome:  # fmt: skip
    """With the extension, whatever ``KPROTO_ENGINE`` says; the file comes in reads of ``size``."""
    items = items or CaptureItems()
    with native.using(native.built()):
        streams = QuickStreams(items, limits or Limits(alone=True), None, None)
        read = Capture(io.BytesIO(capture), read_size=size, walks=walks())
        found = list(streams.read(read))
    streams.account.check()
    items.account.check()
    return _outcome(found, items, streams.account, streams.read_slowly)


def _outcome(found: list[Any], items: CaptureItems, account: Any, slowly: int) -> Outcome:
    connections = [repr(each) for each in items.connections.values()]
    return Outcome([repr(each) for each in found], connections, account, items.account, slowly)


def tables_of(
    capture: Path | list[Path], folder: Path, tables: tuple[str, ...], *, bodies: bool,
    rotated: bool = False,
) -> list[Any]:  # fmt: skip
    """The tables of a capture, of several, or of the parts of one (``rotated``), as ``wiredump
    table`` writes them by whatever is in use: rows in their order, and how many a row group has."""
    parts = [capture] if isinstance(capture, Path) else capture
    rows = TableRows(tables=tables, bodies=bodies)
    sources = open_sources([str(part) for part in parts], rotated=rotated)
    make_tables(sources, rows, str(folder), tables)
    found = []
    for name in tables:
        with pq.ParquetFile(folder / name / "part-0.parquet") as file:
            groups = [
                file.metadata.row_group(number).num_rows
                for number in range(file.metadata.num_row_groups)
            ]
            found.append((name, groups, file.read().to_pylist()))
    return found
