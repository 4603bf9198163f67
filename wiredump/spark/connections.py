"""Turn sorted packets into rows of tables: what one task does with its share of the connections.

All packets between two ends follow each other, in the order in which one process would read them,
so the reassembly and the rows are the same. Nothing is kept after the last packet of two ends:
memory depends neither on the number of connections nor on their length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from kproto.cli.dialect_option import named_dialect
from kproto.errors import KprotoError
from wiredump.model import Item
from wiredump.native import quick
from wiredump.readers import Anomaly, Event, Limits, Segment, TcpReassembler, segment_outcome
from wiredump.readers.flows import reverse
from wiredump.rows.connections import ConnectionCounts
from wiredump.rows.packets import Record, segment_row
from wiredump.rows.pieces import Rows
from wiredump.skipped import skipped
from wiredump.sources.captures import ByteAccount, CaptureItems
from wiredump.sources.opening import open_key_log, span
from wiredump.sources.quick import QuickSegments, Sink
from wiredump.spark.columns import ANOMALY, PACKET, RUN, SEGMENT, SPLIT
from wiredump.spark.payloads import Payloads
from wiredump.spark.runs import Entries, Merging, Order
from wiredump.storage import ChangedError
from wiredump.tables.deferred_rows import EXCERPTS, UNNAMED, DeferredRows, taken_tables
from wiredump.tables.making import sink_of
from wiredump.tables.parts import Manifest, PartWriter, SplitNote
from wiredump.tables.table_rows import TableRows
from wiredump.tables.work import Work
from wiredump.tls.keylog import KeyLog

__all__ = ["Carried", "ConnectionTask", "Group", "Options", "write_connections"]

_EMPTY: Final = memoryview(b"")


class Options(Work, frozen=True, kw_only=True):
    """The options of a task. ``names`` are the paths as the user gave them, ``copies`` files with
    what compressed captures hold. ``kafka_ports`` are those of brokers on other connections."""

    kafka_ports: tuple[int, ...] = ()
    names: dict[int, str] = msgspec.field(default_factory=dict)
    copies: dict[int, str] = msgspec.field(default_factory=dict)
    secrets_within: tuple[bytes, ...] = ()
    """TLS key logs that the captures have."""

    @property
    def taken(self) -> tuple[str, ...]:
        """The tables, with those that are needed to make them."""
        return taken_tables(self.tables, self.bodies)

    @property
    def files(self) -> tuple[str, ...]:
        """The kinds of files that reading connections may write."""
        return (*self.taken, EXCERPTS, *UNNAMED)


class Carried(NamedTuple):
    """The state that later packets between two ends continue."""

    tcp: TcpReassembler
    items: CaptureItems
    counts: ConnectionCounts


def write_connections(batches: Iterable[pa.RecordBatch], options: Options, task: int) -> Manifest:
    """Write the rows of all connections in ``batches``, which are sorted as above."""
    return ConnectionTask(options, task).run(batches)


class ConnectionTask:
    """The work of one task. ``begin`` and ``finish`` are where state of other batches can be
    added."""

    def __init__(self, options: Options, task: int) -> None:
        self.payloads = Payloads(options.paths, options.copies)
        self._options = options
        self.codec = named_dialect(options.dialect)
        self._ports = frozenset(options.ports)
        self.kafka_ports = options.kafka_ports
        self._limits = Limits.within(options.memory, alone=True)
        self._keys = open_key_log(options.keylog) if options.keylog is not None else KeyLog()
        for each in options.secrets_within:
            self._keys.add(each.decode("ascii", "replace") + "\n")
        self._writer = PartWriter(options.out, options.files, task)
        self._deferred = DeferredRows(options.tables)
        self._manifest = Manifest()
        self._account = ByteAccount()
        self._skipped = Counter[str]()
        self._key: bytes | None = None
        self._group: Group | None = None

    def run(self, batches: Iterable[pa.RecordBatch]) -> Manifest:
        """Process all batches."""
        try:
            for batch in batches:
                self.take(batch)
            return self.end()
        finally:
            self.payloads.close()

    def begin(self, key: bytes) -> Group:
        """Begin the connections between the next two ends."""
        return Group(self, self.fresh(), key)

    def finish(self, key: bytes, group: Group) -> None:
        """Finish the packets between two ends."""
        self._finish(group)

    def take(self, batch: pa.RecordBatch) -> None:
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        kinds, keys, given = columns["kind"], columns["key"], columns["payload"]
        captures, sizes, records = columns["capture"], columns["payload_size"], columns["record"]
        self.payloads.expect(captures, columns["payload_at"], sizes)
        orders = zip(columns["order_ns"], captures, columns["ordinal"], strict=True)
        rows = zip(
            columns["reversed"], columns["sequence"], columns["acknowledgement"],
            columns["flags"], columns["window"], columns["missing"], columns["timestamp_ns"],
            columns["packet"], columns["tunnel"], columns["identification"], strict=True,
        )  # fmt: skip
        read = self.payloads.payload
        for number, (order, row) in enumerate(zip(orders, rows, strict=True)):
            kind, key = kinds[number], keys[number]
            if kind == RUN:
                run, is_merged = given[number], bool(row[3])
                self._group_of(key).run(order, run, is_merged, records[number])
                continue
            if kind != SEGMENT:
                self.other(kind, given[number])
                continue
            swapped, sequence, acknowledged, flags, window, missing, time, packet, *rest = row
            payload = _EMPTY
            if sizes[number]:
                payload = read(number) if given[number] is None else memoryview(given[number])
            segment = Segment(
                reverse(key) if swapped else key, sequence, acknowledged, flags, window,
                payload, missing, time, captures[number], packet, rest[0] or "", rest[1],
            )  # fmt: skip
            group = self._group_of(key)
            if records[number] is None:
                group.feed(order, segment)
            else:
                self.packet(group.feed_with_row(order, segment, records[number]))

    def _group_of(self, key: bytes) -> Group:
        if self._group is None or key != self._key:
            self.end_group()
            self._key, self._group = key, self.begin(key)
        return self._group

    def other(self, kind: int, payload: bytes) -> None:
        """Process a row that is not a segment."""
        if kind == SPLIT:
            note = msgspec.msgpack.decode(payload, type=SplitNote)
            self._manifest.expected += note.payload
            self._skipped.update(skipped(note.others, note.malformed))
            self._manifest.notes.append(note)
        elif kind == ANOMALY:
            group = Group(self, self.fresh(), b"")
            group.anomaly(msgspec.msgpack.decode(payload, type=Anomaly))
            self._finish(group)
        elif kind == PACKET:
            self.packet(tuple(msgspec.msgpack.decode(payload)))

    def packet(self, row: tuple[Any, ...]) -> None:
        """Add a row of the table ``packets``."""
        self._writer.add([("packets", row)])

    def add(self, rows: Iterable[Rows], connections: int) -> None:
        """Add the rows of this many connections that have ended."""
        self._writer.add(rows)
        self._manifest.connections += connections

    def write(self, items: Iterable[Item], rows: TableRows) -> None:
        for item in items:
            self._manifest.saw(*span(item))
            self._writer.add(self._deferred.rows(rows.add(item)))

    def fresh(self) -> Carried:
        """Return the state of ends without earlier packets."""
        items = CaptureItems(self.codec, ports=self._ports, keys=self._keys)
        return Carried(TcpReassembler(limits=self._limits), items, ConnectionCounts())

    def saw(self, times: dict[int, tuple[int, int]]) -> None:
        """Note the times of frames that were not items, by capture."""
        for capture, (first, last) in times.items():
            self._manifest.saw(capture, first, last)

    def rows(self, counts: ConnectionCounts) -> TableRows:
        options = self._options
        return TableRows.of(options, self.codec, options.taken, self._deferred, counts)

    def sink(self, rows: TableRows) -> Sink | None:
        """Return where frames go that need no item; None if all need one."""

        def take(made: Iterable[Rows]) -> None:
            self._writer.add(self._deferred.rows(made))

        return sink_of(rows, self._writer, take)

    def end_group(self) -> None:
        """Finish the last two ends."""
        if self._group is not None and self._key is not None:
            self.finish(self._key, self._group)
            self._group = None

    def learn(self, ports: Iterable[int]) -> None:
        """Note ports of brokers."""
        self._manifest.kafka_ports.update(ports)

    def _finish(self, group: Group) -> None:
        account = group.finish()
        self.learn(group.items.brokers())
        self._manifest.doubtful_ports |= group.items.doubtful_ports
        self.add(group.last_rows(), len(group.items.connections))
        for name in account.__struct_fields__:
            setattr(self._account, name, getattr(self._account, name) + getattr(account, name))

    def end(self) -> Manifest:
        self.end_group()
        self._writer.close()
        self._account.check()
        manifest = self._manifest
        manifest.account = {**self._account.counts, **self._skipped}
        manifest.parts = self._writer.parts()
        return manifest


class _Segments(QuickSegments):
    """Segments of two ends only: after a change of the file, others might be there."""

    def __init__(self, work: ConnectionTask, carried: Carried, rows: TableRows, ends: Ends) -> None:
        super().__init__(
            carried.items, carried.tcp, work.codec, work.sink(rows), has=ends.__contains__
        )
        self._ends = ends

    def segment(self, segment: Segment) -> list[Item]:
        self._ends.check(segment)
        return super().segment(segment)


class Ends(NamedTuple):
    """A flow and its opposite."""

    flow: bytes
    back: bytes

    def check(self, segment: Segment) -> None:
        """Raise ChangedError if a segment is not between these ends."""
        if segment.flow != self.flow and segment.flow != self.back:
            raise ChangedError(
                f"capture {segment.capture} changed at offset {segment.offset} while it was being "
                "read"
            )


class Group:
    """All connections between two ends. Everything is added with its place in the order of
    packets."""

    def __init__(self, work: ConnectionTask, carried: Carried, key: bytes) -> None:
        self._work = work
        self.carried = carried
        self._tcp = carried.tcp
        self._rows = work.rows(carried.counts)
        self.items = carried.items
        self.items.kafka_ports.update(work.kafka_ports)
        self._ends = Ends(key, reverse(key)) if key else Ends(b"", b"")
        self._merging = Merging(self._read)
        self._quick: _Segments | None = None

    def run(self, order: Order, run: bytes, merged: bool, data: bytes | None) -> None:
        """Add a run of ``runs.ENTRY``, whose first packet has this place, with the bytes of its
        packets if it carries them."""
        self._merging.add(order, run, merged, data)

    def feed(self, order: Order, segment: Segment) -> None:
        self._merging.until(order)
        self._feed(segment)

    def _feed(self, segment: Segment) -> None:
        if self._quick is not None:
            self._write(self._quick.segment(segment))
            return
        self._take(self._tcp.feed(segment))

    def _take(self, events: Iterable[Event]) -> None:
        for event in events:
            self._write(self.items.feed(event))

    def _read(self, run: Entries, data: bytes | None) -> None:
        module = quick()
        if module is None:
            raise KprotoError(
                "a task runs without the C extension that others have: install the same build of "
                "kproto on all machines, or set KPROTO_ENGINE=pure on all"
            )
        if self._quick is None:
            self._quick = _Segments(self._work, self.carried, self._rows, self._ends)
        for packets in self._work.payloads.bulk(module, run, data):
            self._write(self._quick.bulk(packets))

    def _write(self, items: Iterable[Item]) -> None:
        self._work.write(items, self._rows)

    def feed_with_row(self, order: Order, segment: Segment, packed: bytes) -> tuple[Any, ...]:
        """The same, and the row of its packet, of which ``packed`` is the record. Where packets are
        asked for there are no runs in one part, and perhaps some in what was carried over."""
        self._merging.until(order)
        if self._quick is not None:
            self._quick.all_back()
        record = msgspec.msgpack.decode(packed, type=Record)
        events, outcome = segment_outcome.feed(self._tcp, segment)
        self._take(events)
        return segment_row(segment, record, outcome, self.items.connections[outcome.connection].id)

    def anomaly(self, anomaly: Anomaly) -> None:
        self._write(self.items.feed(anomaly))

    def finish(self) -> ByteAccount:
        self._merging.until(None)
        if self._quick is not None:
            self._quick.end()
            self._work.saw(self._quick.times)
        for event in self._tcp.close():
            self._write(self.items.feed(event))
        self._write(self.items.settle())
        self._tcp.account.check()
        self.items.account.check()
        return self.items.account

    def last_rows(self) -> Iterator[Rows]:
        return self._rows.end(self.items.connections, (), {})

    def pause(self) -> tuple[bool, int, int, list[Rows]]:
        """Return whether a connection is open, when the last packet came or, if none is open, the
        last connection was closed, how many connections are complete and were dropped, and their
        rows. One that waits for others to show what it is counts as open."""
        self._merging.until(None)
        if self._quick is not None:
            self._quick.all_back()
            self._work.saw(self._quick.times)
        is_open, at_ns = self._tcp.pause()
        items = self.items
        self._write(items.settle(final=False))
        self._work.learn(items.brokers())
        known = {*self._tcp.known, *items.doubtful}
        ended = {number: each for number, each in items.connections.items() if number not in known}
        rows = list(self._rows.end(ended, (), {}))
        for number, each in ended.items():
            del items.connections[number]
            self.carried.counts.forget(each.id)
        return is_open or bool(items.doubtful), at_ns, len(ended), rows
