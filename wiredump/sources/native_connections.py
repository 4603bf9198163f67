"""Connections that the extension reads: they open and close there, and pass from Python to the
extension and back as a ``ConnectionState``.

A connection belongs to one of the two at a time. Python passes it when both directions are between
two frames, in order and in step, without holes or SASL tokens; the extension returns it at anything
unusual. A connection that opens in the extension has a ``Connection`` and a number at once; Python
creates its other objects when it has to read the connection.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from kproto.dialects import Dialect
from kproto.journal import ClientSoftware
from wiredump.connection_state import ConnectionState
from wiredump.conversation import Conversation
from wiredump.dialects import certain
from wiredump.frame_boundaries import VERSIONS_TO_COME, every_request
from wiredump.model import Connection, Place
from wiredump.open_requests import OpenRequests, open_requests
from wiredump.pairing import software_of
from wiredump.readers import FROM_CLIENT
from wiredump.readers.flows import endpoints_of
from wiredump.readers.tally import Tally
from wiredump.readers.tcp import TcpReassembler
from wiredump.sources.captures import CaptureItems

if TYPE_CHECKING:
    from wiredump.native._quick import Reading

__all__ = ["NativeConnections"]

_MOST_KEYS: Final = 1 << 10


class NativeConnections:
    """``to_native`` after each packet that Python read, ``to_python`` before the next one. ``has``
    is whether a flow may begin here. ``counted`` is called with a connection's id, and the
    requests, their bytes and those of responses that did not become items."""

    def __init__(
        self, reading: Reading, tcp: TcpReassembler, items: CaptureItems, codec: Dialect,
        counted: Callable[[int, int, int, int], None] | None,
        has: Callable[[bytes], bool] | None = None,
    ) -> None:  # fmt: skip
        self._reading = reading
        self._tcp = tcp
        self._items = items
        self._codec = certain(codec)
        self._counted = counted
        self._has = has
        reading.open_with(
            self._opened, self._closed, self._software, self._decodes, tcp.flows, _versions(),
            items.readable.table(),
        )  # fmt: skip

    def __len__(self) -> int:
        """The number of connections that the extension has."""
        return len(self._reading)

    # -- connections of the extension ---------------------------------------------------------

    def _opened(
        self, flow: bytes, time: int, capture: int, packet: int
    ) -> tuple[Connection, OpenRequests] | None:
        """Open a connection at the SYN of an unknown flow. Returns it and its requests; None if
        Python has to read it."""
        items = self._items
        if items.keyed or not (self._has is None or self._has(flow)):
            return None
        number = self._tcp.take_number()
        client, server = map(str, endpoints_of(flow))
        connection = Connection(
            number, client, server, time, from_start=True, place=Place(capture, packet),
            tally=Tally(syns=1),
        )  # fmt: skip
        items.connections[number] = connection
        return connection, open_requests(connection, self._codec.name)

    def _closed(
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
            self._counted(connection.id, requests, request_bytes, response_bytes)

    def _software(self, raw: bytes) -> ClientSoftware | None:
        """Return the client software that an ApiVersions request names."""
        return _software(self._codec, raw[:8] + bytes(4) + raw[12:])

    def _decodes(self, raw: bytes) -> bool:
        """Whether the first request shows by itself that this is Kafka, if it has no client id.
        Never: Python waits for its response."""
        return False

    # -- from one to the other ----------------------------------------------------------------

    def to_native(self, flow: bytes) -> None:
        """Pass a connection to the extension unless something about it is unusual."""
        tcp = self._tcp.dump(flow)
        if tcp is None:
            return
        number, _ = self._tcp.stream_of(flow)
        talk = self._items.conversation(number)
        if type(talk) is not Conversation:
            return  # TLS is always read in Python
        conversation = talk.dump()
        if conversation is not None:
            self._reading.restore(ConnectionState(talk.connection, tcp, conversation))

    def to_python(self, flow: bytes) -> None:
        """Return a connection to Python if the extension has it."""
        state = self._reading.dump(flow)
        if state is None:
            return
        connection, tcp, conversation, counts = state
        assert connection.tally is not None
        self._tcp.restore(connection.number, connection.tally, tcp)
        if tcp.opening is not None and tcp.opening.closed_ns is None:
            self._items.converse(connection)
        if conversation is None:
            return
        talk = self._items.conversation(connection.number)
        assert isinstance(talk, Conversation)
        talk.restore(conversation)
        if self._counted is not None:
            self._counted(connection.id, *counts)

    def all_to_python(self, *, closed: bool = True) -> None:
        """Return every connection to Python; with ``closed`` also those that have ended."""
        for flow in self._reading.flows(closed):
            self.to_python(flow)


@cache
def _versions() -> bytes:
    """Return, by API key, one more than the highest version that a request may have; 0 if none."""
    newest = every_request().newest
    most = max(key for key in newest if key < _MOST_KEYS)
    highest = (newest.get(key, -1 - VERSIONS_TO_COME) for key in range(most + 1))
    return bytes(version + VERSIONS_TO_COME + 1 for version in highest)


_software: Final = lru_cache(maxsize=256)(software_of)
