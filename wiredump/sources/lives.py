"""Connections that begin and end in the extension: its callbacks, and how Python takes over such a
connection.

This module depends on the internals of ``readers.tcp`` and ``captures``, so that those need not
know about it. Such a connection has a ``Connection`` and a number from the beginning; the other
objects of Python's are made only if they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final, Protocol

from kproto.dialects import Dialect
from kproto.journal import ClientSoftware
from wiredump.boundaries import VERSIONS_TO_COME, every_request
from wiredump.dialects import certain
from wiredump.model import Connection, Place
from wiredump.pairing import software_of
from wiredump.readers import FROM_CLIENT
from wiredump.readers.tally import Tally
from wiredump.readers.tcp import TcpReassembler, _Connection
from wiredump.sources.captures import CaptureItems

__all__ = ["Counted", "Lives"]

_MOST_KEYS: Final = 1 << 10


class Counted(Protocol):
    """Counts the exchanges of a connection that are not items."""

    def counted(
        self, connection: int, requests: int, request_bytes: int, response_bytes: int
    ) -> None: ...


class Lives:
    """``opened`` and ``closed`` are called for connections; ``adopt`` continues one in Python.
    ``has`` is whether a flow may begin here."""

    def __init__(
        self, tcp: TcpReassembler, items: CaptureItems, codec: Dialect, counted: Counted | None,
        has: Callable[[bytes], bool] | None = None,
    ) -> None:  # fmt: skip
        self._tcp = tcp
        self._items = items
        self._codec = certain(codec)
        self._counted = counted
        self._has = has

    @property
    def calls(self) -> tuple[Any, ...]:
        """The arguments of ``Reading.live``."""
        return self.opened, self.closed, self.software, self._tcp._flows, _versions()

    def opened(self, flow: bytes, time: int, capture: int, packet: int) -> Connection | None:
        """Open a connection at the SYN of an unknown flow. Returns None if Python has to read
        it."""
        items = self._items
        if items.keyed or not (self._has is None or self._has(flow)):
            return None
        number = self._tcp.take_number()
        client, server = _ends(flow)
        connection = Connection(
            number, client, server, time, from_start=True, place=Place(capture, packet),
            tally=Tally(),
        )  # fmt: skip
        items.connections[number] = connection
        return connection

    def closed(
        self, connection: Connection, time: int | None, ended_by: int | None, client_id: str | None,
        any_request: int, requests: int, request_bytes: int, response_bytes: int,
    ) -> None:  # fmt: skip
        """Close a connection: both ends have sent everything, and nothing waits. ``time`` is None
        if the captures end."""
        connection.closed_ns = time
        if connection.tally is not None:
            connection.tally.close()
        if ended_by is not None:
            connection.closed_by = "client" if ended_by == FROM_CLIENT else "broker"
            connection.closed_with = "fin"
        if any_request:
            connection.protocol = "kafka"
        if client_id is not None:
            connection.client_id = client_id
        if requests and self._counted is not None:
            self._counted.counted(connection.id, requests, request_bytes, response_bytes)

    def software(self, raw: bytes) -> ClientSoftware | None:
        """Return the client software that an ApiVersions request names."""
        return _software(self._codec, raw[:8] + bytes(4) + raw[12:])

    def adopt(self, life: tuple[Any, ...], ends: tuple[int, int], at: tuple[int, int, int]) -> bool:
        """Continue the connection in Python. ``life`` is the state of native/opening.c, ``ends``
        has the positions of the streams, ``at`` the newest packet. Returns whether there are frames
        to restore, too."""
        flow, connection, client_isn, server_isn, recognised, *fins, ended_by, closed_at = life[:-1]
        made = _Connection(connection.number, flow, "syn", connection.tally)
        made.syn_ns = life[-1]
        self._tcp.know(made)
        made.timestamp_ns, made.capture, made.offset = at
        for stream, isn, fin, end in zip(
            made.streams, (client_isn, server_isn), fins, ends, strict=True
        ):
            if isn is None:
                continue
            stream.isn = isn
            stream.begin(isn + 1)
            stream.advance_to(end)
            if fin:
                stream.end, stream.plain = end, False
        if ended_by is not None:
            made.ends(ended_by, "fin")
        if closed_at is not None:
            made.closed, made.closed_at = True, closed_at
            for stream in made.streams:
                stream.end_here()
            return False
        talk = self._items.converse(connection)
        if recognised:
            talk._decide("kafka")
        return bool(recognised)


@cache
def _versions() -> bytes:
    """Return, by API key, one more than the highest version that a request may have; 0 if none."""
    newest = every_request().newest
    most = max(key for key in newest if key < _MOST_KEYS)
    highest = (newest.get(key, -1 - VERSIONS_TO_COME) for key in range(most + 1))
    return bytes(version + VERSIONS_TO_COME + 1 for version in highest)


@lru_cache(maxsize=256)
def _software(codec: Dialect, raw: bytes) -> ClientSoftware | None:
    return software_of(codec, raw)


@lru_cache(maxsize=4096)
def _address(raw: bytes) -> str:
    return str(IPv4Address(raw)) if len(raw) == 4 else f"[{IPv6Address(raw)}]"


def _ends(flow: bytes) -> tuple[str, str]:
    """Return both ends as text."""
    size = (len(flow) - 4) // 2
    ports = int.from_bytes(flow[-4:])
    return (
        f"{_address(flow[:size])}:{ports >> 16}",
        f"{_address(flow[size : 2 * size])}:{ports & 0xFFFF}",
    )
