"""Captures made up for the readers' tests, and what must come out of them.

A ``Sent`` is one segment of a made-up connection. ``expected`` works out, byte by byte and without
any of the readers' own means, what a capture of some segments holds of each direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from itertools import groupby
from struct import pack
from typing import Any

from kproto.capture import packets as wire
from kproto.capture.packets import ACK, FIN, SYN
from wiredump.readers import Data, Event, Gap, Packet

ENDS = {
    4: ((ip_address("10.0.0.1"), 50_000), (ip_address("10.0.0.2"), 9092)),
    6: ((ip_address("2001:db8::1"), 50_000), (ip_address("2001:db8::2"), 9092)),
}
Part = tuple[int, Any]
"""A start, and the bytes there, or how many are missing."""

START_NS = 1_700_000_000_000_000_000
MILLISECOND = 1_000_000


@dataclass(frozen=True)
class Sent:
    """A segment: ``start`` counts from the direction's first byte; ``acked`` is the other's."""

    direction: int
    start: int
    data: bytes = b""
    flags: int = ACK
    acked: int = 0
    missing: int = 0  # bytes at its end that the capture cut off
    fragment_size: int = 0  # cut into IP fragments of so many bytes

    @property
    def end(self) -> int:
        return self.start + len(self.data)


@dataclass(frozen=True)
class Connection:
    """How segments become packets."""

    version: int = 4
    isns: tuple[int, int] = (1_000, 2_000)
    port: int = 50_000
    link: str = "ethernet"
    ip_options: bytes = b""
    extensions: tuple[int, ...] = ()

    def frames(self, sent: Sent) -> list[tuple[bytes, int]]:
        """What was captured, and the length on the wire: one packet, or one a fragment."""
        (client, _), (server, server_port) = ENDS[self.version]
        ends = ((client, self.port), (server, server_port))
        (source, source_port), (destination, port) = ends[sent.direction], ends[1 - sent.direction]
        is_syn = bool(sent.flags & SYN)
        segment = wire.tcp_segment(
            source, destination, source_port, port,
            self.isns[sent.direction] + (0 if is_syn else 1) + sent.start,
            self.isns[1 - sent.direction] + 1 + sent.acked if sent.flags & ACK else 0,
            sent.flags, sent.data,
        )  # fmt: skip
        framed = [
            LINKS[self.link][1](each) for each in self._ip(sent, source, destination, segment)
        ]
        return [(each[: len(each) - sent.missing], len(each)) for each in framed]

    def _ip(
        self, sent: Sent, source: wire.Address, destination: wire.Address, segment: bytes
    ) -> list[bytes]:
        if not sent.fragment_size:
            if self.version == 4:
                return [wire.ip_packet(source, destination, segment, options=self.ip_options)]
            body, protocol = with_extensions(segment, self.extensions)
            return [wire.ip_packet(source, destination, body, protocol=protocol)]
        size = max(8, sent.fragment_size // 8 * 8)
        identification = hash((sent.direction, sent.start, sent.end)) & 0xFFFF
        made = []
        for at in range(0, len(segment), size):
            piece, more = segment[at : at + size], at + size < len(segment)
            if self.version == 4:
                made.append(
                    wire.ip_packet(
                        source, destination, piece, identification=identification,
                        fragment=at // 8 | (0x2000 if more else 0), options=self.ip_options,
                    )
                )  # fmt: skip
            else:
                head = pack(">BBHI", 6, 0, at | more, identification)
                made.append(wire.ip_packet(source, destination, head + piece, protocol=44))
        return made


def with_extensions(segment: bytes, extensions: tuple[int, ...]) -> tuple[bytes, int]:
    """The segment behind IPv6 extension headers of these types, and the first's type."""
    following = 6
    for kind in reversed(extensions):
        # The authentication header counts words less two, the others units of 8 bytes less one.
        length = 4 if kind == 51 else 1
        segment = bytes((following, length)) + bytes(22 if kind == 51 else 14) + segment
        following = kind
    return segment, following


def _family(packet: bytes, v6: int) -> int:
    return 2 if packet[0] >> 4 == 4 else v6


def _ethertype(packet: bytes) -> bytes:
    return b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"


