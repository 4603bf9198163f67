"""Turn one part of a capture into rows: those of the records that begin in it.

This module opens the file and reads it in chunks; ``wiredump.readers`` interprets them. A part that
starts anywhere guesses its first record (``record_boundaries``); its ``SplitNote`` states where it
began and ended, so that the guess can be checked.
"""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Hashable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from wiredump.native import quick
from wiredump.readers import TLS_KEY_LOG, Account, Anomaly, Capture, Event, Packet, Secrets, merge
from wiredump.readers.merge import sorted_within
from wiredump.readers.pcap import LARGEST_RECORD, RECORD_HEADER, PcapReader
from wiredump.readers.pcapng import ENHANCED_HEADER, PcapngReader
from wiredump.readers.segments import SegmentReader
from wiredump.rows.packets import record_of, unread_row
from wiredump.sources.quick import walks
from wiredump.spark.columns import ANOMALY, FRAGMENT, PACKET, SPLIT, PacketRows, RawPacket
from wiredump.spark.heads import Head, head_of
from wiredump.spark.order import note_times
from wiredump.spark.record_boundaries import find_record
from wiredump.spark.runs import RunRows
from wiredump.storage import Location, RangedFile
from wiredump.tables.parts import SplitNote

__all__ = ["Split", "read_split", "read_splits"]

CHUNK: Final = 4 << 20
_BEHIND: Final = 64 * 1024
"""Read beyond a part's end for its last record; a longer one needs another read."""
_ROWS: Final = 8192


class Split(msgspec.Struct, array_like=True):
    """Bytes ``start`` to ``end`` of the capture numbered ``capture``, which has ``size`` bytes.
    ``exact``: a record begins at ``start``; otherwise the first one behind it is searched for.
    ``contexts`` are earlier pcapng blocks that it needs beside the head of the file. ``whole``:
    only one task can read the capture. ``single``: that task makes a row of each packet, since
    their times do not give the order. ``merged``: there are other captures. ``packets``: the table
    of that name is wanted. ``version`` is that of the file (``storage.RangedFile``). ``carried``:
    rows carry their payloads, because reading them by position later costs a request each.
    ``max_decompressed`` as in ``Capture``. ``copy`` is the local file to write, for the tasks that
    read payloads by position, what a compressed capture holds; without it, rows carry payloads."""

    path: str
    capture: int
    start: int
    end: int
    size: int
    exact: bool = False
    whole: bool = False
    merged: bool = False
    contexts: list[tuple[int, int]] = []
    packets: bool = False
    version: str = ""
    carried: bool = False
    max_decompressed: int | None = None
    single: bool = False
    copy: str = ""

    def of_whole_file(self, *, single: bool = False) -> Split:
        """Return the part that is the whole capture, for one task."""
        return msgspec.structs.replace(
            self, start=0, end=self.size, exact=False, whole=True, contexts=[],
            single=single or self.single,
        )  # fmt: skip


class _UnjoinedFragments:
    """Sets fragments aside instead of joining them."""

    def __init__(self) -> None:
        self.taken = False

    def add(
        self, key: Hashable, start: int, more: bool, data: memoryview, packet: Packet,
        out: list[Event],
    ) -> bytes | None:  # fmt: skip
        self.taken = True
        return None

    def waits(self, key: Hashable) -> None:
        """``fragments.join_fragments`` knows."""
        return None

    def close(self, out: list[Event]) -> None:
        return


def read_split(split: Split) -> Iterator[pa.RecordBatch]:
    """Yield its rows, and finally its note. Usual packets are in runs if the extension is built and
    the table of packets is not wanted."""
    reader = _Reader(split)
    place = Location(split.path)
    with place.open_ranged() as file:
        file.require(split.version)
        head = None if split.whole else head_of(file)
        if head is not None:
            yield from reader.part(file, head)
    if head is None:
        yield from reader.whole()
    if split.version:
        with place.open_ranged() as file:
            file.require(split.version)


def read_splits(splits: Iterable[Split]) -> Iterator[pa.RecordBatch]:
    """Yield the same of several, in batches of a size that does not depend on theirs."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for split in splits:
        for batch in read_split(split):
            held.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= _ROWS or size >= CHUNK:
                yield pa.concat_batches(held) if len(held) > 1 else batch
                held, rows, size = [], 0, 0
    if held:
        yield pa.concat_batches(held) if len(held) > 1 else held[0]


class _Copy:
    """A file that appears under its name once it is complete: a task may run twice."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._new = f"{name}.{uuid.uuid4().hex}"
        self._file: io.BufferedWriter | None = None

    def write(self, data: bytes) -> None:
        if self._file is None:
            os.makedirs(os.path.dirname(self._name), exist_ok=True)
            self._file = open(self._new, "wb")  # noqa: SIM115  # closed in __exit__
        self._file.write(data)

    def __enter__(self) -> _Copy:
        return self

    def __exit__(self, kind: type[BaseException] | None, *about: object) -> None:
        if self._file is None:
            return
        self._file.close()
        if kind is None:
            os.replace(self._new, self._name)


