"""One part of a capture to rows: those of the records that begin in it.

The file is opened here, and read in chunks; what bytes mean is ``walks``' and ``wiredump.readers``'
business. A part that starts anywhere finds its first record by a guess (``boundaries``); its
``SplitNote`` says where it began and ended, so that somebody can check.
"""

from __future__ import annotations

import io
import os
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, BinaryIO, Final, cast

import msgspec
import numpy as np
import pyarrow as pa

from wiredump.readers import Account, Anomaly, Capture, Event, Packet, merge
from wiredump.readers.merge import sorted_within
from wiredump.readers.pcap import LARGEST_RECORD
from wiredump.readers.segments import SegmentReader
from wiredump.spark.boundaries import find_record
from wiredump.spark.columns import ANOMALY, FRAGMENT, SPLIT, PacketRows, RawPacket, SplitNote
from wiredump.spark.heads import head_of
from wiredump.spark.order import note_walked
from wiredump.spark.usual import usual_rows
from wiredump.spark.walks import PcapngWalk, PcapWalk, Walk, Walked

__all__ = ["Split", "read_split"]

CHUNK: Final = 4 << 20
_BUFFER: Final = 64 * 1024
_BEHIND: Final = 64 * 1024
"""Read behind a part's end for its last record; a longer one takes another look."""
_ROWS: Final = 8192


class Split(msgspec.Struct, array_like=True):
    """Bytes ``start`` to ``end`` of the capture numbered ``capture``, of ``size`` bytes in all.

    ``exact``: a record begins at ``start``; otherwise the first one behind it is looked for.
    ``contexts`` are blocks of pcapng in front of it that it takes beside the file's head.
    ``whole``: the capture can only be read by one task. ``merged``: there are other captures.
    """

    path: str
    capture: int
    start: int
    end: int
    size: int
    exact: bool = False
    whole: bool = False
    merged: bool = False
    contexts: list[tuple[int, int]] = []


class _Aside:
    """Puts fragments aside instead of joining them."""

    def __init__(self) -> None:
        self.taken = False

    def add(
        self, key: Hashable, start: int, more: bool, data: memoryview, packet: Packet,
        out: list[Event],
    ) -> bytes | None:  # fmt: skip
        self.taken = True
        return None

    def close(self, out: list[Event]) -> None:
        return


def read_split(split: Split) -> Iterator[pa.RecordBatch]:
    """Its rows, the last of them its note."""
    with open(split.path, "rb") as file:
        head = None if split.whole else head_of(cast(BinaryIO, file))
    reader = _Reader(split)
    if head is None:
        yield from reader.whole()
    else:
        yield from reader.part()


