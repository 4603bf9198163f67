"""TLS connections to be read: what both ends wrote, byte by byte, and the key log of it.

Python's ssl does the talking, in memory or with a mock cluster; what it wrote is taken down as it
goes by.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kproto.capture import Conversation as Packets
from kproto.capture.container import RAW_IP, pcap_header, pcap_record
from tests.wiredump.talk import Said

__all__ = [
    "PEM", "SERVER", "SUITES", "Passage", "Suite", "TlsClient", "capture_of", "client_context",
    "in_memory", "packets_of", "plain", "server_context",
]  # fmt: skip

PEM = Path(__file__).parents[2] / "client" / "localhost.pem"

CLIENT, SERVER = ("10.0.0.1", 50000), ("10.0.0.2", 9093)


class Suite(NamedTuple):
    version: ssl.TLSVersion
    name: str


SUITES = [
    Suite(ssl.TLSVersion.TLSv1_3, ""),
    Suite(ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256"),
    Suite(ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384"),
    Suite(ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"),
    Suite(ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-CCM:DHE-RSA-AES128-CCM"),
]


class Passage(NamedTuple):
    """Bytes that one end wrote at once."""

    from_server: bool
    data: bytes


def server_context(suite: Suite = SUITES[0]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    return _narrowed(context, suite)


def client_context(log: Path | None, suite: Suite = SUITES[0]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(PEM))
    if log is not None:
        context.keylog_filename = str(log)
    return _narrowed(context, suite)


def _narrowed(context: ssl.SSLContext, suite: Suite) -> ssl.SSLContext:
    context.minimum_version = context.maximum_version = suite.version
    if suite.name:
        context.set_ciphers(suite.name)
    return context


# ---- in memory -----------------------------------------------------------------------------------


class _End:
    """One end without a socket."""

    def __init__(self, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        is_server = context.protocol == ssl.PROTOCOL_TLS_SERVER
        self.tls = context.wrap_bio(
            self.incoming,
            self.outgoing,
            server_side=is_server,
            server_hostname=None if is_server else "localhost",
            session=session,
        )

    def shakes(self) -> bool:
        """Whether it waits for more."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return True
        return False

    def read(self) -> bytes:
        out = b""
        while True:
            try:
                out += self.tls.read(1 << 16)
            except ssl.SSLWantReadError:
                return out


def in_memory(
    said: Iterable[Said],
    client: ssl.SSLContext,
    server: ssl.SSLContext,
    session: ssl.SSLSession | None = None,
) -> tuple[list[Passage], ssl.SSLSession]:
    """A connection on which this was said; and what resumes it."""
    ends = _End(client, session), _End(server)
    passages: list[Passage] = []

    def pass_on() -> None:
        for number, end in enumerate(ends):
            data = end.outgoing.read()
            if data:
                passages.append(Passage(bool(number), data))
                ends[not number].incoming.write(data)

    while sum(end.shakes() for end in ends):  # each of them
        pass_on()
    pass_on()
    for each in said:
        for number, raw in enumerate((each.request, each.response)):
            if raw is not None:
                ends[number].tls.write(raw)
                pass_on()
                assert ends[not number].read() == raw
    resumable = ends[0].tls.session
    assert resumable is not None
    return passages, resumable


def plain(said: Iterable[Said]) -> list[Passage]:
    """The same without TLS."""
    return [
        Passage(bool(number), raw)
        for each in said
        for number, raw in enumerate((each.request, each.response))
        if raw is not None
    ]


# ---- with a broker -------------------------------------------------------------------------------


class TlsClient:
    """A connection to a broker: ``ask`` sends a whole frame and gives the next."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.passages: list[Passage] = []
        self._end = _End(context)
        self._held = b""
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def connect(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._reader, self._writer = await asyncio.open_connection(host, int(port))
        while self._end.shakes():
            self._send()
            await self._receive()
        self._send()

    async def ask(self, frame: bytes) -> bytes:
        self._end.tls.write(frame)
        self._send()
        while len(self._held) < 4 or len(self._held) < 4 + int.from_bytes(self._held[:4]):
            await self._receive()
            self._held += self._end.read()
        size = 4 + int.from_bytes(self._held[:4])
        answer, self._held = self._held[:size], self._held[size:]
        return answer

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    def _send(self) -> None:
        data = self._end.outgoing.read()
        if data:
            self.passages.append(Passage(False, data))
            self._writer.write(data)

    async def _receive(self) -> None:
        async with asyncio.timeout(20):
            data = await self._reader.read(1 << 16)
        assert data, "the broker closed the connection"
        self.passages.append(Passage(True, data))
        self._end.incoming.write(data)


# ---- captures ------------------------------------------------------------------------------------


def packets_of(
    passages: Iterable[Passage], segment_size: int = 32 << 10, port: int = CLIENT[1]
) -> list[bytes]:
    """IP packets, one at least for each passage; ``port`` is the client's."""
    packets = Packets((CLIENT[0], port), SERVER, segment_size=segment_size)
    found = packets.open()
    for passage in passages:
        found += packets.send(passage.data, from_server=passage.from_server)
    return [*found, *packets.close()]


def capture_of(packets: Iterable[bytes]) -> bytes:
    """A capture, a millisecond between packets."""
    records = (
        pcap_record(10**9 + number * 10**6, packet, nanoseconds=True)
        for number, packet in enumerate(packets)
    )
    return pcap_header(RAW_IP, nanoseconds=True) + b"".join(records)
