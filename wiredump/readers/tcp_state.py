"""The part of a connection's state that is TCP's: see ``wiredump.connection_state``."""

from __future__ import annotations

from typing import NamedTuple

from wiredump.readers.tally import EndTally

__all__ = ["Opening", "StreamState", "TcpState"]


class StreamState(NamedTuple):
    """One direction. ``next`` is the position of the next byte in the stream, ``next_sequence`` its
    sequence number. ``tally`` is None until the direction carries data. ``recent`` has the newest
    bytes with their positions, as far as they came since the last ``restore``: retransmissions are
    compared with them."""

    next: int
    next_sequence: int
    tally: EndTally | None
    recent: list[tuple[int, bytes]]


class Opening(NamedTuple):
    """What is known of a connection since its SYN: the initial sequence numbers
    (``server_isn`` is None before the SYN-ACK), the time of the SYN (None after the handshake), the
    directions whose FIN was seen, as bits ``1 << direction``, the direction of the first FIN, the
    time of the last one, and the IP identifications and times of SYN and SYN-ACK."""

    client_isn: int
    server_isn: int | None
    syn_ns: int | None
    ended: int
    ended_by: int
    closed_ns: int | None
    captured: tuple[tuple[int, int], tuple[int, int]]


class TcpState(NamedTuple):
    """``flow`` is that of the client; the next three fields locate the newest packet. ``opening``
    is None unless the extension has read the connection from its SYN on."""

    flow: bytes
    timestamp_ns: int
    capture: int
    offset: int
    client: StreamState
    server: StreamState
    opening: Opening | None
