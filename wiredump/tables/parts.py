"""What tasks write and report: a file for each table and task, under a name of its own until the
driver publishes it.

A task may run twice, or die while writing. So each one writes to files that no
reader sees; only files in the manifests that tasks return count.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from wiredump.rows.pieces import Piece
from wiredump.storage import Location
from wiredump.tables.deferred_rows import nameless, schema_of, unnamed
from wiredump.tables.publishing import STAGING, Part
from wiredump.tables.writer import RowGroups, encodings

__all__ = [
    "Counts", "Manifest", "PartWriter", "SplitNote", "decode_manifest", "encode_manifest", "summed",
]  # fmt: skip


class SplitNote(msgspec.Struct):
    """What a task read of a capture. ``first`` is the record it began with, None where it found
    none; ``end`` the one after its last. ``trouble`` says why this part cannot be read without the
    whole capture. ``contexts`` are the places and lengths of blocks that the packets after them
    need; ``contexts_known`` says whether the task had those of earlier parts. ``late`` is the
    largest number of packets that came before one older than they are; ``earliest`` and ``latest``
    (the highest times, sorted) tell the same across parts. ``secrets`` are the TLS key logs in the
    part, ``reason`` is the first violation of its format. ``single``: each packet had a row of its
    own, in the order of one process. ``read`` lacks bytes that belong to no record.
    """

    capture: int
    start: int
    first: int | None = None
    end: int = 0
    size: int = 0
    read: int = 0
    packets: int = 0
    segments: int = 0
    fragments: int = 0
    malformed: int = 0
    others: dict[str, int] = {}
    reason: str = ""
    payload: int = 0
    anomalous: int = 0
    damaged: bool = False
    whole: bool = False
    single: bool = False
    trouble: str = ""
    contexts: list[tuple[int, int]] = []
    contexts_known: bool = False
    late: int = 0
    earliest: int | None = None
    latest: list[int] = []
    secrets: list[bytes] = []


class Counts(msgspec.Struct, kw_only=True):
    """The counts of tasks. ``account`` counts bytes of payload by where they went, ``expected``
    those in their rows' notes; ``times`` are the first and last of each capture. ``kafka_ports``
    and ``doubtful_ports`` are those of ``CaptureItems``."""

    kafka_ports: set[int] = set()
    doubtful_ports: set[int] = set()
    account: dict[str, int] = {}
    expected: int = 0
    connections: int = 0
    times: dict[int, tuple[int, int]] = {}

    def saw(self, capture: int, first: int, last: int) -> None:
        """Note the times of an item."""
        if first:
            self.span(capture, first, last)

    def span(self, capture: int, first: int, last: int) -> None:
        """Extend the times of a capture."""
        before = self.times.get(capture, (first, last))
        self.times[capture] = min(before[0], first), max(before[1], last)


def summed(counts: Iterable[Counts]) -> Counts:
    """Return the sums."""
    found = Counts()
    for each in counts:
        for name, count in each.account.items():
            found.account[name] = found.account.get(name, 0) + count
        found.expected += each.expected
        found.connections += each.connections
        found.kafka_ports |= each.kafka_ports
        found.doubtful_ports |= each.doubtful_ports
        for capture, (first, last) in each.times.items():
            found.span(capture, first, last)
    return found


class Manifest(Counts, kw_only=True):
    """The result of one task. ``sources`` are lineage rows of what it read whole, ``unread`` is
    ``Sources.unread``. ``notes`` are those of parts among its rows, on request. ``anomalies`` are
    those in rows of the task, by connections that another one reports."""

    parts: dict[str, Part] = {}
    sources: list[tuple[int, str, str, int, int | None, int | None]] = []
    unread: dict[str, str] = {}
    late: int = 0
    notes: list[SplitNote] = []
    anomalies: dict[int, int] = {}


class PartWriter(RowGroups):
    """Writes ``folder/_staging/TABLE/<name>.parquet``; ``close``, then ``parts`` lists the
    files."""

    def __init__(self, folder: str, tables: Iterable[str], task: int) -> None:
        super().__init__(tables)
        self._folder = Location(folder) / STAGING
        self._name = f"part-{task:05d}-{uuid.uuid4().hex}.parquet"

    def _open(self, name: str) -> pq.ParquetWriter:
        place = self._folder / name
        place.mkdir()
        schema = self._stored_schema(name)
        file = place / self._name
        return pq.ParquetWriter(file.path, schema, filesystem=file.filesystem, **encodings(schema))

    def _schema(self, name: str) -> pa.Schema:
        return schema_of(name)

    def _piece(self, name: str, piece: Piece) -> tuple[str, Piece]:
        wanting = nameless(piece) if unnamed(name) in self.rows else None
        return (name, piece) if wanting is None else (unnamed(name), wanting)

    def manifest(self) -> Manifest:
        """Close, and return a manifest with only the files."""
        self.close()
        return Manifest(parts=self.parts())

    def parts(self) -> dict[str, Part]:
        """Return the files written, by table."""
        return {name: Part(self._name, rows) for name, rows in self.rows.items() if rows}


# Made once: while threads make decoders of the same class for the first time, msgspec may crash.
_MANIFEST: Final = msgspec.json.Decoder(Manifest)


def encode_manifest(manifest: Manifest) -> str:
    """Encode a manifest as a task's result."""
    return msgspec.json.encode(manifest).decode()


def decode_manifest(text: str) -> Manifest:
    """Decode a task's result."""
    return _MANIFEST.decode(text)
