"""Find out what happened to one segment: its connection, and how many of its bytes were
retransmitted or anomalous. Used for the table of packets; events have the same by bytes."""

from __future__ import annotations

from typing import NamedTuple

from wiredump.readers.model import Event, Segment
from wiredump.readers.stream import distance
from wiredump.readers.tcp import SYN, TcpReassembler

__all__ = ["SegmentOutcome", "feed"]


class SegmentOutcome(NamedTuple):
    """``connection`` is the number of the connection, ``offset`` the position of the payload in its
    direction (None without payload, or if unknown). ``retransmitted`` and ``anomalous`` count bytes
    of the payload; all other bytes are returned as data, now or once earlier bytes have arrived."""

    connection: int
    offset: int | None
    retransmitted: int
    anomalous: int


def feed(tcp: TcpReassembler, segment: Segment) -> tuple[list[Event], SegmentOutcome]:
    """Call ``TcpReassembler.feed``; returns its events and what happened to the segment. Events of
    other segments, which this one completes, are not counted: those are data or gaps."""
    account = tcp.counts
    retransmitted, anomalous = account.retransmitted, account.anomalous
    events = tcp.feed(segment)
    number, stream = tcp.stream_of(segment.flow)
    offset = None
    if stream.started and (segment.payload or segment.missing):
        sequence = segment.sequence + bool(segment.flags & SYN)
        offset = stream.next + distance(sequence, stream.next_sequence)
    return events, SegmentOutcome(
        number, offset, account.retransmitted - retransmitted, account.anomalous - anomalous
    )
