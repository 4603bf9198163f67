"""A mock cluster behind a proxy."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from mockbroker import MockCluster
from mockbroker.options.addresses import parse_endpoint
from mockbroker.proxy.kafka_proxy import KafkaProxy, ProxyOptions
from tests.mockbroker.wire import PATIENCE, Wire

__all__ = ["address", "dial"]


def address(text: str) -> tuple[str, int]:
    host, port = parse_endpoint(text.split(",")[0])
    assert port is not None
    return host, port


@asynccontextmanager
async def dial(
    proxy: KafkaProxy, broker_id: int | None = None, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Wire]:
    """A raw connection to the bootstrap listener, or to that of a broker."""
    import asyncio

    host, port = address(proxy.bootstrap if broker_id is None else proxy.addresses[broker_id])
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(
            host, port, ssl=tls, server_hostname=None if tls is None else "localhost"
        )
    try:
        yield Wire(reader, writer, proxy.dialect)
    finally:
        writer.close()


@pytest.fixture
async def proxied() -> AsyncIterator[Callable[..., Any]]:
    """``await proxied(mock)`` gives a running proxy in front of it, until the end of the test."""
    async with AsyncExitStack() as stack:

        async def start(mock: MockCluster, **options: Any) -> KafkaProxy:
            chosen = {"detail": "frames", **options}
            proxy = KafkaProxy(ProxyOptions(upstream=[address(mock.bootstrap)], **chosen))
            entered: AbstractAsyncContextManager[KafkaProxy] = proxy
            return await stack.enter_async_context(entered)

        yield start
