"""Sorted packets to rows of tables: what one task does for its share of the connections.

All packets between two ends come one after the other, in the order in which one process would meet
them, so that the same reassembly and the same rows come out. When the next two ends begin, nothing
of the last is kept: memory does not grow with the number of connections, nor with their length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa

from kproto.cli.dialect_option import named_dialect
from kproto.dialects import Dialect
from wiredump.model import Item
from wiredump.readers import Anomaly, Limits, Segment, TcpReassembler
from wiredump.rows.connections import ConnectionCounts
from wiredump.rows.pieces import Rows
from wiredump.rows.together import TableRows
from wiredump.sources.captures import ByteAccount, CaptureItems
from wiredump.sources.opening import open_key_log, span
from wiredump.spark.apart import HEARD, NAMED, UNNAMED, Aside
from wiredump.spark.columns import ANOMALY, SEGMENT, SPLIT, SplitNote, reversed_flow
from wiredump.spark.parts import Manifest, PartWriter
from wiredump.spark.payloads import Payloads

__all__ = ["Carried", "Group", "Options", "Work", "write_connections"]

_ALONE: Final = Limits(alone=True)
_EMPTY: Final = memoryview(b"")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a task has to know. ``names`` are the paths as they were given, for people."""

    out: str
    paths: dict[int, str]
    names: dict[int, str] = {}
    tables: tuple[str, ...]
    dialect: str = "auto"
    ports: tuple[int, ...] = (9092,)
    bodies: bool = True
    values: bool = False
    secrets: bool = False
    keylog: str | None = None
    zone: str = "UTC"

    @property
    def taken(self) -> tuple[str, ...]:
        """The tables, with those that are needed to make them."""
        names = self.bodies and set(self.tables) & {*NAMED, "fetches"}
        return tuple({*self.tables, "topics"}) if names else self.tables

    @property
    def files(self) -> tuple[str, ...]:
        """Kinds of files that reading connections may give."""
        return (*self.taken, HEARD, *UNNAMED)

    def rows(
        self, codec: Dialect, aside: Aside, counts: ConnectionCounts | None = None
    ) -> TableRows:
        """Rows of some connections of many."""
        return TableRows(
            codec, tables=self.taken, bodies=self.bodies, values=self.values,
            secrets=self.secrets, apart=aside, counts=counts,
        )  # fmt: skip


class Carried(NamedTuple):
    """What goes on with packets to come between two ends."""

    tcp: TcpReassembler
    items: CaptureItems
    counts: ConnectionCounts


def write_connections(batches: Iterable[pa.RecordBatch], options: Options, task: int) -> Manifest:
    """Write the rows of all connections in ``batches``, which are sorted as above."""
    return Work(options, task).run(batches)


