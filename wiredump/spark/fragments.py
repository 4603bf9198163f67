"""Join fragments of IP datagrams into segments, in one task, since they are few.

All of them are read in order: how long a datagram is waited for depends on a clock that the others
advance. The result is ordinary rows with payloads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec
import pyarrow as pa

from wiredump.readers import Account, Anomaly, Event, Packet
from wiredump.readers.segments import SegmentReader
from wiredump.rows.packets import piece_row, record_of, unread_row
from wiredump.spark.columns import ANOMALY, FRAGMENT, PACKET, SPLIT, PacketRows, RawPacket
from wiredump.tables.parts import SplitNote

__all__ = ["Waiting", "begin_waiting", "join_fragments"]

Waiting: TypeAlias = tuple[Account, SegmentReader]
"""Incomplete datagrams."""

_NO_CAPTURE: Final = -1


def join_fragments(
    batches: Iterable[pa.RecordBatch], waiting: Waiting | None = None, ending: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield rows of complete segments, and of anomalies. ``waiting`` has the incomplete datagrams
    of earlier packets and, without ``ending``, gets those that remain."""
    account, reader = waiting if waiting is not None else begin_waiting()
    before = account.anomalous
    malformed, others = account.malformed, Counter(account.others)
    rows = PacketRows(0)
    payload = 0
    for batch in batches:
        for row in batch.to_pylist():
            if row["kind"] != FRAGMENT:
                continue
            raw = msgspec.msgpack.decode(row["payload"], type=RawPacket)
            packet = Packet(
                row["packet"], row["timestamp_ns"], raw.link_type, memoryview(raw.data),
                raw.original_length, raw.interface or 0, row["capture"],
            )  # fmt: skip
            has_interface = raw.interface is not None
            order = row["order_ns"], row["ordinal"]
            out: list[Event] = []
            segment = reader.feed(packet, out)
            _add_anomalies(rows, out)
            if segment is not None:
                payload += len(segment.payload)
                record = record_of(packet) if has_interface else None
                rows.segment(segment, order, 0, bytes(segment.payload) or None, record)
            elif has_interface:
                _add_unread(rows, packet, out, reader.kept)
        if len(rows):
            yield rows.take()
    if ending:
        out = []
        reader.close(out)
        _add_anomalies(rows, out)
    anomalous = account.anomalous - before
    note = SplitNote(
        _NO_CAPTURE, 0, payload=payload + anomalous, anomalous=anomalous,
        malformed=account.malformed - malformed, others=dict(Counter(account.others) - others),
    )  # fmt: skip
    rows.other(SPLIT, note, (0, 0), (0, 0))
    yield rows.take()


def begin_waiting() -> Waiting:
    """Start without incomplete datagrams."""
    account = Account()
    return account, SegmentReader(account)


def _add_anomalies(rows: PacketRows, out: list[Event]) -> None:
    for event in out:
        if isinstance(event, Anomaly):
            rows.other(ANOMALY, event, (event.offset, event.timestamp_ns), (0, event.offset))


def _add_unread(
    rows: PacketRows, packet: Packet, out: list[Event], addresses: bytes | None
) -> None:
    """Of one without a segment: a piece, or what a datagram of pieces cannot be read with."""
    row = None if addresses is None else piece_row(packet, addresses)
    for each in out:
        if isinstance(each, Anomaly) and each.kind == "malformed":
            row = unread_row(each, packet)
    if row is not None:
        rows.other(PACKET, row, (packet.offset, packet.timestamp_ns), (0, packet.offset))
