"""Fragments of IP datagrams to the segments they carry: one task, for they are few.

They have to be met in order, all of them: how long a datagram is waited for goes by the clock that
the others move. What comes out are rows like any others, with their payload.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa

from wiredump.readers import Account, Anomaly, Event, Packet
from wiredump.readers.segments import SegmentReader
from wiredump.spark.columns import ANOMALY, SPLIT, PacketRows, RawPacket, SplitNote

__all__ = ["join_fragments"]


def join_fragments(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of whole segments, and of anomalies."""
    account = Account()
    reader = SegmentReader(account)
    rows = PacketRows(0)
    payload = 0
    for batch in batches:
        for row in batch.to_pylist():
            raw = msgspec.msgpack.decode(row["payload"], type=RawPacket)
            packet = Packet(
                row["packet"], row["timestamp_ns"], raw.link_type, memoryview(raw.data),
                raw.original_length, 0, row["capture"],
            )  # fmt: skip
            order = row["order_ns"], row["ordinal"]
            out: list[Event] = []
            segment = reader.feed(packet, out)
            _tell(rows, out)
            if segment is not None:
                payload += len(segment.payload)
                rows.segment(segment, order, 0, bytes(segment.payload) or None)
        if len(rows):
            yield rows.take()
    out = []
    reader.close(out)
    _tell(rows, out)
    note = SplitNote(0, 0, payload=payload + account.anomalous, anomalous=account.anomalous)
    rows.other(SPLIT, note, (0, 0), (0, 0))
    yield rows.take()


def _tell(rows: PacketRows, out: list[Event]) -> None:
    for event in out:
        if isinstance(event, Anomaly):
            rows.other(ANOMALY, event, (event.offset, event.timestamp_ns), (0, event.offset))
