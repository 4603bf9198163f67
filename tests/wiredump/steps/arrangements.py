"""Captures of ``size`` packets, arranged in every way that makes readers wait: the parts of an
arrangement are drawn one by one, so that a search finds combinations that nobody thought of."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address
from struct import pack
from typing import Final, Literal, TypeAlias

from kproto.capture import container
from kproto.capture.packets import ACK, SYN, ethernet_frame, ip_packet, tcp_segment

__all__ = ["NAMED", "Arrangement", "arranged"]

_CLIENT: Final = IPv4Address("10.0.0.1")
_BROKER: Final = IPv4Address("10.0.0.2")
_REQUEST: Final = pack(">ihhih", 10 + 3, 18, 0, 0, 3) + b"abc"

Order: TypeAlias = Literal["in order", "reversed", "odd first", "shuffled", "blocks reversed"]
Answers: TypeAlias = Literal["none", "in order", "reversed", "all but the first"]
Hole: TypeAlias = Literal["none", "first", "many", "snaplen"]


@dataclass(frozen=True)
class Arrangement:
    """How packets are arranged. A stream consists of requests of 17 bytes, which segments of
    ``segment`` bytes cut; each segment also has the next ``overlap`` bytes, and comes ``times``
    times. At the end, ``reach`` bytes are sent once more for each ``repeated`` segments. ``hello``:
    the connections begin with a handshake. ``step_ns`` lies between two packets."""

    order: Order = "in order"
    hole: Hole = "none"
    answers: Answers = "none"
    segment: int = 17
    overlap: int = 0
    repeated: int = 0
    reach: int = 1400
    times: int = 1
    connections: int = 1
    per_connection: int = 0
    """Segments of each connection, so that their number grows; 0: it does not."""
    fragment: int = 0
    acknowledged: bool = False
    hello: bool = True
    tunnel: bool = False
    interfaces: bool = False
    step_ns: int = 1000

    def packets(self, size: int) -> list[bytes]:
        """Return about ``size`` packets."""
        count = self.connections
        if self.per_connection:
            count = max(1, size // self.per_connection)
        each = max(1, size // count // max(1, self.times))
        queues = [self._connection(number, each) for number in range(count)]
        made = [packet for packets in zip(*queues, strict=True) for packet in packets]
        return [self._wrapped(number, packet) for number, packet in enumerate(made)]

    def _wrapped(self, number: int, packet: bytes) -> bytes:
        if not self.tunnel:
            return ethernet_frame(packet)
        vxlan = pack(">BxxxI", 8, number % (1 << 24) << 8) + ethernet_frame(packet)
        udp = pack(">HHHH", 5000, 4789, 8 + len(vxlan), 0) + vxlan
        return ethernet_frame(ip_packet(_CLIENT, _BROKER, udp, protocol=17))

    def _connection(self, number: int, count: int) -> list[bytes]:
        rng = random.Random(number)
        port = 10_000 + number % 50_000
        client = IPv4Address(int(_CLIENT) + number // 50_000 * 256)
        made: list[bytes] = []

        def send(forward: bool, at: int, data: bytes, flags: int = ACK, acked: int = 0) -> None:
            ends = (client, _BROKER, port, 9092) if forward else (_BROKER, client, 9092, port)
            made.append(
                ip_packet(
                    ends[0], ends[1], tcp_segment(*ends, 1001 + at, 5001 + acked, flags, data)
                )
            )

        if self.hello:
            send(True, -1, b"", SYN)
            send(False, 3999, b"", SYN | ACK, -4000)
            send(True, 0, b"")
        answers, answered = self._answered(count), 0
        cut = [(at * self.segment, self.segment + self.overlap) for at in range(count)]
        if self.hole == "first":
            cut = cut[1:]
        elif self.hole == "many":
            cut = cut[1::2]
        cut = _ordered(cut, self.order, rng)
        stream = self._stream(count)
        for place, (at, length) in enumerate(cut):
            data = stream[at : at + length]
            for _ in range(self.times):
                send(True, at, data)
                if self.hole == "snaplen" and place:
                    made[-1] = made[-1][: len(made[-1]) - len(data) // 2]
                elif self.fragment:
                    made[-1:] = _fragments(made[-1], self.fragment, place, self.order)
            if place < len(answers) and (place or self.answers != "all but the first"):
                send(False, 4000 + answered, answers[place], ACK, at + length - 4000)
                answered += len(answers[place])
            elif self.acknowledged:
                send(False, 4000, b"", ACK, at + length - 4000)
        for _ in range(self.repeated and max(1, count // self.repeated)):
            send(True, self.segment, stream[self.segment : self.segment + self.reach])
        return made

    def _stream(self, count: int) -> bytes:
        length = count * self.segment + self.overlap
        requests = bytearray()
        number = 0
        while len(requests) < length:
            requests += _REQUEST[:8] + number.to_bytes(4) + _REQUEST[12:]
            number += 1
        return bytes(requests[:length])

    def _answered(self, count: int) -> list[bytes]:
        numbers = list(range(count * self.segment // len(_REQUEST)))
        if self.answers == "none":
            return []
        if self.answers == "reversed":
            numbers.reverse()
        return [pack(">iih", 6, number, 0) for number in numbers]

    def capture(self, size: int) -> bytes:
        """Return a capture."""
        packets = self.packets(size)
        start = 1_700_000_000 * 10**9
        if not self.interfaces:
            records = [
                container.pcap_record(start + place * self.step_ns, packet, nanoseconds=True)
                for place, packet in enumerate(packets)
            ]
            return container.pcap_header(1, nanoseconds=True) + b"".join(records)
        blocks = [container.pcapng_section()]
        for place, packet in enumerate(packets):
            blocks += [
                container.pcapng_interface(1),
                container.block(10, pack("<II", 0x544C534B, 4) + b"#..\n"),
                container.pcapng_packet(start + place * self.step_ns, packet),
            ]
        return b"".join(blocks)


def _ordered(cut: list[tuple[int, int]], order: Order, rng: random.Random) -> list[tuple[int, int]]:
    match order:
        case "reversed":
            return cut[::-1]
        case "odd first":
            return cut[1::2] + cut[::2]
        case "shuffled":
            return rng.sample(cut, len(cut))
        case "blocks reversed":
            return [each for at in range(0, len(cut), 16) for each in cut[at : at + 16][::-1]]
    return cut


def _fragments(packet: bytes, size: int, number: int, order: Order) -> list[bytes]:
    """An IP packet in fragments. In reverse, the first one never comes."""
    payload = packet[20:]
    made = [
        ip_packet(
            _CLIENT, _BROKER, payload[at : at + size], identification=number % 65536,
            fragment=at // 8 | (0x2000 if at + size < len(payload) else 0),
        )
        for at in range(0, len(payload), size)
    ]  # fmt: skip
    return made[:0:-1] if order == "reversed" else made


NAMED: Final[dict[str, Arrangement]] = {
    "in order": Arrangement(),
    "cut behind a hole": Arrangement(hole="snaplen"),
    "cut and reversed": Arrangement(hole="snaplen", order="reversed"),
    "behind a hole": Arrangement(hole="first"),
    "many holes": Arrangement(hole="many"),
    "many holes, acknowledged": Arrangement(hole="many", acknowledged=True, step_ns=10**8),
    "reversed": Arrangement(order="reversed"),
    "interleaved": Arrangement(order="odd first"),
    "shuffled": Arrangement(order="shuffled"),
    "each repeated": Arrangement(times=4),
    "waiting, repeated": Arrangement(hole="first", repeated=2),
    "waiting bytes, repeated": Arrangement(hole="first", repeated=2, segment=1),
    "overlapping": Arrangement(overlap=600),
    "overlapping and reversed": Arrangement(overlap=1400, order="reversed", segment=1),
    "overlapping, odd first": Arrangement(overlap=300, order="odd first", hole="first"),
    "one byte each": Arrangement(segment=1),
    "one byte each, reversed": Arrangement(segment=1, order="reversed"),
    "many connections": Arrangement(per_connection=2),
    "many holes of many connections": Arrangement(per_connection=4, hole="first"),
    "connections from the middle": Arrangement(per_connection=2, hello=False),
    "many SYNs": Arrangement(per_connection=1, segment=0),
    "answered": Arrangement(answers="in order"),
    "answered in reverse": Arrangement(answers="reversed"),
    "the first never answered": Arrangement(answers="all but the first"),
    "small frames in a segment": Arrangement(segment=17 * 8),
    "a frame in many segments": Arrangement(segment=3),
    "fragments": Arrangement(fragment=16),
    "fragments, reversed and incomplete": Arrangement(fragment=8, order="reversed"),
    "fragments that repeat": Arrangement(fragment=16, times=3),
    "in tunnels": Arrangement(tunnel=True, order="odd first"),
    "many interfaces": Arrangement(interfaces=True),
}


def arranged(rng: random.Random) -> Arrangement:
    """Draw an arrangement."""
    pick: Callable[..., bool] = lambda chance: rng.random() < chance  # noqa: E731
    return Arrangement(
        order=rng.choice(["in order", "reversed", "odd first", "shuffled", "blocks reversed"]),
        hole=rng.choice(["none", "first", "many", "snaplen"]),
        answers=rng.choice(["none", "none", "in order", "reversed", "all but the first"]),
        segment=rng.choice([1, 3, 17, 40, 400]),
        overlap=rng.choice([0, 0, 1, 30, 1000]),
        repeated=rng.choice([0, 0, 2, 8]), reach=100,  # a few of the limited number of gaps kept
        times=rng.choice([1, 1, 2, 5]),
        connections=rng.choice([1, 1, 2, 7]),
        per_connection=rng.choice([0, 0, 1, 3, 10]),
        fragment=rng.choice([0, 0, 0, 8, 24]),
        acknowledged=pick(0.3), hello=pick(0.8), tunnel=pick(0.1), interfaces=pick(0.1),
        step_ns=rng.choice([1, 1000, 10**7, 10**9]),
    )  # fmt: skip
