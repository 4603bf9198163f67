"""The brokers of a cluster, the connections to them, and the controller.

A connection is made on first use and kept, one for each broker. Retries and deadlines belong to
``calls``; here a broker that cannot be reached raises OSError, as the socket does.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from kproto.client.connection import Connection
from kproto.client.deadlines import Deadline
from kproto.client.errors import NodeUnavailableError, raise_for_code
from kproto.dialects import Dialect
from kproto.os_errors import os_error_text
from kproto.schema.versions import Versions

__all__ = ["Address", "Nodes", "Opener", "Renewer", "parse_bootstrap"]

_METADATA: Final = 3
# Version 0 does not name a controller.
_WITH_CONTROLLER: Final = Versions(1, 2**15 - 1)
_NO_CONTROLLER: Final = -1
_PATIENCE: Final = 10.0
"""Seconds that one broker has for describing the cluster before the next is tried."""


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


Opener = Callable[[Address, float], Awaitable[Connection]]
"""Opens a connection within the given seconds, and authenticates if needed."""
Renewer = Callable[[Connection], Awaitable[None]]
"""Re-authenticates if the session ends soon, or closes and raises."""


def parse_bootstrap(servers: str | Iterable[str]) -> list[Address]:
    """Parse ``"host:port,host:port"`` or an iterable of such. Raises ValueError with the invalid
    part."""
    texts = servers.split(",") if isinstance(servers, str) else list(servers)
    found = [_parse_address(text.strip()) for text in texts if text.strip()]
    if not found:
        raise ValueError("no bootstrap server given; write HOST:PORT[,HOST:PORT...]")
    return found


def _parse_address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError(f"bootstrap server {text!r} is not HOST:PORT")
    return Address(host, int(port))


class Nodes:
    """The cluster as this client knows it."""

    def __init__(
        self, bootstrap: list[Address], dialect: Dialect, opener: Opener, renewer: Renewer
    ) -> None:
        self._bootstrap = bootstrap
        self._dialect = dialect
        self._opener = opener
        self._renewer = renewer
        self._brokers: dict[int, Address] = {}
        self._controller = _NO_CONTROLLER
        self._connections: dict[Address, Connection] = {}
        self._opening: defaultdict[Address, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._refreshing = asyncio.Lock()
        self._refreshed = 0
        self._turn = 0
        self._closed = False

    # ---- asking for a connection -------------------------------------------------------------

    async def any(self, deadline: Deadline) -> Connection:
        """Return a connection to any broker, preferably an open one."""
        for address, connection in self._connections.items():
            if not connection.closed:
                return await self._connect(address, deadline)
        return await self._first_reachable(deadline)

    async def controller(self, deadline: Deadline) -> Connection:
        """Return a connection to the controller. Raises NodeUnavailableError while there is
        none."""
        if self._controller == _NO_CONTROLLER:
            await self._refresh(deadline)
        address = self._brokers.get(self._controller)
        if address is None:
            raise NodeUnavailableError("the cluster has no controller")
        return await self._connect(address, deadline)

    async def broker(self, broker_id: int, deadline: Deadline) -> Connection:
        """Return a connection to one broker. Raises NodeUnavailableError while no live broker has
        that id."""
        if broker_id not in self._brokers:
            await self._refresh(deadline)
        address = self._brokers.get(broker_id)
        if address is None:
            raise NodeUnavailableError(f"the cluster has no live broker {broker_id}")
        return await self._connect(address, deadline)

    def forget(self) -> None:
        """Refresh the cluster's metadata before the next request, because it proved to be
        outdated."""
        self._controller = _NO_CONTROLLER
        self._brokers = {}

    async def close(self) -> None:
        """Close all connections, and those that are being opened as soon as they are."""
        self._closed = True
        connections, self._connections = list(self._connections.values()), {}
        await asyncio.gather(*(connection.close() for connection in connections))

    # ---- inside ------------------------------------------------------------------------------

    async def _connect(self, address: Address, deadline: Deadline) -> Connection:
        # A lock rather than a shared task: a caller that is cancelled while opening ends only its
        # own attempt, and the next in line makes another.
        async with self._opening[address]:
            known = self._connections.get(address)
            if known is not None and not known.closed:
                if known.session_due:
                    await self._renewer(known)
                return known
            connection = await self._opener(address, deadline.remaining)
            if self._closed:
                await connection.close()
                raise NodeUnavailableError("the client was closed")
            self._connections[address] = connection
            return connection

    async def _first_reachable(self, deadline: Deadline) -> Connection:
        failures: list[OSError] = []
        for address in self._candidates():
            try:
                return await self._connect(address, deadline)
            except ssl.SSLError:
                raise
            except OSError as error:
                failures.append(error)
        raise _unreachable(failures)

    async def _refresh(self, deadline: Deadline) -> None:
        seen = self._refreshed
        async with self._refreshing:
            # The previous holder of the lock may have refreshed the metadata already.
            if self._refreshed != seen:
                return
            failures: list[OSError] = []
            for address in self._candidates():
                try:
                    connection = await self._connect(address, deadline)
                    self._take(await self._metadata(connection, deadline))
                    return
                except ssl.SSLError:
                    raise
                except OSError as error:
                    failures.append(error)
            raise _unreachable(failures)

    async def _metadata(self, connection: Connection, deadline: Deadline) -> Any:
        request: Any = self._dialect.message("MetadataRequest")
        version = connection.version_for(_METADATA, _WITH_CONTROLLER)
        patience = min(deadline.response_timeout, _PATIENCE)
        response = await connection.request(request(topics=[]), version, timeout=patience)
        raise_for_code(response.error_code)
        return response

    def _take(self, response: Any) -> None:
        self._brokers = {each.node_id: Address(each.host, each.port) for each in response.brokers}
        self._controller = response.controller_id
        self._refreshed += 1

    def _candidates(self) -> Iterator[Address]:
        """Yield the brokers to try, a different one first each time, so that outdated metadata of
        one broker is not used forever."""
        connected = [address for address, each in self._connections.items() if not each.closed]
        everyone = [*dict.fromkeys([*connected, *self._brokers.values(), *self._bootstrap])]
        start = self._turn % len(everyone)
        self._turn += 1
        return iter(everyone[start:] + everyone[:start])


def _unreachable(failures: list[OSError]) -> OSError:
    error = NodeUnavailableError(
        "no broker can be reached: " + "; ".join(os_error_text(each) for each in failures), failures
    )
    error.__cause__ = failures[-1]
    return error
