"""Captures of random conversations, with the truth about the exchanges in them.

A seed gives a capture: what several clients and brokers say to each other, as segments of any size,
behind a proxy's header or in the middle, repeated, reordered, copied to another interface, tagged,
cut by a snap length, or on the ports of an earlier connection. ``truth`` has each exchange of which
the capture has enough to read it, as counted from what was put into the packets.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv4Address
from struct import pack
from typing import Final, NamedTuple

from kproto.capture.container import (
    pcap_header,
    pcap_record,
    pcapng_interface,
    pcapng_packet,
    pcapng_section,
)
from kproto.capture.packets import ACK, FIN, SYN, ethernet_frame, ip_packet, tcp_segment
from tests.wiredump.talk import Said, say

__all__ = [
    "BEGINNINGS", "HOP_NS", "KINDS", "START_NS", "Fact", "Known", "Line", "Packet", "converse",
    "covered", "file_of", "hinted", "in_vxlan", "is_in", "known", "lossy", "reordered",
    "reused", "sent_again", "translated",
]  # fmt: skip

START_NS: Final = 1_700_000_000_000_000_000
_MICROSECOND: Final = 1_000
_AHEAD_NS: Final = 3_000
"""How far the clock of an interface may be ahead of that of another one."""
_ETHERNET_IP_TCP: Final = 54


class Fact(NamedTuple):
    """An exchange: the fields of its request that are known, and whether it has a response."""

    port: int
    api_key: int
    api_version: int
    correlation_id: int
    answered: bool


class Known(NamedTuple):
    """``what`` names what was done to the capture. ``truth`` has every exchange. If the capture
    lacks something, ``sure`` has those that it has whole; otherwise both are equal. ``clients`` are
    the ends that proxies' headers name. ``again`` counts the segments of copied conversations that
    were sent again, ``copies`` their copies and those of other segments with data."""

    what: str
    capture: bytes
    truth: Counter[Fact]
    sure: Counter[Fact]
    clients: tuple[str, ...] = ()
    again: int = 0
    copies: int = 0


class Packet(NamedTuple):
    """A packet of a conversation."""

    time_ns: int
    frame: bytes
    end: int
    """Which end sent it."""
    first: int
    last: int
    """The positions of its payload among the bytes of its direction."""
    captured: int = 1 << 20
    """The snap length."""
    interface: int = 0
    again: bool = False


class Line:
    """One connection between two ``hosts``, the client's and the broker's. The spans are the
    positions of what was said, by direction."""

    def __init__(
        self, rng: random.Random, port: int, *, client_port: int, start_ns: int, syn: bool,
        isn: tuple[int, int] | None = None, vlans: tuple[int, ...] = (),
        hosts: tuple[str, str] = ("10.0.0.1", "10.0.0.2"),
    ) -> None:  # fmt: skip
        self.rng = rng
        self.hosts = IPv4Address(hosts[0]), IPv4Address(hosts[1])
        self.packets: list[Packet] = []
        self.isn = isn or (rng.getrandbits(32), rng.getrandbits(32))
        self.sent = [0, 0]
        self.ports = client_port, port
        self.vlans = vlans
        self.now = start_ns
        self._identification = rng.getrandbits(15)
        if syn:
            self.put(0, SYN, before=1)
            self.put(1, SYN | ACK, before=1)
            self.put(0, ACK)

    def put(self, end: int, flags: int, data: bytes = b"", *, before: int = 0) -> None:
        hosts = self.hosts
        acknowledged = 0 if flags == SYN else self.isn[1 - end] + 1 + self.sent[1 - end]
        tcp = tcp_segment(
            hosts[end], hosts[1 - end], self.ports[end], self.ports[1 - end],
            self.isn[end] + 1 + self.sent[end] - before, acknowledged, flags, data,
        )  # fmt: skip
        self._identification = (self._identification + 1) & 0xFFFF
        packet = ip_packet(
            hosts[end], hosts[1 - end], tcp, identification=self._identification or 1
        )
        self.now += self.rng.randint(50, 2_000) * _MICROSECOND
        first = self.sent[end]
        self.sent[end] += len(data)
        frame = ethernet_frame(packet, vlans=self.vlans)
        self.packets.append(Packet(self.now, frame, end, first, self.sent[end]))

    def send(self, end: int, data: bytes, most: int) -> tuple[int, int]:
        """Send data in segments of at most ``most`` bytes; returns its span."""
        start = self.sent[end]
        for at in range(0, len(data), most):
            self.put(end, ACK, data[at : at + most])
        return start, self.sent[end]

    def finish(self) -> None:
        self.put(0, FIN | ACK)
        self.put(1, FIN | ACK)


# ---- what precedes Kafka --------------------------------------------------------------------


def _token(size: int) -> bytes:
    inside = b"\x06\x09" + bytes(size)
    body = b"\x60\x82" + pack(">H", len(inside)) + inside
    return pack(">i", len(body)) + body


_SOCKS: Final = b"\x05\x00\x00\x01" + bytes(6)

BEGINNINGS: Final[dict[str, tuple[str, list[tuple[int, bytes]]]]] = {
    "none": ("", []),
    "proxy 1": (
        "192.0.2.7:5555", [(0, b"PROXY TCP4 192.0.2.7 10.0.0.2 5555 31092\r\n")],
    ),
    "proxy 1, unknown": ("", [(0, b"PROXY UNKNOWN\r\n")]),
    "proxy 2": (
        "192.0.2.7:5555",
        [(0, b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes((192, 0, 2, 7, 10, 0, 0, 2))
          + pack(">HH", 5555, 31092))],
    ),
    "proxy 2, IPv6 with a TLV": (
        "[2001:db8::7]:5555",
        [(0, b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x28" + bytes.fromhex("20010db8") + bytes(11) + b"\x07"
          + bytes.fromhex("20010db8") + bytes(11) + b"\x02" + pack(">HH", 5555, 31092)
          + b"\x04\0\x01\0")],
    ),
    "proxy 2, local": ("", [(0, b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0")]),
    "connect": (
        "",
        [(0, b"CONNECT broker:9092 HTTP/1.1\r\nHost: broker:9092\r\n\r\n"),
         (1, b"HTTP/1.1 200 Connection established\r\n\r\n")],
    ),
    "socks 4": ("", [(0, b"\4\1\x23\x84\x0a\0\0\x02me\0"), (1, b"\0\x5a" + bytes(6))]),
    "socks 4a": (
        "", [(0, b"\4\1\x23\x84\0\0\0\x01me\0broker\0"), (1, b"\0\x5a" + bytes(6))],
    ),
    "socks 5": (
        "",
        [(0, b"\5\1\0"), (1, b"\5\0"), (0, b"\5\1\0\3\6broker\x23\x84"), (1, _SOCKS)],
    ),
    "socks 5, password": (
        "",
        [(0, b"\5\2\0\2"), (1, b"\5\2"), (0, b"\1\2me\3abc"), (1, b"\1\0"),
         (0, b"\5\1\0\1\x0a\0\0\2\x23\x84"), (1, _SOCKS)],
    ),
    "banner": ("", [(1, b"* welcome to the bastion, all sessions are recorded\r\n")]),
    "line": ("", [(0, b"route=cluster-7;zone=b\n")]),
    "gssapi": (
        "", [(0, _token(500)), (1, pack(">i", 100) + bytes(100)), (0, pack(">i", 0)),
             (1, pack(">i", 30) + bytes(30)), (0, pack(">i", 40) + b"\5" + bytes(39))],
    ),
}  # fmt: skip
"""Name -> the client that it names, and (end, bytes)."""


# ---- the captures ---------------------------------------------------------------------------


def converse(
    rng: random.Random, line: Line, said: list[Said], most: int
) -> list[tuple[Fact, tuple[int, int], tuple[int, int] | None]]:
    """Say it, at times several requests before their responses; returns the facts and spans."""
    found, at = [], 0
    while at < len(said):
        count = rng.randint(1, 3)
        requests = [(each, line.send(0, each.request, most)) for each in said[at : at + count]]
        for each, span in requests:
            answer = line.send(1, each.response, most) if each.response is not None else None
            fact = Fact(
                line.ports[0], each.api_key, each.api_version, each.correlation_id,
                answer is not None,
            )  # fmt: skip
            found.append((fact, span, answer))
        at += count
    return found


def _whole(rng: random.Random, packets: list[Packet]) -> list[Packet]:
    return packets


def in_vxlan(rng: random.Random, packets: list[Packet]) -> list[Packet]:
    """Each packet travels between two hosts of an overlay network."""
    ends = IPv4Address("172.16.0.1"), IPv4Address("172.16.0.2")

    def around(each: Packet) -> bytes:
        inside = pack(">II", 8 << 24, 7 << 8) + each.frame
        datagram = pack(">HHHH", 40_000, 4789, 8 + len(inside), 0) + inside
        return ethernet_frame(ip_packet(*ends, datagram, protocol=17))

    return [each._replace(frame=around(each)) for each in packets]


def _cut(rng: random.Random, packets: list[Packet]) -> list[Packet]:
    """A snap length cuts each packet, behind the headers of requests."""
    return [each._replace(captured=_ETHERNET_IP_TCP + 40) for each in packets]


def sent_again(rng: random.Random, packets: list[Packet]) -> list[Packet]:
    """Send some packets again, a second later."""
    again = [
        each._replace(frame=numbered(each.frame, number), time_ns=each.time_ns + 10**9, again=True)
        for number, each in enumerate(packets, 1)
        if rng.random() < 0.2
    ]
    return sorted(packets + again, key=lambda each: each.time_ns)


def reordered(rng: random.Random, packets: list[Packet]) -> list[Packet]:
    """Exchange neighbours of the same direction."""
    out = list(packets)
    for at in range(4, len(out) - 1):
        one, other = out[at : at + 2]
        if rng.random() < 0.3 and one.end == other.end and one.last > one.first:
            out[at], out[at + 1] = (
                other._replace(time_ns=one.time_ns), one._replace(time_ns=other.time_ns)
            )  # fmt: skip
    return out


def _copied(rng: random.Random, packets: list[Packet]) -> list[Packet]:
    """Each packet is captured on two interfaces: of one host, of which one may tag it, or at both
    ends of a network. Some segments are sent again at once, which only their identification
    tells."""
    delay_ns = rng.choice((-_AHEAD_NS, 3_000, 400_000, 2_000_000))
    has_number = delay_ns > 3_000 or rng.random() < 0.7
    out = []
    for each in packets:
        sent = [each if has_number else each._replace(frame=numbered(each.frame, 0))]
        if has_number and each.last - each.first > 1 and rng.random() < 0.2:  # no keep-alive
            number = int.from_bytes(each.frame[_NUMBER]) ^ 0x8000 or 1
            frame = numbered(each.frame, number)
            sent.append(each._replace(frame=frame, time_ns=each.time_ns + 40_000, again=True))
        for one in sent:
            tagged = one.frame[:12] + b"\x81\0\0\7" + one.frame[12:]
            frame = rng.choice((one.frame, tagged))
            out += [one, one._replace(time_ns=one.time_ns + delay_ns, frame=frame, interface=1)]
    return out


_NUMBER: Final = slice(18, 20)


def numbered(frame: bytes, identification: int) -> bytes:
    return frame[: _NUMBER.start] + pack(">H", identification) + frame[_NUMBER.stop :]


HOP_NS: Final = 200_000
_BEHIND: Final = IPv4Address("10.9.0.2").packed, pack(">H", 19092)
"""The broker's address and port behind a translation of the destination."""


