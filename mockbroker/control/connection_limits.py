"""How many may be connected to the control port, and for how long without asking anything whole.

aiohttp bounds a request's line, headers and body, and not how long a client may take over them. It
is looked at once a second, from outside: who has a request under way is let be.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any, Final

from aiohttp import web

__all__ = ["BODY_SECONDS", "MOST_CONNECTIONS", "QUIET_SECONDS", "ConnectionLimits"]

MOST_CONNECTIONS: Final = 512
"""More than eight times the streams that a cluster has; who comes on top is closed on."""
QUIET_SECONDS: Final = 60.0
"""What a client has between two requests, and for the line and headers of one."""
BODY_SECONDS: Final = 10.0
"""What it has for a body."""

_LOOK_SECONDS: Final = 1.0


class ConnectionLimits:
    """``start`` and ``stop`` are called on the loop that serves."""

    def __init__(self, server: web.Server, *, most: int, quiet_seconds: float) -> None:
        self._server = server
        self._most = most
        self._quiet_seconds = quiet_seconds
        self._busy: set[object] = set()
        self._quiet_since: dict[object, float] = {}
        self._next_look: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        seconds = min(_LOOK_SECONDS, self._quiet_seconds)
        self._next_look = loop.call_later(seconds, self._look)

    def stop(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()

    @contextlib.contextmanager
    def asking(self, request: web.Request) -> Iterator[None]:
        """While its answer is made and sent."""
        visitor = request.protocol
        self._busy.add(visitor)
        try:
            yield
        finally:
            self._busy.discard(visitor)
            self._quiet_since.pop(visitor, None)

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        quiet: dict[object, float] = {}
        connections = self._server.connections
        too_many = len(connections) - self._most
        for visitor in connections:
            if visitor in self._busy:
                continue
            since = quiet[visitor] = self._quiet_since.get(visitor, now)
            if now - since >= self._quiet_seconds:
                _close(visitor)
        # Whoever came last is the first to go.
        for latest in sorted(quiet, key=quiet.__getitem__, reverse=True)[: max(too_many, 0)]:
            _close(latest)
        self._quiet_since = quiet
        self.start()


def _close(visitor: Any) -> None:
    if visitor.transport is not None:
        visitor.transport.abort()
