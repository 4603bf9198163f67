"""Rows of ``packets``: one for each packet with TCP, and for each packet that could not be read.

A row has what TCP did with a packet's payload. The frames that its bytes belong to follow from the
connection and the offset.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

from wiredump.readers import Anomaly, Packet, Segment
from wiredump.readers.segment_outcome import SegmentOutcome

__all__ = ["PIECE", "Record", "piece_row", "record_of", "segment_row", "unread_row"]

PIECE: Final = "a piece of a datagram"
"""Why a valid packet has no segment."""

_NO_RECORD: Final = (None, None, None, None)


class Record(NamedTuple):
    """The record of a packet in the capture: ``captured`` of ``length`` bytes."""

    interface: int
    link_type: int
    captured: int
    length: int


def record_of(packet: Packet) -> Record:
    """Return the record of a packet."""
    return Record(packet.interface, packet.link_type, len(packet.data), packet.original_length)


def segment_row(
    segment: Segment, record: Record, outcome: SegmentOutcome, connection: int
) -> tuple[Any, ...]:  # fmt: skip
    """Return the row of a packet with a segment, or that completes one. ``connection`` is the
    connection's id."""
    return (
        segment.capture, segment.offset, segment.timestamp_ns, *record, *_ends(segment.flow),
        segment.sequence, segment.acknowledgement, segment.flags, segment.window,
        len(segment.payload), segment.missing, connection, outcome.offset, outcome.retransmitted,
        outcome.anomalous, None, segment.tunnel or None,
    )  # fmt: skip


def piece_row(packet: Packet, addresses: bytes) -> tuple[Any, ...]:
    """Return the row of a packet with a fragment of a segment."""
    half = len(addresses) // 2
    source, destination = (str(ip_address(each)) for each in (addresses[:half], addresses[half:]))
    ends = source, None, destination, None
    place = packet.capture, packet.offset, packet.timestamp_ns
    return (*place, *record_of(packet), *ends, *[None] * 10, PIECE, None)


def unread_row(anomaly: Anomaly, packet: Packet | None) -> tuple[Any, ...]:
    """Return the row of a packet that cannot be read or, for None, whose record cannot be read."""
    record = _NO_RECORD if packet is None else record_of(packet)
    place = anomaly.capture, anomaly.offset, anomaly.timestamp_ns
    return (*place, *record, *[None] * 14, anomaly.reason, None)


@lru_cache(maxsize=4096)
def _ends(flow: bytes) -> tuple[str, int, str, int]:
    """Return addresses and ports of ``Segment.flow``."""
    address = (len(flow) - 4) // 2
    source, destination = flow[:address], flow[address : 2 * address]
    return (
        str(ip_address(source)), int.from_bytes(flow[-4:-2]),
        str(ip_address(destination)), int.from_bytes(flow[-2:]),
    )  # fmt: skip
