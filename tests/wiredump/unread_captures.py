"""Captures of which something cannot be read, made up with the truth about them: how many bytes of
payload they have, how many of these no command can read and why, and how many requests there are.

The truth is counted from what was put into the packets, without any of wiredump's own means.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address
from struct import pack
from typing import Final, NamedTuple

from kproto.capture.container import pcap_header, pcap_record
from kproto.capture.packets import ACK, FIN, RST, SYN, ethernet_frame, ip_packet, tcp_segment
from wiredump.unread import Unread

__all__ = ["SAMPLES", "Line", "Sample", "heartbeat", "heartbeats", "merged", "sample"]

START_NS: Final = 1_700_000_000_000_000_000
_STEP_NS: Final = 1_000_000
_SEGMENT: Final = 1400
_CLIENT, _BROKER = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")


class Packet(NamedTuple):
    """``captured`` bytes of ``frame``."""

    time_ns: int
    frame: bytes
    captured: int


class Sample(NamedTuple):
    """``parts`` are files in the order in which a command reads them. ``unread`` counts bytes by
    reason, ``repeated`` those that the capture has twice. ``requests`` are those that can be
    read."""

    name: str
    parts: list[bytes]
    payload: int
    unread: Mapping[Unread, int]
    requests: int
    repeated: int = 0
    rotated: bool = False


# ---- packets --------------------------------------------------------------------------------


class Line:
    """One TCP connection: what both ends send becomes packets, a millisecond apart."""

    def __init__(
        self, port: int = 9092, *, client_port: int = 50_000, syn: bool = True,
        isn: tuple[int, int] = (1000, 2000), start_ns: int = START_NS,
    ) -> None:  # fmt: skip
        self.packets: list[Packet] = []
        self._ports = client_port, port
        self._next = [isn[0] + 1, isn[1] + 1]
        self._time = start_ns
        if syn:
            self.put(0, SYN, b"", isn[0], 0)
            self.put(1, SYN | ACK, b"", isn[1])
            self.put(0, ACK)

    @property
    def now(self) -> int:
        return self._time

    def wait(self, seconds: float) -> None:
        self._time += int(seconds * 10**9)

    def send(self, end: int, data: bytes, *, segment: int = _SEGMENT) -> int:
        """Send data in segments, end 0 being the client; returns how many bytes these are."""
        for at in range(0, len(data), segment):
            piece = data[at : at + segment]
            self.put(end, ACK, piece)
            self._next[end] += len(piece)
        return len(data)

    def skip(self, end: int, size: int) -> None:
        """Send bytes that the capture lacks."""
        self._next[end] += size

    def again(self, end: int, data: bytes, back: int) -> int:
        """Send a segment that begins ``back`` bytes before the next one."""
        self.put(end, ACK, data, self._next[end] - back)
        return len(data)

    def finish(self) -> None:
        for end in (0, 1):
            self.put(end, FIN | ACK)
            self._next[end] += 1
        self.put(0, ACK)

    def reset(self) -> None:
        self.put(1, RST | ACK)

    def acknowledge(self, end: int) -> None:
        self.put(end, ACK)

    def put(
        self, end: int, flags: int, data: bytes = b"", sequence: int | None = None,
        acknowledged: int | None = None, *, window: int = 65_535,
    ) -> None:  # fmt: skip
        self.packets.append(self._packet(end, flags, data, sequence, acknowledged, window))

    def _packet(
        self, end: int, flags: int, data: bytes, sequence: int | None, acknowledged: int | None,
        window: int = 65_535,
    ) -> Packet:  # fmt: skip
        ends = (_CLIENT, self._ports[0]), (_BROKER, self._ports[1])
        (source, source_port), (target, target_port) = ends[end], ends[1 - end]
        tcp = tcp_segment(
            source, target, source_port, target_port,
            self._next[end] if sequence is None else sequence,
            self._next[1 - end] if acknowledged is None else acknowledged, flags, data,
            window=window,
        )  # fmt: skip
        self._time += _STEP_NS
        frame = ethernet_frame(ip_packet(source, target, tcp))
        return Packet(self._time, frame, len(frame))

    def fragment(self, end: int, data: bytes) -> int:
        """Send only the first fragment of a segment; returns the bytes of payload in it."""
        (packet,) = [self._packet(end, ACK, data, None, None)]
        whole = packet.frame[34:]
        first = whole[: len(whole) // 2 // 8 * 8]
        made = ethernet_frame(
            ip_packet((_CLIENT, _BROKER)[end], (_BROKER, _CLIENT)[end], first, fragment=0x2000)
        )
        self.packets.append(Packet(packet.time_ns, made, len(made)))
        return len(first) - 20


def file_of(packets: Iterable[Packet]) -> bytes:
    """Return a capture."""
    return pcap_header(1) + b"".join(
        pcap_record(each.time_ns, each.frame[: each.captured], original_length=len(each.frame))
        for each in packets
    )


def merged(*lines: Line) -> bytes:
    """Return a capture of several connections."""
    packets = [packet for line in lines for packet in line.packets]
    return file_of(sorted(packets, key=lambda packet: packet.time_ns))


def snapped(packets: Iterable[Packet], length: int) -> list[Packet]:
    """Return the packets as a snap length cuts them."""
    return [each._replace(captured=min(each.captured, length)) for each in packets]


# ---- what is said ---------------------------------------------------------------------------


def framed(body: bytes) -> bytes:
    return pack(">i", len(body)) + body


def heartbeat(number: int) -> bytes:
    """A Heartbeat request of version 0."""
    return framed(pack(">hhih", 12, 0, number, 2) + b"c1\0\1g" + pack(">I", 1) + b"\0\1m")


def beaten(number: int) -> bytes:
    """Its response."""
    return framed(pack(">ih", number, 0))


def heartbeats(line: Line, first: int = 100, count: int = 5) -> int:
    """Exchange heartbeats; returns the number of bytes."""
    return sum(
        line.send(0, heartbeat(number)) + line.send(1, beaten(number))
        for number in range(first, first + count)
    )


def produce(number: int, size: int) -> bytes:
    """A Produce request of version 2 with a record batch of zeros, which needs acks=1."""
    batch = bytes(size)
    partitions = pack(">ii", 1, 0) + pack(">i", len(batch)) + batch
    topics = pack(">ih", 1, 1) + b"t" + partitions
    return framed(pack(">hhih", 0, 2, number, 2) + b"c1" + pack(">hi", 1, 1000) + topics)


def produced(number: int) -> bytes:
    topics = pack(">ih", 1, 1) + b"t" + pack(">iihqq", 1, 0, 0, 5, -1)
    return framed(pack(">i", number) + topics + pack(">i", 0))


HTTP: Final = (
    b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n" + b"x" * 300,
)
PROXY: Final = b"PROXY TCP4 192.0.2.7 10.0.0.2 5555 31092\r\n"
GSSAPI: Final = framed(b"\x60\x82\x02\x10" + bytes(0x210))


def record(kind: int, size: int, rng: random.Random) -> bytes:
    """A record of TLS."""
    return bytes((kind, 3, 3)) + pack(">H", size) + rng.randbytes(size)


def encrypted(line: Line, rng: random.Random) -> int:
    """A handshake and data of TLS; returns the number of bytes."""
    sent = [(0, record(22, 300, rng)), (1, record(22, 2000, rng))]
    sent += [(number % 2, record(23, 500, rng)) for number in range(8)]
    return sum(line.send(end, data) for end, data in sent)


# ---- the captures ---------------------------------------------------------------------------

_makers: Final[list[Callable[[], Sample]]] = []


def _sample(make: Callable[[], Sample]) -> Callable[[], Sample]:
    _makers.append(make)
    return make


@_sample
def whole() -> Sample:
    line = Line(31092)
    size = heartbeats(line)
    line.finish()
    return Sample("whole", [merged(line)], size, {}, 5)


@_sample
def nothing_said() -> Sample:
    line = Line()
    line.finish()
    return Sample("no payload", [merged(line)], 0, {}, 0)


def _tls(name: str, port: int) -> Sample:
    line = Line(port)
    size = encrypted(line, random.Random(1))
    line.finish()
    return Sample(name, [merged(line)], size, {"tls": size}, 0)


@_sample
def tls() -> Sample:
    return _tls("TLS", 9092)


@_sample
def tls_elsewhere() -> Sample:
    return _tls("TLS on another port", 9093)


def _http(name: str, port: int) -> Sample:
    line = Line(port)
    size = sum(line.send(end, data) for _ in range(3) for end, data in enumerate(HTTP))
    line.finish()
    return Sample(name, [merged(line)], size, {"not-kafka": size}, 0)


@_sample
def http() -> Sample:
    return _http("HTTP", 9092)


@_sample
def http_elsewhere() -> Sample:
    return _http("HTTP on another port", 8080)


@_sample
def mixed() -> Sample:
    lines = [Line(9092, client_port=50_000 + number) for number in range(3)]
    sizes = [
        heartbeats(lines[0]), encrypted(lines[1], random.Random(2)),
        sum(lines[2].send(end, data) for end, data in enumerate(HTTP)),
    ]  # fmt: skip
    unread = {"tls": sizes[1], "not-kafka": sizes[2]}
    return Sample("mixed", [merged(*lines)], sum(sizes), unread, 5)


@_sample
def repeated() -> Sample:
    """Segments that were sent again, in Kafka and in TLS."""
    first, second = Line(31092), Line(9093, client_port=50_001)
    size = heartbeats(first)
    again = first.again(0, heartbeat(104), len(heartbeat(104)))
    hidden = encrypted(second, random.Random(1))
    again += second.again(1, record(23, 500, random.Random(1))[:1], 1)
    return Sample(
        "repeated", [merged(first, second)], size + hidden + again, {"tls": hidden}, 5, again
    )  # fmt: skip


@_sample
def other_content() -> Sample:
    """A segment that was sent again with other bytes: the first copy is read."""
    line = Line(31092)
    size = heartbeats(line)
    last = heartbeat(104)
    other = last[:-6] + b"\x55" * 6
    again = line.again(0, other, len(last))
    unread: dict[Unread, int] = {"differing": again}
    return Sample("sent again with other content", [merged(line)], size + again, unread, 5)


@_sample
def same_ports() -> Sample:
    """Two sessions on the same ports, ten minutes apart and without SYN, whose sequence numbers are
    the same."""
    first = Line(31092, syn=False)
    size = heartbeats(first, 100)
    second = Line(31092, syn=False, start_ns=first.now + 600 * 10**9)
    other = heartbeats(second, 500)
    return Sample("same ports", [merged(first, second)], size + other, {}, 10)


@_sample
def middle() -> Sample:
    """A capture that begins within a request and within a response."""
    line = Line(31092, syn=False)
    rest, answer = heartbeat(99)[9:], beaten(99)[3:]
    size = line.send(0, rest) + line.send(1, answer)
    read = heartbeats(line)
    return Sample("mid-stream", [merged(line)], size + read, {"before-start": size}, 5)


@_sample
def wrong_guess() -> Sample:
    """The capture begins in the second segment of a request, and correlation ids look like versions
    of Produce, as if the responses were requests."""
    line = Line(31092, syn=False)
    for number in range(2, 12):
        line.send(0, produce(number, 3000))
        line.send(1, produced(number))
    unread: dict[Unread, int] = {
        "before-start": len(produce(2, 3000)) - _SEGMENT,
        "unmatched": len(produced(2)),
    }
    read = 9 * len(produce(3, 3000) + produced(3))
    return Sample(
        "wrong guess", [file_of(line.packets[1:])], sum(unread.values()) + read, unread, 9
    )


@_sample
def wrong_guess_of_responses() -> Sample:
    line = Line(31092, syn=False)
    size = sum(line.send(1, produced(number)) for number in range(2, 12))
    return Sample(
        "responses alone on another port", [merged(line)], size, {"unmatched": size}, 0
    )  # fmt: skip


@_sample
def smpp() -> Sample:
    """A protocol whose first PDU looks like the header of a Produce request of version 9."""
    line = Line(2775)
    bind = b"system\0password\0\0\x34\0\0\0"
    size = line.send(0, pack(">iiii", 16 + len(bind), 9, 0, 1) + bind)
    return Sample("SMPP", [merged(line)], size, {"not-kafka": size}, 0)


def _cut(name: str, port: int, unread: Mapping[Unread, int], requests: int) -> Sample:
    line = Line(port)
    heartbeats(line, 100, 2)
    for number in range(102, 106):
        line.send(0, produce(number, 3000))
        line.send(1, produced(number))
    cut = snapped(line.packets, 96)
    size = sum(max(0, each.captured - 54) for each in cut)
    return Sample(name, [file_of(cut)], size, unread, requests)


@_sample
def snap_length() -> Sample:
    # Of each Produce, the second and third segment are behind a gap: 42 bytes of each.
    return _cut("snap length", 9092, {"missing": 4 * 2 * 42}, 6)


@_sample
def lost() -> Sample:
    """A segment was lost: what is behind it in its frame is not read."""
    line = Line(9092)
    size = heartbeats(line)
    large = produce(105, 3000)
    size += line.send(0, large[:1400])
    line.skip(0, 1400)
    behind = line.send(0, large[2800:])
    size += behind + line.send(1, produced(105))
    size += heartbeats(line, 106)
    line.finish()
    return Sample("lost segment", [merged(line)], size, {"missing": behind}, 11)


@_sample
def wrong_order() -> Sample:
    """Parts of a rotated capture in the wrong order: what comes last is older than the first byte
    seen."""
    line = Line(9092, syn=False)
    early = heartbeats(line, 100)
    split = len(line.packets)
    late = heartbeats(line, 105)
    parts = [file_of(line.packets[split:]), file_of(line.packets[:split])]
    return Sample(
        "rotated parts in the wrong order", parts, early + late, {"out-of-window": early}, 5,
        rotated=True,
    )  # fmt: skip


@_sample
def late() -> Sample:
    """A hole was given up before the segment that fills it came."""
    line = Line(9092)
    size = heartbeats(line, 100, 2)
    line.skip(0, len(heartbeat(102)))
    size += line.send(0, heartbeat(103))
    line.wait(120)
    size += line.send(0, heartbeat(104))
    back = sum(len(heartbeat(number)) for number in (102, 103, 104))
    delayed = line.again(0, heartbeat(102), back)
    return Sample("late segment", [merged(line)], size + delayed, {"out-of-window": delayed}, 4)


@_sample
def far_off() -> Sample:
    line = Line(9092)
    size = heartbeats(line)
    off = line.again(0, heartbeat(7), -(1 << 30) - 5)
    return Sample("out of window", [merged(line)], size + off, {"out-of-window": off}, 5)


@_sample
def after_the_end() -> Sample:
    line = Line(9092)
    size = heartbeats(line)
    line.reset()
    after = line.send(0, heartbeat(105))
    return Sample("after a reset", [merged(line)], size + after, {"out-of-window": after}, 5)


def _proxied(name: str, port: int) -> Sample:
    line = Line(port)
    size = line.send(0, PROXY) + heartbeats(line)
    return Sample(name, [merged(line)], size, {}, 5)


@_sample
def proxied() -> Sample:
    return _proxied("PROXY header", 9092)


@_sample
def proxied_elsewhere() -> Sample:
    return _proxied("PROXY header on another port", 31092)


@_sample
def requests_alone() -> Sample:
    line = Line(9092)
    size = sum(line.send(0, heartbeat(number)) for number in range(100, 105))
    return Sample("requests alone", [merged(line)], size, {}, 5)


@_sample
def responses_alone() -> Sample:
    line = Line(9092)
    size = sum(line.send(1, beaten(number)) for number in range(100, 105))
    return Sample("responses alone", [merged(line)], size, {"unmatched": size}, 0)


@_sample
def gssapi() -> Sample:
    """Tokens of Kerberos without SaslHandshake, which was legal before 4.0 (KIP-896)."""
    line = Line(9092)
    token = line.send(0, GSSAPI)
    answer = line.send(1, GSSAPI)
    size = heartbeats(line)
    line.finish()
    return Sample("GSSAPI", [merged(line)], size + token + answer, {}, 5)


@_sample
def unknown_api() -> Sample:
    """Requests of an API that no release has, and their responses."""
    line = Line(9092)
    size, strange = heartbeats(line), 0
    for number in range(200, 203):
        strange += line.send(0, framed(pack(">hhih", 999, 0, number, 2) + b"c1" + bytes(30)))
        strange += line.send(1, framed(pack(">i", number) + bytes(50)))
    size += heartbeats(line, 300)
    return Sample("unknown API", [merged(line)], size + strange, {"unknown-api": strange}, 10)


@_sample
def garbage() -> Sample:
    line = Line(9092)
    rng = random.Random(7)
    size = sum(line.send(number % 2, b"\xff" + rng.randbytes(700)) for number in range(6))
    return Sample("garbage", [merged(line)], size, {"not-kafka": size}, 0)


@_sample
def spoiled() -> Sample:
    """A frame size that cannot be, and nothing recognisable behind it."""
    line = Line(9092)
    read = heartbeats(line)
    size = line.send(0, b"\xff\xff\xff\xfe" + b"\xee" * 200)
    return Sample("spoiled", [merged(line)], read + size, {"malformed": size}, 5)


@_sample
def fragments() -> Sample:
    line = Line(9092)
    size = heartbeats(line)
    part = line.fragment(0, heartbeat(105) * 4)
    return Sample("fragments", [merged(line)], size + part, {"fragments": part}, 5)


SAMPLES: Final = tuple(make() for make in _makers)


def sample(name: str) -> Sample:
    """Return the sample of this name."""
    (found,) = [each for each in SAMPLES if each.name == name]
    return found