class _Reader:
    def __init__(self, split: Split) -> None:
        self._split = split
        self._account = Account()
        self._aside = _Aside()
        self._segments = SegmentReader(self._account, self._aside)
        self._rows = PacketRows(split.capture)
        self._note = SplitNote(split.capture, split.start, size=split.size)
        self._payload = 0

    # ---- a whole capture ---------------------------------------------------------------------

    def whole(self) -> Iterator[pa.RecordBatch]:
        """From the beginning to the end, by the readers alone."""
        split, note = self._split, self._note
        with io.BufferedReader(io.FileIO(split.path), _BUFFER) as file:
            file.peek(1)  # as `wiredump.sources` does: what is read at a time is told of
            capture = Capture(cast(BinaryIO, file), number=split.capture)
            packets: Iterable[Packet | Anomaly] = (
                sorted_within(iter(capture)) if split.merged else merge(capture)
            )
            newest = number = 0
            for number, packet in enumerate(packets):
                newest = max(newest, packet.timestamp_ns) if isinstance(packet, Packet) else newest
                order = (newest, number) if split.merged else (0, packet.offset)
                in_file = capture.format == "pcap" and not capture.compression
                self._one(packet, order, packet.offset + PcapWalk.header if in_file else None)
                if len(self._rows) >= _ROWS:
                    yield self._rows.take()
            note.read = capture.bytes_read
        note.whole, note.first, note.end = True, 0, split.size
        yield self._last()

    # ---- a part ------------------------------------------------------------------------------

    def part(self) -> Iterator[pa.RecordBatch]:
        """The records that begin in it."""
        split, note = self._split, self._note
        file = os.open(split.path, os.O_RDONLY)
        try:
            with open(split.path, "rb") as again:
                head = head_of(cast(BinaryIO, again))
            assert head is not None
            first: int | None = max(split.start, head.first) if split.exact else None
            if first is None:
                first = find_record(file, split.size, head, split.start)
            note.first = first
            note.end = split.size if first is None else first
            context = os.pread(file, head.first, 0)
            for place, length in split.contexts:
                context += os.pread(file, length, place)
            walk: Walk
            if head.format == "pcap":
                walk = PcapWalk(head, context, split.capture)
            else:
                time_ns = 0 if first == head.first else None
                walk = PcapngWalk(head, context, split.capture, time_ns)
            if first is not None and (first < split.end or split.end >= split.size):
                yield from self._chunks(file, walk, first)
            note.contexts_known = split.exact
            note.trouble, note.contexts = walk.trouble, walk.contexts
            note.read = split.size
        finally:
            os.close(file)
        yield self._last()

    def _chunks(self, file: int, walk: Walk, position: int) -> Iterator[pa.RecordBatch]:
        split, note = self._split, self._note
        most = CHUNK
        while position < split.end:
            wanted = min(most, split.end - position + _BEHIND) if most == CHUNK else most
            chunk = os.pread(file, min(wanted, split.size - position), position)
            walked = walk.walk(chunk, position, split.end)
            yield from self._walked(chunk, position, walk, walked)
            at_end = position + len(chunk) >= split.size
            position += walked.end
            if walked.damaged or (at_end and not walked.end):
                # What cannot be read, or the file's last bytes, which are not a whole record.
                self._file_packets(walk.rest(chunk[walked.end :], position), None)
                position = split.size
                note.damaged = walked.damaged
            most = CHUNK if walked.end else LARGEST_RECORD + CHUNK
        note.end = position

    def _walked(
        self, chunk: bytes, base: int, walk: Walk, walked: Walked
    ) -> Iterator[pa.RecordBatch]:
        split, note = self._split, self._note
        for records in walked.records:
            batch, rest, payload = usual_rows(chunk, records, split.capture, split.merged)
            self._payload += payload
            note.packets += batch.num_rows
            note.segments += batch.num_rows
            if batch.num_rows:
                yield batch
            for place in records.places[rest].tolist():
                self._file_packets(walk.packet(chunk, base, place), walk.header)
        self._file_packets(walked.others, None)
        if split.merged:
            note_walked(note, base, walked.records, walked.others)
        if len(self._rows):
            yield self._rows.take()

    def _file_packets(self, found: list[Packet | Anomaly], header: int | None) -> None:
        """``header``: how far behind a record's beginning its packet stands; None if that is not
        the same for all."""
        for each in found:
            time = each.timestamp_ns if self._split.merged else 0
            self._one(each, (time, each.offset), None if header is None else each.offset + header)

    # ---- packets -----------------------------------------------------------------------------

    def _one(self, packet: Packet | Anomaly, order: tuple[int, int], data_at: int | None) -> None:
        """``data_at`` is where in the file the packet's bytes stand, None where they do not."""
        if isinstance(packet, Anomaly):
            self._rows.other(ANOMALY, packet, (packet.offset, packet.timestamp_ns), order)
            if packet.kind == "damaged":
                self._note.damaged = True
            return
        out: list[Event] = []
        self._aside.taken = False
        segment = self._segments.feed(packet, out)
        for event in out:
            if isinstance(event, Anomaly):
                self._rows.other(ANOMALY, event, (event.offset, event.timestamp_ns), order)
        if self._aside.taken:
            raw = RawPacket(packet.link_type, packet.original_length, bytes(packet.data))
            self._rows.other(FRAGMENT, raw, (packet.offset, packet.timestamp_ns), order)
        if segment is None:
            return
        self._payload += len(segment.payload)
        if not segment.payload or data_at is None:
            self._rows.segment(segment, order, 0, bytes(segment.payload) or None)
            return
        inside = _address(segment.payload) - _address(packet.data)
        self._rows.segment(segment, order, data_at + inside, None)

    def _last(self) -> pa.RecordBatch:
        """What is left, and the note."""
        note, account = self._note, self._account
        note.packets += account.packets
        note.segments += account.segments
        note.fragments, note.malformed = account.fragments, account.malformed
        note.others, note.anomalous = account.others, account.anomalous
        note.payload = self._payload + account.anomalous
        self._rows.other(SPLIT, note, (self._split.start, 0), (0, self._split.start))
        return self._rows.take()


def _address(view: Any) -> int:
    """Where in memory it begins."""
    return int(np.frombuffer(view, np.uint8).__array_interface__["data"][0])
