"""Limits on the connections of the control port: how many, and how long without a whole request.

aiohttp bounds the size of a request line, of headers and of a body, but not the time a client takes
to send them. A timer checks once a second and spares connections that wait for their answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any, Final

from aiohttp import web

__all__ = ["BODY_SECONDS", "MOST_CONNECTIONS", "QUIET_SECONDS", "ConnectionLimits"]

MOST_CONNECTIONS: Final = 512
"""More than eight times the event streams of a cluster; further connections are closed."""
QUIET_SECONDS: Final = 60.0
"""The time for a request line and headers, counted from the end of the previous request."""
BODY_SECONDS: Final = 10.0
"""The time for a body."""

_CHECK_SECONDS: Final = 1.0


class ConnectionLimits:
    """Call ``start`` and ``stop`` on the server's event loop."""

    def __init__(self, server: web.Server, *, most: int, quiet_seconds: float) -> None:
        self._server = server
        self._most = most
        self._quiet_seconds = quiet_seconds
        self._busy: set[object] = set()
        self._quiet_since: dict[object, float] = {}
        self._next_check: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        seconds = min(_CHECK_SECONDS, self._quiet_seconds)
        self._next_check = loop.call_later(seconds, self._check)

    def stop(self) -> None:
        if self._next_check is not None:
            self._next_check.cancel()

    @contextlib.contextmanager
    def serving(self, request: web.Request) -> Iterator[None]:
        """Spare the request's connection while its answer is made and sent."""
        connection = request.protocol
        self._busy.add(connection)
        try:
            yield
        finally:
            self._busy.discard(connection)
            self._quiet_since.pop(connection, None)

    def _check(self) -> None:
        now = asyncio.get_running_loop().time()
        quiet: dict[object, float] = {}
        connections = self._server.connections
        excess = len(connections) - self._most
        for connection in connections:
            if connection in self._busy:
                continue
            since = quiet[connection] = self._quiet_since.get(connection, now)
            if now - since >= self._quiet_seconds:
                _close(connection)
        # The newest connections are closed first.
        for newest in sorted(quiet, key=quiet.__getitem__, reverse=True)[: max(excess, 0)]:
            _close(newest)
        self._quiet_since = quiet
        self.start()


def _close(connection: Any) -> None:
    if connection.transport is not None:
        connection.transport.abort()