class Work:
    """One task's. ``begin`` and ``finish`` are where packets of other times may be brought in."""

    def __init__(self, options: Options, task: int) -> None:
        self.payloads = Payloads(options.paths)
        self._options = options
        self.codec = named_dialect(options.dialect)
        self._ports = frozenset(options.ports)
        self._keys = open_key_log(options.keylog) if options.keylog is not None else None
        self._writer = PartWriter(options.out, options.files, task)
        self._aside = Aside(options.tables)
        self._manifest = Manifest()
        self._account = ByteAccount()
        self._key: bytes | None = None
        self._group: Group | None = None

    def run(self, batches: Iterable[pa.RecordBatch]) -> Manifest:
        """All of it."""
        try:
            for batch in batches:
                self.take(batch)
            return self.end()
        finally:
            self.payloads.close()

    def begin(self, key: bytes) -> Group:
        """The connections between the next two ends."""
        return Group(self, self.fresh())

    def finish(self, key: bytes, group: Group) -> None:
        """No more packets of these two ends are here."""
        self._finish(group)

    def take(self, batch: pa.RecordBatch) -> None:
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        kinds, keys = columns["kind"], columns["key"]
        captures, places = columns["capture"], columns["payload_at"]
        sizes, given = columns["payload_size"], columns["payload"]
        self.payloads.expect(captures, places, sizes)
        rows = zip(
            columns["reversed"], columns["sequence"], columns["acknowledgement"],
            columns["flags"], columns["window"], columns["missing"], columns["timestamp_ns"],
            columns["packet"], strict=True,
        )  # fmt: skip
        read = self.payloads.payload
        flow = back = b""
        group = None
        for number, (
            swapped,
            sequence,
            acknowledged,
            flags,
            window,
            missing,
            time,
            packet,
        ) in enumerate(rows):
            key = keys[number]
            if kinds[number] != SEGMENT:
                self.other(kinds[number], given[number])
                continue
            if group is None or key != self._key:
                group = self._group_of(key)
                flow, back = key, reversed_flow(key)
            size = sizes[number]
            payload = _EMPTY
            if size:
                payload = read(number) if given[number] is None else memoryview(given[number])
            group.feed(
                Segment(
                    back if swapped else flow, sequence, acknowledged, flags, window, payload,
                    missing, time, captures[number], packet,
                )
            )  # fmt: skip
        self._manifest.segments += batch.num_rows

    def _group_of(self, key: bytes) -> Group:
        if self._group is None or key != self._key:
            self.end_group()
            self._key = key
            self._group = self.begin(key)
        return self._group

    def other(self, kind: int, payload: bytes) -> None:
        """A row that is no segment."""
        if kind == SPLIT:
            self._manifest.expected += msgspec.msgpack.decode(payload, type=SplitNote).payload
        elif kind == ANOMALY:
            group = Group(self, self.fresh())
            group.tell(msgspec.msgpack.decode(payload, type=Anomaly))
            self._finish(group)

    def add(self, rows: Iterable[Rows], connections: int) -> None:
        """Rows of so many connections that have ended."""
        self._writer.add(rows)
        self._manifest.connections += connections

    def write(self, items: Iterable[Item], rows: TableRows) -> None:
        for item in items:
            self._manifest.saw(*span(item))
            self._writer.add(self._aside.rows(item, rows.add(item)))

    def fresh(self) -> Carried:
        """Of ends that nothing is known of."""
        items = CaptureItems(self.codec, ports=self._ports, keys=self._keys)
        return Carried(TcpReassembler(limits=_ALONE), items, ConnectionCounts())

    def rows(self, counts: ConnectionCounts) -> TableRows:
        return self._options.rows(self.codec, self._aside, counts)

    def end_group(self) -> None:
        """The last two ends have no more packets here."""
        if self._group is not None and self._key is not None:
            self.finish(self._key, self._group)
            self._group = None

    def _finish(self, group: Group) -> None:
        account = group.finish()
        self.add(group.last_rows(), len(group.items.connections))
        for name in account.__struct_fields__:
            setattr(self._account, name, getattr(self._account, name) + getattr(account, name))

    def end(self) -> Manifest:
        self.end_group()
        self._writer.close()
        self._account.check()
        manifest = self._manifest
        manifest.account = self._account.counts
        manifest.parts = self._writer.parts()
        return manifest


class Group:
    """All connections between two ends."""

    def __init__(self, work: Work, carried: Carried) -> None:
        self._work = work
        self.carried = carried
        self._tcp = carried.tcp
        self._rows = work.rows(carried.counts)
        self.items = carried.items

    def feed(self, segment: Segment) -> None:
        for event in self._tcp.feed(segment):
            items = self.items.feed(event)
            if items:
                self._work.write(items, self._rows)

    def tell(self, anomaly: Anomaly) -> None:
        self._work.write(self.items.feed(anomaly), self._rows)

    def finish(self) -> ByteAccount:
        for event in self._tcp.close():
            self._work.write(self.items.feed(event), self._rows)
        self._tcp.account.check()
        self.items.account.check()
        return self.items.account

    def last_rows(self) -> Iterator[Rows]:
        return self._rows.end(self.items.connections, (), {})

    def pause(self) -> tuple[int | None, int, list[Rows]]:
        """When the last connection was closed, None while one is open; how many there are that
        nothing more can come of, which are forgotten, and their rows."""
        closed_ns = self._tcp.pause()
        known, items = self._tcp.known, self.items
        ended = {number: each for number, each in items.connections.items() if number not in known}
        rows = list(self._rows.end(ended, (), {}))
        for number, each in ended.items():
            del items.connections[number]
            self.carried.counts.forget(each.id)
        return closed_ns, len(ended), rows
