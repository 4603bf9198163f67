"""Convert a journal to a pcapng capture, for tools that read packets.

``start`` returns the first bytes and ``add`` those of each entry. The handshake of a connection is
generated when its first entry arrives, and its end when the journal reports it. Frames are split
into segments, all of which are acknowledged. An event that is not a frame becomes the comment of a
packet without data.

Unless given, the brokers' addresses are generated too (127.1.0.N or fd00::N, and Kafka's port
9092): the mock's ports are arbitrary, and Wireshark recognises Kafka by its port.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_address

from kproto.capture.container import (
    COMMENT,
    INTERFACE_NAME,
    RAW_IP,
    USER_APPLICATION,
    pcapng_interface,
    pcapng_packet,
    pcapng_section,
)
from kproto.capture.conversation import Conversation
from kproto.journal import CLOSED_BY_BROKER, Entry

__all__ = ["JournalCapture"]

_KAFKA_PORT = 9092
_COMMENT_LENGTH = 1024


class JournalCapture:
    """``brokers`` maps some or all broker ids to an address and a port."""

    def __init__(self, brokers: Mapping[int, tuple[str, int]] | None = None) -> None:
        self._brokers = dict(brokers or {})
        self._open: dict[tuple[int, int], Conversation] = {}
        self._count = 0

    def start(self) -> bytes:
        """Return the beginning of the file."""
        section = pcapng_section([(USER_APPLICATION, b"kproto")])
        return section + pcapng_interface(RAW_IP, options=[(INTERFACE_NAME, b"journal")])

    def add(self, entry: Entry) -> bytes:
        """Return the packets of one entry, all with its time."""
        key = (entry.broker_id, entry.connection_id)
        packets: list[bytes] = []
        conversation = self._open.get(key)
        if conversation is None:
            conversation = self._open[key] = self._begin(entry)
            packets += conversation.open()
        if entry.event == "disconnected":
            packets += self._open.pop(key).close(from_server=entry.note == CLOSED_BY_BROKER)
        elif entry.direction != "event":
            packets += conversation.send(entry.raw, from_server=entry.direction == "response")
        elif entry.event != "connected":
            packets.append(conversation.acknowledge(from_server=True))
        comment = ": ".join(part for part in (entry.event, entry.note) if part)
        return self._written(packets, entry.timestamp_ns, comment)

    def _written(self, packets: Iterable[bytes], timestamp_ns: int, comment: str) -> bytes:
        """Return packets as bytes. The comment is attached to the last packet, the one it is
        about."""
        plain = list(packets)
        if not plain:
            return b""
        last = plain.pop()
        text = comment.encode("utf-8", "replace")[:_COMMENT_LENGTH]
        options = [(COMMENT, text)] if text else []
        written = [pcapng_packet(timestamp_ns, packet) for packet in plain]
        return b"".join([*written, pcapng_packet(timestamp_ns, last, options=options)])

    def _begin(self, entry: Entry) -> Conversation:
        """Begin a connection. Each has initial sequence numbers of its own, so that reused ports do
        not look like retransmissions."""
        self._count += 1
        client = _endpoint(entry.peer) or (f"127.2.{self._count >> 8 & 255}.{self._count & 255}", 0)
        is_ipv6 = isinstance(ip_address(client[0]), IPv6Address)
        server = self._brokers.get(entry.broker_id) or _broker(entry.broker_id, is_ipv6)
        if isinstance(ip_address(server[0]), IPv6Address) != is_ipv6:
            client, server = _as_ipv6(client), _as_ipv6(server)
        isn = self._count * 0x01000193
        return Conversation(client, server, client_isn=isn, server_isn=isn + (1 << 31))


def _endpoint(peer: str) -> tuple[str, int] | None:
    """Parse ``127.0.0.1:40001`` or ``[::1]:40001``; None for anything else."""
    host, _, port = peer.rpartition(":")
    try:
        address = ip_address(host.removeprefix("[").removesuffix("]").partition("%")[0])
        return (str(address), int(port)) if 0 <= int(port) <= 0xFFFF else None
    except ValueError:
        return None


def _broker(broker_id: int, is_ipv6: bool) -> tuple[str, int]:
    number = broker_id & 0xFFFF
    address = f"fd00::{number:x}" if is_ipv6 else f"127.1.{number >> 8}.{number & 255}"
    return address, _KAFKA_PORT


def _as_ipv6(end: tuple[str, int]) -> tuple[str, int]:
    address, port = end
    return (address if ":" in address else f"::ffff:{address}"), port