LINKS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "ethernet": (1, wire.ethernet_frame),
    "padded": (1, lambda packet: wire.ethernet_frame(packet).ljust(60, b"\xee")),
    "vlan": (1, lambda packet: wire.ethernet_frame(packet, vlans=(7,))),
    "qinq": (1, lambda packet: wire.ethernet_frame(packet, vlans=(7, 8, 9))),
    "raw": (101, bytes),
    "raw, BSD's number": (12, bytes),
    "null": (0, lambda packet: pack("<I", _family(packet, 30)) + packet),
    "null, big endian": (0, lambda packet: pack(">I", _family(packet, 24)) + packet),
    "loop": (108, lambda packet: pack(">I", _family(packet, 28)) + packet),
    "sll": (113, lambda packet: bytes(14) + _ethertype(packet) + packet),
    "sll2": (276, lambda packet: _ethertype(packet) + bytes(18) + packet),
}
"""Name -> link type, what it puts around an IP packet."""


def packets(
    sent: list[Sent],
    connection: Connection,
    *,
    step_ns: int = MILLISECOND,
    start_ns: int = START_NS,
) -> list[Packet]:
    """The capture of these segments; offsets count packets."""
    made: list[Packet] = []
    for segment in sent:
        for captured, length in connection.frames(segment):
            time = start_ns + step_ns * len(made)
            link_type = LINKS[connection.link][0]
            made.append(Packet(len(made), time, link_type, memoryview(captured), length))
    return made


def cut(stream: bytes, cuts: list[int], direction: int) -> list[Sent]:
    """A stream in segments that end at ``cuts``."""
    ends = sorted({min(cut, len(stream)) for cut in cuts} | {len(stream)})
    sent, start = [], 0
    for end in ends:
        if end > start:
            sent.append(Sent(direction, start, stream[start:end]))
            start = end
    return sent


def handshake() -> list[Sent]:
    return [Sent(0, 0, flags=SYN), Sent(1, 0, flags=SYN | ACK), Sent(0, 0)]


def farewell(lengths: tuple[int, int]) -> list[Sent]:
    return [
        Sent(0, lengths[0], flags=FIN | ACK, acked=lengths[1]),
        Sent(1, lengths[1], flags=FIN | ACK, acked=lengths[0] + 1),
        Sent(0, lengths[0] + 1, acked=lengths[1] + 1),
    ]


def acknowledging(sent: list[Sent]) -> list[Sent]:
    """Each segment acknowledges what the other side had sent by then."""
    seen, made = [0, 0], []
    for segment in sent:
        made.append(replace(segment, acked=seen[1 - segment.direction]))
        seen[segment.direction] = max(seen[segment.direction], segment.end)
    return made


@dataclass
class Direction:
    """What a capture holds of one direction: the first value captured of each byte, None for none.

    ``cut`` are the positions of bytes whose packet was captured without them.
    """

    values: list[int | None] = field(default_factory=list)
    cut: set[int] = field(default_factory=set)

    def add(self, start: int, data: bytes, missing: int) -> None:
        self.values += [None] * (start + len(data) - len(self.values))
        for at, value in enumerate(data[: len(data) - missing], start):
            if self.values[at] is None:
                self.values[at] = value
        self.cut |= set(range(start + len(data) - missing, start + len(data)))

    def parts(self) -> list[Part]:
        """Runs of bytes, and the lengths of runs that are missing: (start, which)."""
        found, at = [], 0
        for is_missing, run in groupby(self.values, lambda value: value is None):
            values = list(run)
            found.append((at, len(values) if is_missing else bytes(values)))
            at += len(values)
        return found


def expected(sent: list[Sent], lengths: tuple[int, int]) -> tuple[Direction, Direction]:
    """What the events must say, for streams of which the lengths are known (by their FINs)."""
    directions = (Direction(), Direction())
    for segment in sent:
        if segment.data:
            directions[segment.direction].add(segment.start, segment.data, segment.missing)
    for direction, length in zip(directions, lengths, strict=True):
        direction.values += [None] * (length - len(direction.values))
    return directions


def joined(events: Iterable[Event], connection: int, direction: int) -> list[Part]:
    """A direction's Data and Gap as ``Direction.parts`` has it; they must follow each other."""
    parts: list[Part] = []
    at = 0
    for event in events:
        if not isinstance(event, Data | Gap) or event.connection != connection:
            continue
        if event.direction != direction:
            continue
        assert event.stream_offset == at
        new: Any = event.data if isinstance(event, Data) else event.length
        assert new, "an event of no bytes"
        if parts and type(parts[-1][1]) is type(new):
            start, old = parts.pop()
            parts.append((start, old + new))
        else:
            parts.append((at, new))
        at += len(new) if isinstance(new, bytes) else new
    return parts
