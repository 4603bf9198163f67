"""Captures of many short connections: most as they should be, some with something odd at any stage
of their packets."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import kproto
from kproto.capture import Conversation
from kproto.capture.packets import ACK, FIN, RST, SYN, ethernet_frame
from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from tests.wiredump.spark.made_up import START_NS, mixed, pcap

__all__ = ["ODD", "ShortConnection", "capture_of", "short_connections"]

HELLO_OF_TLS: Final = bytes.fromhex("16030100050100000100")


class ShortConnection:
    """One connection from SYN to the last acknowledgement, ``packets`` as they were sent."""

    def __init__(
        self, rng: random.Random, port: int = 40_000, *, server: int = 9092, exchanges: int = 2,
        hellos: Sequence[int] = (0, 3, 4, 3, 4, 77),
    ) -> None:  # fmt: skip
        self.rng = rng
        six = rng.random() < 0.2
        ends = ("10.0.0.1", "10.0.1.1") if not six else ("2001:db8::1", "2001:db8::2")
        self.talk = Conversation(
            (ends[0], port), (ends[1], server), segment_size=rng.choice((1448, 1448, 1448, 9)),
            client_isn=rng.choice((rng.randrange(2**32 - 1), 2**32 - 1 - rng.randrange(300))),
            server_isn=rng.randrange(2**32 - 1),
        )  # fmt: skip
        self.packets = self.talk.open()
        self.client = rng.choice(("a", "client-1", "c-ü", "", None))
        self._number = 0
        if rng.random() < 0.8:
            self.say_hello(rng.choice(hellos))
        for _ in range(exchanges):
            self.ask()
        self.packets += self.talk.close(from_server=rng.random() < 0.3)

    def say_hello(self, version: int) -> None:
        software = self.rng.choice(("apache-kafka-java", "librdkafka", ""))
        asked = ApiVersionsRequest(client_software_name=software, client_software_version="3.9")
        known = min(version, 4)
        raw = bytearray(self._request(asked, known))
        raw[7] = version
        self._exchange(bytes(raw), self._response(ApiVersionsResponse(), known))

    def ask(self) -> None:
        if self.rng.random() < 0.5:
            request = self._request(MetadataRequest(), 1)
            self._exchange(request, self._response(MetadataResponse(), 1))
            return
        acks = self.rng.choice((0, 1))
        answer = self._response(ProduceResponse(), 7) if acks else b""
        self._exchange(self._request(ProduceRequest(acks=acks), 7), answer)

    def _request(self, body: kproto.Message, version: int) -> bytes:
        return kproto.encode_request(
            body, api_version=version, correlation_id=self._number, client_id=self.client
        )

    def _response(self, body: kproto.Message, version: int) -> bytes:
        return kproto.encode_response(body, api_version=version, correlation_id=self._number)

    def _exchange(self, request: bytes, response: bytes) -> None:
        self.packets += self.talk.send(request)
        self.packets += self.talk.send(response, from_server=True)
        if self.rng.random() < 0.3:
            self.packets.append(self.talk.acknowledge())
        self._number += 1

    # -- what may be odd about it, from packet ``at`` on -----------------------------------------

    def _insert(self, at: int, flags: int, payload: bytes = b"", shift: int = 0) -> None:
        """A packet like the one that stands there, but for these."""
        like = self.packets[at]
        header = 20 if like[0] >> 4 == 4 else 40
        source, port = like[12:16] if header == 20 else like[8:24], like[header : header + 2]
        talk = self.talk
        ends = [(end.packed, number.to_bytes(2)) for end, number in talk._ends]
        side = ends.index((source, port))
        saved = list(talk._next)
        sequence, acknowledged = (
            int.from_bytes(like[header + place : header + place + 4]) for place in (4, 8)
        )
        talk._next[side] = (sequence + shift) % 2**32
        talk._next[not side] = acknowledged
        self.packets.insert(at + 1, talk._packet(side, flags, payload))
        talk._next[:] = saved


def _without(connection: ShortConnection, at: int) -> None:
    del connection.packets[at]


def _again(connection: ShortConnection, at: int) -> None:
    connection.packets.insert(at, connection.packets[at])


def _again_later(connection: ShortConnection, at: int) -> None:
    connection.packets.append(connection.packets[at])


def _late(connection: ShortConnection, at: int) -> None:
    connection.packets[at : at + 2] = reversed(connection.packets[at : at + 2])


def _unfinished(connection: ShortConnection, at: int) -> None:
    del connection.packets[at:]


def _from_the_middle(connection: ShortConnection, at: int) -> None:
    del connection.packets[: at + 1]


def _reset_for_good(connection: ShortConnection, at: int) -> None:
    connection._insert(at, RST | ACK)
    del connection.packets[at + 2 :]


def _with(flags: int, payload: bytes, shift: int, connection: ShortConnection, at: int) -> None:
    connection._insert(at, flags, payload, shift)


def _instead(payload: bytes, connection: ShortConnection, at: int) -> None:
    connection._insert(at, ACK, payload)
    del connection.packets[at]


ODD: Final[list[Callable[[ShortConnection, int], None]]] = [
    _without, _again, _again_later, _late, _unfinished, _from_the_middle, _reset_for_good,
    *(
        partial(_with, flags, payload, shift)
        for flags in (ACK, FIN | ACK, FIN, SYN, SYN | ACK, RST, RST | ACK, SYN | 0xC0, 0)
        for payload in (b"", b"x" * 40)
        for shift in (0, -1, 1, 700)
    ),
    *(partial(_instead, payload) for payload in (HELLO_OF_TLS, b"\0\0", b"GET / HTTP/1.1\r\n" * 9)),
]  # fmt: skip


def short_connections(rng: random.Random, count: int, odd: float) -> list[bytes]:
    """Packets of so many, a share of them odd, several at a time and some on ports used before."""
    chains: list[list[bytes]] = []
    while count > 0:
        chain: list[bytes] = []
        for _ in range(min(count, rng.choice((1, 1, 2, 3)))):
            server = 9092 if rng.random() > odd / 2 else rng.choice((80, 443))
            connection = ShortConnection(
                rng, 40_000 + len(chains), server=server, exchanges=rng.choice((0, 1, 1, 3))
            )
            while rng.random() < odd and connection.packets:
                rng.choice(ODD)(connection, rng.randrange(len(connection.packets)))
            chain += connection.packets
            count -= 1
        chains.append(chain)
    return mixed(rng, chains)


def capture_of(packets: list[bytes], rng: random.Random, pause: float = 0.0) -> bytes:
    """A file; ``pause`` is how often a minute and more goes by."""
    now, records = START_NS, []
    for packet in packets:
        now += rng.choice((0, 1_000, 1_000_000))
        if rng.random() < pause:
            now += rng.choice((60_000_000_000, 61_000_000_000))
        framed = ethernet_frame(packet)
        records.append((now // 1000 * 1000, framed, len(framed)))
    return pcap(records)
