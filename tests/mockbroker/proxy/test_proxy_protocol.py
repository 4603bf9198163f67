"""The header that names a client to the upstream: its bytes, and where the proxy sends it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto.client import SaslPlain
from mockbroker import MockCluster
from mockbroker.proxy.kafka_proxy import KafkaProxy, ProxyOptions
from mockbroker.proxy.proxy_protocol import own_header, proxy_header
from tests.mockbroker.proxy.conftest import address, dial
from tests.mockbroker.simulation.security.test_tls import client_context, server_context
from tests.mockbroker.wire import PATIENCE

START = bytes.fromhex("0d0a0d0a000d0a515549540a")
OWN = START + bytes.fromhex("20 00 0000")


@pytest.mark.requirement("DP-PROXY-12")
def test_the_bytes_of_a_header() -> None:
    four = proxy_header(("192.0.2.1", 50000), ("127.0.0.1", 9092))
    assert four == START + bytes.fromhex("21 11 000c c0000201 7f000001 c350 2384")
    six = proxy_header(("2001:db8::1", 1, 0, 0), ("fe80::2%eth0", 65535, 0, 3))
    ends = "20010db8000000000000000000000001 fe800000000000000000000000000002"
    assert six == START + bytes.fromhex(f"21 21 0024 {ends} 0001 ffff")
    assert own_header() == OWN


@pytest.mark.requirement("DP-PROXY-12")
@pytest.mark.parametrize(
    "ends",
    [(None, None), ("", ""), ("/a/socket", ""), (("host", 1), ("127.0.0.1", 2)), ((), ()),
     (("127.0.0.1", 1), ("::1", 2, 0, 0)), (("127.0.0.1",), ("127.0.0.1", 2))],
)  # fmt: skip
def test_other_ends_are_not_named(ends: tuple[Any, Any]) -> None:
    assert proxy_header(*ends) == OWN


class Gateway:
    """Stands in front of a mock cluster, and takes a header off each connection."""

    def __init__(self, mock: MockCluster) -> None:
        self.headers: list[bytes] = []
        self.port = 0
        self._place = address(mock.bootstrap)
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        header = await reader.readexactly(16)
        header += await reader.readexactly(int.from_bytes(header[14:], "big"))
        self.headers.append(header)
        there, back = await asyncio.open_connection(*self._place)
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(1 << 16):
                sink.write(data)
        except ConnectionError:
            pass
        finally:
            sink.close()


@asynccontextmanager
async def gateway(mock: MockCluster) -> AsyncIterator[Gateway]:
    made = Gateway(mock)
    server = await asyncio.start_server(made.take, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    mock.advertise(1, f"127.0.0.1:{made.port}")
    try:
        yield made
    finally:
        server.close()


@pytest.mark.requirement("DP-PROXY-12")
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("sasl", [False, True])
async def test_the_upstream_is_told_of_each_client(tls: bool, sasl: bool) -> None:
    async with (
        MockCluster(
            1, tls=server_context() if tls else None, sasl=["PLAIN:u:p"] if sasl else []
        ) as mock,
        gateway(mock) as front,
    ):
        options = ProxyOptions(
            upstream=[("127.0.0.1", front.port)],
            upstream_tls=client_context() if tls else None,
            upstream_sasl=SaslPlain("u", "p") if sasl else None,
            open_to_all=sasl,
            send_proxy_header=True,
        )
        async with KafkaProxy(options) as proxy:
            assert front.headers == [OWN]
            for broker_id in (None, 1):
                async with dial(proxy, broker_id) as wire:
                    body = await wire.ask("Metadata", 9, topics=[])
                    assert [each.node_id for each in body.brokers] == [1]
                    own, other = (
                        wire.writer.get_extra_info("sockname"),
                        wire.writer.get_extra_info("peername"),
                    )
                    assert front.headers[-1] == proxy_header(own, other)
                    assert len(front.headers[-1]) == 28
            assert len(front.headers) == 3


async def test_an_upstream_that_does_not_listen() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        options = ProxyOptions(upstream=[("127.0.0.1", port)], send_proxy_header=True)
        async with KafkaProxy(options) as proxy, dial(proxy) as wire:
            assert await asyncio.wait_for(wire.closed(), PATIENCE) == b""
