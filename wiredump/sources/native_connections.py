"""Connections that the extension reads: where they open and close, and how each passes from Python
to the extension and back.

A connection belongs to one of the two at a time. The extension has it while nothing about it is
unusual: both directions are in order and in step, without SASL tokens, and nothing waits for lost
bytes. Python passes it when both directions are between two frames, which takes no more than the
positions of both: requests without a response (``OpenRequests``) and round trips are objects that
both use. At anything unusual, the extension returns the positions, the current frames and the
newest bytes. A connection that opens in the extension has a ``Connection`` and a number from the
beginning; the other objects of Python are made when Python has to read it.

This module depends on the internals of ``readers.tcp``, ``readers.stream``, ``frames`` and
``pairing``, so that those need not know about it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache, lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from kproto.dialects import Dialect
from kproto.journal import ClientSoftware
from wiredump.conversation import Conversation
from wiredump.dialects import certain
from wiredump.frame_boundaries import VERSIONS_TO_COME, every_request
from wiredump.frames import FrameCutter, _Mark
from wiredump.model import Connection, Place
from wiredump.pairing import decodes, software_of
from wiredump.readers import FROM_CLIENT, FROM_SERVER
from wiredump.readers.flows import endpoints_of, reverse
from wiredump.readers.stream import Stream
from wiredump.readers.tally import Tally
from wiredump.readers.tcp import TcpReassembler, _Connection
from wiredump.sources.captures import CaptureItems

if TYPE_CHECKING:
    from wiredump.native._quick import Reading

__all__ = ["NativeConnections"]

_MOST_KEYS: Final = 1 << 10
_SYN: Final = 1
_CLOSED: Final = 3
"""Stages of a connection that opened in the extension."""
_marks: Final = Struct("=qqqqiI")


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
        self._decoding = codec
        self._counted = counted
        self._has = has
        reading.open_with(
            self._opened, self._closed, self._software, self._decodes, tcp._flows, _versions(),
            items.readable.table(),
        )  # fmt: skip

    def __len__(self) -> int:
        """The number of connections that the extension has."""
        return len(self._reading)

    # -- connections of the extension ---------------------------------------------------------

    def _opened(self, flow: bytes, time: int, capture: int, packet: int) -> Connection | None:
        """Open a connection at the SYN of an unknown flow. Returns None if Python has to read
        it."""
        items = self._items
        if items.keyed or not (self._has is None or self._has(flow)):
            return None
        number = self._tcp.take_number()
        client, server = map(str, endpoints_of(flow))
        connection = Connection(
            number, client, server, time, from_start=True, place=Place(capture, packet),
            tally=Tally(),
        )  # fmt: skip
        items.connections[number] = connection
        return connection

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

    def _decodes(self, raw: bytes) -> bool | None:
        """Whether the first request decodes, if it has no client id."""
        return _decodes(self._decoding, raw[:8] + bytes(4) + raw[12:])

    # -- from Python to the extension ---------------------------------------------------------

    def to_native(self, flow: bytes) -> None:
        """Pass a connection to the extension unless something about it is unusual."""
        connection, stream, other = self._tcp._flows[flow]
        if connection.closed or not (stream.plain and other.plain) or flow == reverse(flow):
            return
        talk = self._items._open[connection.number]
        if not isinstance(talk, Conversation) or not _is_usual(talk):
            return  # TLS is always read in Python
        client, server = connection.streams
        if connection.syn_ns is not None and server.isn is not None:
            return  # Python times the handshake, which the client's next segment ends
        forward, back = _cutters(talk)
        if forward._base != client.next or back._base != server.next:
            return  # within a frame
        self._reading.enter(
            connection.flow, talk.connection.id, talk.connection,
            int(talk.flipped), talk.connection.software,
            (client.next, client.next_sequence, client.tally),
            (server.next, server.next_sequence, server.tally),
            (connection.timestamp_ns, connection.capture, connection.offset),
            talk._pairing._open, talk._pairing._early,
        )  # fmt: skip

    # -- and back -----------------------------------------------------------------------------

    def to_python(self, flow: bytes) -> None:
        """Return a connection to Python if the extension has it."""
        state = self._reading.leave(flow)
        if state is None:
            return
        client_state, server_state, at, client_id, newest, answered, requests, counts, opened = (
            state
        )
        ends = client_state[0], server_state[0]
        if opened is not None and not self._adopt(opened, ends, at, requests):
            return
        connection = self._tcp._flows[flow][0]
        client, server = connection.streams
        talk = self._items._open[connection.number]
        assert isinstance(talk, Conversation)
        connection.timestamp_ns, connection.capture, connection.offset = at
        for stream, cutter, each in zip(
            (client, server), _cutters(talk), (client_state, server_state), strict=True
        ):
            _restore_stream(stream, cutter, each)
        if client_id is not None:
            talk.connection.client_id = client_id
        if newest is not None:
            talk.connection.protocol = "kafka"
            talk._pairing._newest = newest
            talk._pairing.is_confirmed = True
        if answered is not None:
            talk._pairing._answered = answered
        talk._framed |= newest is not None or answered is not None
        if self._counted is not None:
            self._counted(talk.connection.id, *counts)

    def all_to_python(self, *, over: bool = True) -> None:
        """Return every connection to Python; with ``over`` also those that have ended."""
        for flow in self._reading.flows(over):
            self.to_python(flow)

    def _adopt(
        self, opened: tuple[Any, ...], ends: tuple[int, int], at: tuple[int, int, int],
        requests: Any,
    ) -> bool:  # fmt: skip
        """Make Python's objects for a connection that opened in the extension. ``opened`` is the
        state of native/opening.c, ``ends`` has the positions of the streams, ``at`` the newest
        packet. Returns whether there are frames to restore, too."""
        flow, connection, stage, *isns, recognised, ended, by, closed_at, shaken, syn_ns = opened
        made = _Connection(connection.number, flow, "syn", connection.tally)
        made.syn_ns = None if shaken else syn_ns
        self._tcp.know(made)
        made.timestamp_ns, made.capture, made.offset = at
        for stream, isn, end in zip(made.streams, isns, ends, strict=True):
            if stream.direction == FROM_SERVER and stage == _SYN:
                continue
            stream.isn = isn
            stream.begin(isn + 1)
            stream.advance_to(end)
            if ended >> stream.direction & 1:
                stream.end, stream.plain = end, False
        if ended:
            made.ends(by, "fin")
        if stage == _CLOSED:
            made.closed, made.closed_at = True, closed_at
            for stream in made.streams:
                stream.end_here()
            return False
        talk = self._items.converse(connection)
        if not recognised:
            return False
        talk._decide("kafka")
        requests.make = talk._pairing._open.make  # type: ignore[attr-defined]
        talk._pairing._open = requests
        return True


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


@lru_cache(maxsize=256)
def _decodes(codec: Dialect, raw: bytes) -> bool | None:
    return decodes(codec.decode_request, raw)


def _is_usual(talk: Conversation) -> bool:
    """Whether it is Kafka, in step, and in no rare state."""
    if type(talk) is not Conversation or talk._undecided is not None or not talk._cutters:
        return False
    if talk._pairing._bare or talk._pairing._tokens:
        return False
    if talk._pairing.is_doubtful or not talk._pairing.is_confirmed:
        return False
    return all(
        cutter._in_step and cutter._cut is None and cutter._passing is None
        for cutter in talk._cutters.values()
    )


def _cutters(talk: Conversation) -> tuple[FrameCutter, FrameCutter]:
    """Return the cutters of the two directions, that of the readers' client first."""
    request, response = talk._cutters["request"], talk._cutters["response"]
    return (response, request) if talk.flipped else (request, response)


def _restore_stream(stream: Stream, cutter: FrameCutter, state: tuple[Any, ...]) -> None:
    before = stream.next
    stream.next, stream.next_sequence, cutter._base, held, marks, newest = state
    if stream.next > before and not (newest and newest[0][0] == before):
        stream.forget()  # there is a hole between these bytes and the newest ones
    for start, data in newest:
        stream._recent.add(stream.recent, start, data)
    cutter._held[:] = held
    cutter._marks = deque(
        _Mark(end, time, Place(capture, packet))
        for _, end, time, packet, capture, _ in _marks.iter_unpack(marks)
    )