def _translated(rng: random.Random, packets: list[Packet]) -> list[Packet]:
    """Each packet is captured before and behind a translation of the broker's address, in the order
    in which it passes; the copies keep everything else."""
    out = []
    for each in packets:
        address, port = (30, 36) if each.end == 0 else (26, 34)
        frame = bytearray(each.frame)
        frame[address : address + 4], frame[port : port + 2] = _BEHIND
        there = each._replace(frame=bytes(frame))
        first, second = (each, there) if each.end == 0 else (there, each)
        out += [first, second._replace(time_ns=each.time_ns + HOP_NS, interface=1)]
    return sorted(out, key=lambda each: each.time_ns)


def translated(seed: object) -> Known:
    """Return the capture of conversations that were captured before and behind a translation. The
    truth has each exchange once."""
    return known(seed, "translated", port=9092)


def _late_start(rng: random.Random, packets: list[Packet]) -> list[Packet]:
    return packets[rng.randint(1, max(1, len(packets) // 2)) :]


def lossy(rng: random.Random, packets: list[Packet]) -> list[Packet]:
    return [each for each in packets if rng.random() > 0.05]


def _requests_alone(rng: random.Random, packets: list[Packet]) -> list[Packet]:
    return [each for each in packets if each.end == 0]


KINDS: Final[dict[str, Callable[[random.Random, list[Packet]], list[Packet]]]] = {
    "whole": _whole,
    "sent again": sent_again,
    "reordered": reordered,
    "copied": _copied,
    "late start": _late_start,
    "lossy": lossy,
    "requests alone": _requests_alone,
    "vxlan": in_vxlan,
    "cut": _cut,
    "translated": _translated,
}
_COMPLETE: Final = ("whole", "sent again", "reordered", "copied", "vxlan", "cut")


def reused(seed: object) -> Known:
    """Return a capture of two sessions, of which neither has a SYN, on the same ports: numbers are
    random, the same, or lower, each for itself."""
    rng = random.Random(f"{seed} reused")
    first = Line(rng, 31092, client_port=50_000, start_ns=START_NS, syn=False)
    lower = first.isn[0] - rng.choice((0, 500)), first.isn[1] - rng.choice((0, 400))
    far = [(each - rng.randint(1 << 21, 3 << 30)) % (1 << 32) for each in first.isn]
    isn = rng.choice((None, lower, (lower[0], far[1]), (far[0], lower[1]), (far[0], far[1])))
    later = first.now + 600 * 10**9
    second = Line(rng, 31092, client_port=50_000, start_ns=later, syn=False, isn=isn)
    truth: Counter[Fact] = Counter()
    for line, number in ((first, 100), (second, 500)):
        said = [say(rng, number + each) for each in range(6)]
        truth.update(fact for fact, *_ in converse(rng, line, said, 1400))
    packets = first.packets + second.packets
    return Known(f"{seed} reused", file_of(packets), truth, truth)


def hinted(seed: object, port: int = 31092, places: tuple[int, ...] = (0, 3, 6)) -> bytes:
    """Return a capture with parts of conversations that may show too little by themselves: few
    packets from the middle, of one direction, or cut, of clients without a name. Another
    conversation on their port is whole, at one of ``places`` among them. On a third port are more
    such parts, and nothing else."""
    rng = random.Random(f"{seed} hinted")
    packets: list[Packet] = []
    place = rng.choice(places)
    for number in range(7):
        whole = number == place
        line = Line(
            rng, port if whole or number < 5 else 31093, client_port=50_000 + number, syn=True,
            start_ns=START_NS + number * rng.choice((10**7, 400 * 10**9)),
        )  # fmt: skip
        name = rng.choice((None, "", "c-ü"))
        first = rng.randint(1, 2**30)
        said = [say(rng, first + each, client_id="c" if whole else name) for each in range(5)]
        converse(rng, line, said, rng.choice((60, 1400, 60_000)))
        if whole or rng.random() < 0.3:
            line.finish()
        packets += line.packets if whole else _part(rng, line.packets)
    packets.sort(key=lambda each: each.time_ns)
    return file_of(packets)


def _part(rng: random.Random, packets: list[Packet]) -> list[Packet]:
    start = rng.choice((0, 3, rng.randrange(len(packets))))
    found = packets[start : start + rng.randint(1, 8)]
    end = rng.choice((0, 1, None, None))
    if end is not None:
        found = [each for each in found if each.end == end]
    if rng.random() < 0.5:
        found = [each._replace(captured=_ETHERNET_IP_TCP + rng.choice((9, 20))) for each in found]
    return found


def file_of(packets: list[Packet]) -> bytes:
    if any(each.interface for each in packets):
        return pcapng_section() + 2 * pcapng_interface(1) + b"".join(
            pcapng_packet(
                each.time_ns, each.frame[: each.captured], interface=each.interface,
                original_length=len(each.frame),
            )
            for each in packets
        )  # fmt: skip
    return pcap_header(1) + b"".join(
        pcap_record(each.time_ns, each.frame[: each.captured], original_length=len(each.frame))
        for each in packets
    )


def known(seed: object, kind: str, beginning: str = "none", port: int | None = None) -> Known:
    """Return the capture of a seed."""
    rng = random.Random(f"{seed} {kind} {beginning}")
    if port is None:
        port = rng.choice((9092, 31092, 31093))
    client, prologue = BEGINNINGS[beginning]
    packets: list[Packet] = []
    truth: Counter[Fact] = Counter()
    sure: Counter[Fact] = Counter()
    for number in range(rng.randint(1, 2)):
        line = Line(
            rng, port, client_port=50_000 + number, start_ns=START_NS + number * 10**7, syn=True
        )
        most = rng.choice((60, 500, 1400, 60_000))
        for end, data in prologue:
            line.send(end, data, most)
        first = rng.randint(1, 2**30)
        said = [say(rng, first + each) for each in range(rng.randint(4, 12))]
        facts = converse(rng, line, said, most)
        if rng.random() < 0.8:
            line.finish()
        made = KINDS[kind](rng, line.packets)
        packets += made
        seen = [covered(made, end) for end in (0, 1)]
        for fact, request, response in facts:
            truth[fact] += 1
            if is_in(request, seen[0]):
                there = response is not None and is_in(response, seen[1])
                sure[fact._replace(answered=there)] += 1
    packets.sort(key=lambda each: each.time_ns + each.interface * 2 * _AHEAD_NS)
    clients = (client,) * (len({fact.port for fact in truth}) if client else 0)
    if kind in _COMPLETE:
        assert truth == sure
    again = sum(each.again and not each.interface for each in packets)
    copies = sum(each.interface and each.last > each.first for each in packets)
    what = f"{seed} {kind} {beginning} {port}"
    return Known(what, file_of(packets), truth, sure, clients, again, copies)


def covered(packets: list[Packet], end: int) -> list[tuple[int, int]]:
    return sorted({(each.first, each.last) for each in packets if each.end == end})


def is_in(span: tuple[int, int], seen: list[tuple[int, int]]) -> bool:
    at, end = span
    for first, last in seen:
        if first <= at < last:
            at = last
    return at >= end
