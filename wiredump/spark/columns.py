"""The rows that stand for packets between stages: one schema, as Spark and as Arrow know it.

========  ==========================================================================================
kind
========  ==========================================================================================
SEGMENT   a TCP segment; ``payload`` is null where the file has it in one piece, at ``payload_at``
FRAGMENT  a packet with a fragment of a datagram that carries TCP: ``payload`` is a RawPacket
ANOMALY   something of no connection: ``payload`` is a ``readers.Anomaly``
SPLIT     what a task read: ``payload`` is a SplitNote
RUN       usual segments between two ends, by their places: ``payload`` is an array of
          ``runs.ENTRY``, ``flags`` is 1 where they are in the order of their times first, and
          ``payload_size`` what they have in all; ``packet`` and what is sorted by are the first's.
          ``record`` has the packets' bytes, one after the other, if they are not to be read from
          the capture by position
PACKET    a packet without a segment: ``payload`` is its row of the table ``packets``
========  ==========================================================================================

``key`` names the two ends whichever way a segment goes: its flow (``readers.Segment.flow``) or, if
``reversed``, that of the other way. Other rows have a key of another length, all different.

``order_ns``, ``capture``, ``ordinal`` are the order in which one process would meet the packets
(``readers.merge``): the place in the file for one capture, the time first for
several. Payloads are MessagePack where they are structs. ``record`` is that of a segment's packet
(``rows.packets.Record``), if the table ``packets`` is requested. ``tunnel`` is the
segment's, null for none.
"""

from __future__ import annotations

from struct import pack
from typing import Any, Final

import msgspec
import pyarrow as pa

from wiredump.readers import Anomaly, Segment
from wiredump.readers.flows import reverse
from wiredump.rows.packets import Record
from wiredump.tables.parts import SplitNote

__all__ = [
    "ANOMALY",
    "FRAGMENT",
    "PACKET",
    "PACKET_SCHEMA",
    "RUN",
    "SEGMENT",
    "SPLIT",
    "SQL_SCHEMA",
    "PacketRows",
    "RawPacket",
]

SEGMENT: Final = 0
FRAGMENT: Final = 1
ANOMALY: Final = 2
SPLIT: Final = 3
RUN: Final = 4
PACKET: Final = 5

_FIELDS: Final = (
    ("kind", pa.int8(), "byte"),
    ("capture", pa.int32(), "int"),
    ("packet", pa.int64(), "long"),
    ("order_ns", pa.int64(), "long"),
    ("ordinal", pa.int64(), "long"),
    ("timestamp_ns", pa.int64(), "long"),
    ("key", pa.binary(), "binary"),
    ("reversed", pa.bool_(), "boolean"),
    ("sequence", pa.int64(), "long"),
    ("acknowledgement", pa.int64(), "long"),
    ("flags", pa.int16(), "short"),
    ("window", pa.int32(), "int"),
    ("payload_at", pa.int64(), "long"),
    ("payload_size", pa.int32(), "int"),
    ("missing", pa.int64(), "long"),
    ("payload", pa.binary(), "binary"),
    ("record", pa.binary(), "binary"),
    ("tunnel", pa.string(), "string"),
    ("identification", pa.int32(), "int"),
)

PACKET_SCHEMA: Final = pa.schema([(name, type_) for name, type_, _ in _FIELDS])
SQL_SCHEMA: Final = ", ".join(f"{name} {type_}" for name, _, type_ in _FIELDS)


class RawPacket(msgspec.Struct, array_like=True):
    """What is needed to read a packet again. ``interface`` is set only for the table of packets."""

    link_type: int
    original_length: int
    data: bytes
    interface: int | None = None


class PacketRows:
    """Collects rows one by one."""

    def __init__(self, capture: int) -> None:
        self._capture = capture
        self._rows: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def segment(
        self, segment: Segment, order: tuple[int, int], payload_at: int, payload: bytes | None,
        record: Record | None = None,
    ) -> None:  # fmt: skip
        """Add a segment; ``payload`` is set if it cannot be read at ``payload_at``."""
        key, other = segment.flow, reverse(segment.flow)
        swapped = other < key
        self._rows.append(
            (
                SEGMENT, segment.capture, segment.offset, *order, segment.timestamp_ns,
                other if swapped else key, swapped, segment.sequence, segment.acknowledgement,
                segment.flags, segment.window, payload_at, len(segment.payload), segment.missing,
                payload, None if record is None else msgspec.msgpack.encode(record),
                segment.tunnel or None, segment.identification,
            )
        )  # fmt: skip

    def other(
        self, kind: int, value: RawPacket | Anomaly | SplitNote | tuple[Any, ...],
        place: tuple[int, int], order: tuple[int, int],
    ) -> None:  # fmt: skip
        """Add a row of any other kind. ``place`` and time are the packet's."""
        packet, time = place
        # One row a group: where many such rows are, many tasks share them.
        key = (
            b""
            if kind == FRAGMENT
            else pack(">BiqH", kind, self._capture, packet, len(self) & 0xFFFF)
        )
        self._rows.append(
            (
                kind, self._capture, packet, *order, time, key, False, 0, 0, 0, 0, 0, 0, 0,
                msgspec.msgpack.encode(value), None, None, 0,
            )
        )  # fmt: skip

    def take(self) -> pa.RecordBatch:
        """Return the rows added since the last call."""
        columns = list(zip(*self._rows, strict=True)) or [()] * len(PACKET_SCHEMA)
        self._rows = []
        return pa.RecordBatch.from_arrays(
            [
                pa.array(values, each.type)
                for values, each in zip(columns, PACKET_SCHEMA, strict=True)
            ],
            schema=PACKET_SCHEMA,
        )