class _Reader:
    """Makes a row for each packet or each run of usual packets."""

    def __init__(self, split: Split) -> None:
        self._split = split
        self._module = module = quick()
        self._runs: RunRows | None = None
        if module is not None and not split.packets:
            self._runs = RunRows(split.capture, split.merged, module)
        self._account = Account()
        self._fragments = _UnjoinedFragments()
        self._segments = SegmentReader(self._account, self._fragments)
        self._rows = PacketRows(split.capture)
        self._note = SplitNote(split.capture, split.start, size=split.size)
        self._payload = 0
        self._carried = split.carried
        self._has_copy = False

    # ---- a whole capture ---------------------------------------------------------------------

    def whole(self) -> Iterator[pa.RecordBatch]:
        """Read from beginning to end, with the readers alone."""
        split, note = self._split, self._note
        in_bulk = self._runs is not None and not split.single
        with Location(split.path).open() as file, ExitStack() as copies:
            file.peek(1)  # as `wiredump.sources` does, which reports each read
            copy = copies.enter_context(_Copy(split.copy)) if in_bulk and split.copy else None
            self._has_copy = copy is not None
            capture = Capture(
                file, number=split.capture, max_decompressed=split.max_decompressed,
                walks=walks() if in_bulk else None,
                decompressed=None if copy is None else copy.write,
            )  # fmt: skip
            if not in_bulk:
                yield from self._one_by_one(capture)
            else:
                yield from self._in_bulk(capture)
            note.read = capture.bytes_read - capture.lost
            note.secrets = _key_logs(capture.secrets)
        note.whole, note.single = True, not in_bulk
        note.first, note.end = 0, split.size
        yield from self._last()

    def _one_by_one(self, capture: Capture) -> Iterator[pa.RecordBatch]:
        """Make a row of each packet, in the order in which one process merges captures."""
        split = self._split
        packets: Iterable[Packet | Anomaly] = (
            sorted_within(iter(capture)) if split.merged else merge(capture)
        )
        newest = 0
        for number, packet in enumerate(packets):
            newest = max(newest, packet.timestamp_ns) if isinstance(packet, Packet) else newest
            order = (newest, number) if split.merged else (0, packet.offset)
            is_plain = capture.format == "pcap" and not capture.compression
            origin = None
            if is_plain and isinstance(packet, Packet):
                origin = _address(packet.data) - RECORD_HEADER - packet.offset
            self._one(packet, order, origin)
            if len(self._rows) >= _ROWS:
                yield self._rows.take()

    def _in_bulk(self, capture: Capture) -> Iterator[pa.RecordBatch]:
        """Make runs of usual packets. They carry their bytes if these are not in the file as
        such."""
        found: Any
        for found in capture:
            if capture.compression:
                self._carried = not self._has_copy
            if isinstance(found, (Packet, Anomaly)):
                yield from self._found(b"", 0, [found])
                continue
            place, _, _, at, *_ = found[0]
            header = RECORD_HEADER if capture.format == "pcap" else ENHANCED_HEADER
            yield from self._found(found.chunk, place + header - at, [found])

    # ---- a part ------------------------------------------------------------------------------

    def part(self, file: RangedFile, head: Head) -> Iterator[pa.RecordBatch]:
        """Read the records that begin in the part."""
        split, note = self._split, self._note
        first: int | None = max(split.start, head.first) if split.exact else None
        if first is None:
            first = find_record(file, split.size, head, split.start)
        note.first, note.read = first, split.size
        note.end = split.size if first is None else first
        reader = self._format(head)
        context = file.read_at(0, head.first)
        for place, length in split.contexts:
            context += file.read_at(place, length)
        reader.feed(context)
        reader.untimed = False
        known, in_front = len(reader.contexts), len(reader.secrets) if split.start else 0
        if first is not None and (first < split.end or split.end >= split.size):
            yield from self._chunks(file, reader, first)
        note.contexts_known = split.exact
        if reader.untimed and first != head.first:
            note.trouble = "it takes the packet before to know a packet's time"
        note.contexts = reader.contexts[known:]
        note.secrets = _key_logs(reader.secrets[in_front:])
        yield from self._last()

    def _format(self, head: Head) -> PcapReader | PcapngReader:
        """Return a reader of the records that begin in the part."""
        module, split = self._module, self._split
        if head.format == "pcap":
            walk = None if module is None else module.walk_pcap
            return PcapReader(split.capture, walk, split.end, resume=False, first=head.seconds)
        walk = None if module is None else module.walk_pcapng
        return PcapngReader(split.capture, walk, split.end, resume=False)

    def _chunks(
        self, file: RangedFile, reader: PcapReader | PcapngReader, position: int
    ) -> Iterator[pa.RecordBatch]:
        split, note = self._split, self._note
        most = CHUNK
        while position < split.end:
            wanted = min(most, split.end - position + _BEHIND) if most == CHUNK else most
            chunk = file.read_at(position, min(wanted, split.size - position))
            reader.go_to(position)
            found = reader.feed(chunk)
            yield from self._found(chunk, position, found)
            moved = reader.position - position
            position += moved
            if reader.stopped or (not moved and position + len(chunk) >= split.size):
                # What cannot be read, or the file's last bytes, which are not a whole record.
                note.damaged = reader.stopped
                for each in reader.finish():
                    if isinstance(each, Anomaly):  # packets behind damage are read with the whole
                        self._file_packet(each, None)
                        note.read -= each.lost
                position = split.size
            most = CHUNK if moved else LARGEST_RECORD + CHUNK
        note.end = position

    def _found(self, chunk: bytes, position: int, found: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """Make rows of the packets of a chunk of the file that begins at ``position``."""
        view, runs = memoryview(chunk), self._runs
        origin = _address(view) - position if chunk else None
        for each in found:
            if isinstance(each, (Packet, Anomaly)):
                self._file_packet(each, origin)
                continue
            for number in range(len(each)) if runs is None else runs.add(each):
                place, time, link, at, end, original, interface, capture = each[number]
                packet = Packet(place, time, link, view[at:end], original, interface, capture)
                self._file_packet(packet, origin)
        if self._split.merged:
            note_times(self._note, found)
        if runs is not None:
            count, payload = runs.counts()
            self._note.packets += count
            self._note.segments += count
            self._payload += payload
        if runs is not None and self._carried:
            yield from runs.take(chunk, position)
        elif runs is not None and runs.full:
            yield from runs.take()
        if len(self._rows):
            yield self._rows.take()

    def _file_packet(self, packet: Packet | Anomaly, origin: int | None) -> None:
        time = packet.timestamp_ns if self._split.merged else 0
        self._one(packet, (time, packet.offset), origin)

    # ---- packets -----------------------------------------------------------------------------

    def _one(self, packet: Packet | Anomaly, order: tuple[int, int], origin: int | None) -> None:
        """Read one packet. ``origin`` is the address of its bytes less their place in the file;
        None if they are not there as such, or must not be read there."""
        if self._carried:
            origin = None
        if isinstance(packet, Anomaly):
            self._rows.other(ANOMALY, packet, (packet.offset, packet.timestamp_ns), order)
            if packet.kind == "packet":
                self._add_unread(packet, None, order)
            self._note.reason = self._note.reason or packet.reason
            if packet.kind == "damaged":
                self._note.damaged = True
            return
        out: list[Event] = []
        self._fragments.taken = False
        segment = self._segments.feed(packet, out)
        for event in out:
            if isinstance(event, Anomaly):
                self._rows.other(ANOMALY, event, (event.offset, event.timestamp_ns), order)
                self._add_unread(event, packet, order)
        with_packets = self._split.packets
        if self._fragments.taken:
            raw = RawPacket(packet.link_type, packet.original_length, bytes(packet.data))
            raw.interface = packet.interface if with_packets else None
            self._rows.other(FRAGMENT, raw, (packet.offset, packet.timestamp_ns), order)
        if segment is None:
            return
        self._payload += len(segment.payload)
        record = record_of(packet) if with_packets else None
        if not segment.payload or origin is None:
            self._rows.segment(segment, order, 0, bytes(segment.payload) or None, record)
            return
        self._rows.segment(segment, order, _address(segment.payload) - origin, None, record)

    def _add_unread(self, anomaly: Anomaly, packet: Packet | None, order: tuple[int, int]) -> None:
        """Report a packet that cannot be read."""
        if self._split.packets:
            row = unread_row(anomaly, packet)
            self._rows.other(PACKET, row, (anomaly.offset, anomaly.timestamp_ns), order)

    def _last(self) -> Iterator[pa.RecordBatch]:
        """Return the remaining rows, and the note."""
        if self._runs is not None:
            yield from self._runs.take()
        note, account = self._note, self._account
        note.packets += account.packets
        note.segments += account.segments
        note.fragments, note.malformed = account.fragments, account.malformed
        note.others, note.anomalous = account.others, account.anomalous
        note.payload = self._payload + account.anomalous
        self._rows.other(SPLIT, note, (self._split.start, 0), (0, self._split.start))
        yield self._rows.take()


def _key_logs(secrets: list[Secrets]) -> list[bytes]:
    return [each.data for each in secrets if each.secrets_type == TLS_KEY_LOG]


def _address(view: Any) -> int:
    """Where in memory it begins."""
    return int(np.frombuffer(view, np.uint8).__array_interface__["data"][0])
