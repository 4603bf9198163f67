"""Make the rows of the table ``packets`` while captures are read, from what ``readers.Streams``
reports and the connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wiredump.model import Connection
from wiredump.readers import Anomaly, Packet, Segment
from wiredump.readers.segment_outcome import SegmentOutcome
from wiredump.rows.packets import piece_row, record_of, segment_row, unread_row

__all__ = ["PacketRecorder", "TakeRow"]

TakeRow = Callable[[tuple[Any, ...]], object]


class PacketRecorder:
    """A ``readers.streams.PacketSink``. ``connections`` are those met so far, by number."""

    def __init__(self, connections: Mapping[int, Connection], add: TakeRow) -> None:
        self._connections = connections
        self._add = add

    def segment(self, packet: Packet, segment: Segment, outcome: SegmentOutcome) -> None:
        connection = self._connections[outcome.connection].id
        self._add(segment_row(segment, record_of(packet), outcome, connection))

    def piece(self, packet: Packet, addresses: bytes) -> None:
        self._add(piece_row(packet, addresses))

    def unread(self, anomaly: Anomaly, packet: Packet | None) -> None:
        self._add(unread_row(anomaly, packet))
