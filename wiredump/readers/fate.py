"""What becomes of one segment: of which connection it is, and of its bytes which came before, which
are an anomaly. For who wants to know it packet by packet; events tell it of the bytes."""

from __future__ import annotations

from typing import NamedTuple

from wiredump.readers.model import Event, Segment
from wiredump.readers.stream import distance
from wiredump.readers.tcp import SYN, TcpReassembler

__all__ = ["Fate", "feed"]


class Fate(NamedTuple):
    """``connection`` is its number, ``offset`` where in its direction the payload begins: None
    without payload, or where that is not known. ``retransmitted`` and ``anomalous`` count bytes of
    the payload; all others are handed on, now or when what is missing in front of them has come."""

    connection: int
    offset: int | None
    retransmitted: int
    anomalous: int


def feed(tcp: TcpReassembler, segment: Segment) -> tuple[list[Event], Fate]:
    """``TcpReassembler.feed``, and what became of the segment. What it brings about for other
    segments is nothing that is counted here: those are handed on, or a gap."""
    account = tcp.counts
    retransmitted, anomalous = account.retransmitted, account.anomalous
    events = tcp.feed(segment)
    number, stream = tcp.stream_of(segment.flow)
    offset = None
    if stream.started and (segment.payload or segment.missing):
        sequence = segment.sequence + bool(segment.flags & SYN)
        offset = stream.next + distance(sequence, stream.next_sequence)
    return events, Fate(
        number, offset, account.retransmitted - retransmitted, account.anomalous - anomalous
    )
