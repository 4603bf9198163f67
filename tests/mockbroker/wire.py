"""One raw connection to a mock broker: frames in and out by the codec, bounded waits, no client."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kproto.dialects import Dialect
from mockbroker import MockCluster
from tests.support.requests import request_of

__all__ = ["PATIENCE", "Wire", "connect", "connected"]

PATIENCE = 10.0
"""Seconds after which something that should have happened did not. Never what is measured."""


class Wire:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, codec: Dialect
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.codec = codec
        self._correlation_id = 0

    def frame(self, body: Any, version: int, client_id: str | None = "wire") -> bytes:
        """A request frame with a correlation id of its own."""
        self._correlation_id += 1
        return self.codec.encode_request(
            body, api_version=version, correlation_id=self._correlation_id, client_id=client_id
        )

    def send(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))

    async def receive(self) -> bytes:
        """The next frame, its size included."""
        async with asyncio.timeout(PATIENCE):
            size = await self.reader.readexactly(4)
            return size + await self.reader.readexactly(int.from_bytes(size, "big"))

    async def ask(self, body: Any, version: int, /, **fields: Any) -> Any:
        """The body of the answer, whose correlation id must be the request's. ``body`` may be the
        name of a request of ``fields``."""
        if isinstance(body, str):
            body = request_of(body, **fields)
        self.send(self.frame(body, version))
        header, answer = self.codec.decode_response(
            await self.receive(), api_key=body.API_KEY, api_version=version
        )
        assert header.correlation_id == self._correlation_id
        return answer

    async def lists(self, *topics: str) -> bool:
        """Whether Metadata lists these topics, and no others."""
        answer = await self.ask("Metadata", 1, topics=None)
        return [topic.name for topic in answer.topics] == list(topics)

    async def closed(self) -> bytes:
        """Wait until the broker closes; what it still said."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""


@asynccontextmanager
async def connect(
    mock: MockCluster, broker_id: int = 1, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Wire]:
    async with connected(mock, mock.addresses[broker_id], tls=tls) as wire:
        yield wire


@asynccontextmanager
async def connected(
    mock: MockCluster, address: str, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Wire]:
    """A connection to ``host:port``, which may be any listener."""
    host, port = address.rsplit(":", 1)
    name = None if tls is None else "localhost"
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(
            host.strip("[]"), int(port), ssl=tls, server_hostname=name
        )
    try:
        yield Wire(reader, writer, mock.dialect)
    finally:
        writer.close()
