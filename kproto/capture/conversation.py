"""One TCP connection as the IP packets that would have carried it. The caller supplies the
times."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

from kproto.capture.packets import ACK, FIN, PSH, RST, SYN, ip_packet, tcp_segment

__all__ = ["LARGEST_SEGMENT", "Conversation"]

LARGEST_SEGMENT: Final = 32 << 10
"""Larger than on any network, as on a loopback interface: fewer packets that still fit IP's
length."""


class Conversation:
    """The packets of one connection, each direction in order and without loss.

    ``client`` and ``server`` are an address and a port, both IPv4 or both IPv6. The initial
    sequence numbers are arbitrary; high ones test wrap-around.
    """

    def __init__(
        self,
        client: tuple[str, int],
        server: tuple[str, int],
        *,
        client_isn: int = 1_000,
        server_isn: int = 2_000,
        segment_size: int = LARGEST_SEGMENT,
    ) -> None:
        self._ends = tuple((ip_address(address), port) for address, port in (client, server))
        if self._ends[0][0].version != self._ends[1][0].version:
            raise ValueError(f"{client[0]} and {server[0]} are not of one family")
        self._next = [client_isn, server_isn]
        self._segment_size = segment_size

    def open(self) -> list[bytes]:
        """Return the handshake: SYN, SYN-ACK, ACK."""
        packets = [self._packet(0, SYN, acknowledged=False)]
        self._next[0] += 1
        packets.append(self._packet(1, SYN | ACK))
        self._next[1] += 1
        return [*packets, self._packet(0, ACK)]

    def send(self, data: bytes, *, from_server: bool = False) -> Iterator[bytes]:
        """Return ``data`` in as many segments as necessary. The last has PSH, as with real
        senders."""
        for start in range(0, len(data), self._segment_size):
            piece = data[start : start + self._segment_size]
            is_last = start + len(piece) == len(data)
            yield self._packet(from_server, ACK | (PSH if is_last else 0), piece)
            self._next[from_server] += len(piece)

    def acknowledge(self, *, from_server: bool = False) -> bytes:
        """Return a packet without data."""
        return self._packet(from_server, ACK)

    def close(self, *, from_server: bool = False) -> list[bytes]:
        """Return FIN from one side, FIN from the other, and its acknowledgement."""
        packets = []
        for side in (from_server, not from_server):
            packets.append(self._packet(side, FIN | ACK))
            self._next[side] += 1
        return [*packets, self._packet(from_server, ACK)]

    def reset(self, *, from_server: bool = False) -> bytes:
        """Return RST, after which nothing follows."""
        return self._packet(from_server, RST | ACK)

    def _packet(
        self, side: int, flags: int, payload: bytes = b"", *, acknowledged: bool = True
    ) -> bytes:
        (source, source_port), (destination, port) = self._ends[side], self._ends[not side]
        acknowledgement = self._next[not side] if acknowledged else 0
        segment = tcp_segment(
            source,
            destination,
            source_port,
            port,
            self._next[side],
            acknowledgement,
            flags,
            payload,
        )
        return ip_packet(source, destination, segment)
