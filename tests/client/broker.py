"""A broker of a few lines for the client's tests: a ServerConnection on a socket, and a function
that says what each event is answered with."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from kproto.connection import ServerConnection
from kproto.errors import RemoteProtocolError
from kproto.messages import ApiVersionsResponse
from kproto.messages.api_versions_response import ApiVersion

__all__ = ["Answer", "Broker", "api_versions", "serving"]

Answer = Callable[["Broker", Any], None]


def api_versions(rows: dict[int, tuple[int, int]], error_code: int = 0) -> ApiVersionsResponse:
    keys = [ApiVersion(api_key=k, min_version=a, max_version=b) for k, (a, b) in rows.items()]
    return ApiVersionsResponse(error_code=error_code, api_keys=keys)


class Broker(asyncio.Protocol):
    """One accepted connection. ``seen`` collects every event."""

    transport: asyncio.Transport

    def __init__(self, wire: ServerConnection, answer: Answer, seen: list[Any]) -> None:
        self.wire = wire
        self.seen = seen
        self._answer = answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.wire.receive_data(data)
        self.pump()

    def pump(self) -> None:
        try:
            while (event := self.wire.next_event()) is not None:
                self.seen.append(event)
                self._answer(self, event)
        except RemoteProtocolError as error:
            self.seen.append(error)
            self.transport.close()

    def respond(self, event: Any, body: Any, **options: Any) -> None:
        self.transport.write(self.wire.send_response(event, body, **options))


@asynccontextmanager
async def serving(
    answer: Answer, *, tls: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[tuple[int, list[Any]]]:
    """The port of a listening broker, and what it saw on all connections."""
    loop = asyncio.get_running_loop()
    seen: list[Any] = []
    server = await loop.create_server(
        lambda: Broker(ServerConnection(**options), answer, seen), "127.0.0.1", 0, ssl=tls
    )
    try:
        yield server.sockets[0].getsockname()[1], seen
    finally:
        server.close()
