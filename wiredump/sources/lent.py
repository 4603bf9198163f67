"""Lend connections to the extension and take them back: convert their state from Python's objects,
and into them again.

This module depends on the internals of ``readers.tcp``, ``readers.stream``, ``frames`` and
``pairing``, so that those need not know about it. A connection is lent while nothing about it is
unusual: both directions are in order and in step, without SASL tokens, and nothing waits for lost
bytes. Afterwards it is as if Python had read every packet.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from wiredump.conversation import Conversation
from wiredump.frames import FrameCutter, _Mark
from wiredump.model import Connection, Exchange, Frame, Place
from wiredump.pairing import Pairing
from wiredump.readers.ledger import OVERHEAD
from wiredump.readers.stream import Stream
from wiredump.readers.tcp import TcpReassembler
from wiredump.sources.captures import CaptureItems
from wiredump.sources.lives import Counted, Lives

if TYPE_CHECKING:
    from wiredump.native._quick import Reading, Waiting

__all__ = ["Lent", "Unkept"]

_LONGEST_WAIT: Final = 64
_WORTH_IT: Final = 1 << 16
"""Lending pays if this many bytes are read before the connection is taken back,"""
_WORTH_A_REQUEST: Final = 256
"""and this many more for each request that waits."""


class Unkept:
    """Stands for the bytes of a frame that nobody needs: only their number is kept."""

    __slots__ = ("_size",)

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size


class _Untouched:
    """Stands for the ``Pairing`` of a connection that was taken back, until it is used: thousands
    of requests may wait, and the next packet is often a mere retransmission."""

    def __init__(
        self, talk: Conversation, pairing: Pairing, waiting: Waiting,
        restore: Callable[[Connection, Pairing, list[Any]], None],
    ) -> None:  # fmt: skip
        self.pairing = pairing
        self.waiting = waiting
        self._talk = talk
        self._restore = restore

    def __getattr__(self, name: str) -> Any:
        self.restore()
        return getattr(self.pairing, name)

    def restore(self) -> None:
        """Put the pairing back, with all requests that wait."""
        self._talk._pairing = self.pairing
        self._restore(self._talk.connection, self.pairing, self.waiting.all())


class Lent:
    """``lend`` after each packet that Python read, ``back`` before the next one."""

    def __init__(
        self, reading: Reading, make_waiting: Callable[[list[Any]], Waiting], tcp: TcpReassembler,
        items: CaptureItems, dialect: str, counted: Counted | None, lives: Lives,
    ) -> None:  # fmt: skip
        self._reading = reading
        self._make_waiting = make_waiting
        self._tcp = tcp
        self._items = items
        self._dialect = dialect
        self._counted = counted
        self._lives = lives
        # By number: how long a connection is not lent again, and how often in a row lending did not
        # pay; and the positions of its streams when it was lent.
        self._waits: dict[int, tuple[int, int]] = {}
        self._lent_at: dict[int, int] = {}

    def lend(self, flow: bytes) -> None:
        """Lend a connection unless something about it is unusual."""
        connection, stream, other = self._tcp._flows[flow]
        number = connection.number
        if connection.closed:
            self._waits.pop(number, None)
            return
        if not (stream.plain and other.plain) or connection.flow == connection.reversed_flow:
            return
        talk = self._items._open[number]
        if not isinstance(talk, Conversation) or not _is_usual(talk):
            return  # TLS is always read in Python
        wait, length = self._waits.get(number, (0, 0))
        if wait:
            self._waits[number] = (wait - 1, length)
            return
        client, server = connection.streams
        if connection.syn_ns is not None and server.isn is not None:
            return  # Python times the handshake, which the client's next segment ends
        if not (_is_kept_simply(client) and _is_kept_simply(server)):
            return
        forward, back = _cutters(talk)
        if not (_is_framed(client, forward) and _is_framed(server, back)):
            return
        pairing = talk._pairing
        waiting: Waiting
        if isinstance(pairing, _Untouched):
            waiting, pairing = pairing.waiting, pairing.pairing
            talk._pairing = pairing
        else:
            waiting = self._make_waiting([_waiting(each) for each in pairing._open.values()])
        self._reading.enter(
            connection.flow, connection.reversed_flow, talk.connection.id, talk.connection,
            int(talk.flipped), talk.connection.software, _stream_state(client, forward),
            _stream_state(server, back),
            (connection.timestamp_ns, connection.capture, connection.offset),
            waiting, list(pairing._early),
        )  # fmt: skip
        self._lent_at[number] = client.next + server.next

    def back(self, flow: bytes) -> None:
        """Take a connection back if it is lent."""
        state = self._reading.leave(flow)
        if state is None:
            return
        client_state, server_state, at, client_id, newest, answered, waiting, counts, life = state
        ends = client_state[0], server_state[0]
        if life is not None and not self._lives.adopt(life, ends, at):
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
        for name, value in (("_newest", newest), ("_answered", answered)):
            if value is not None and hasattr(talk._pairing, name):
                setattr(talk._pairing, name, value)
        talk._pairing = cast(Pairing, _Untouched(talk, talk._pairing, waiting, self._restore))
        if self._counted is not None:
            self._counted.counted(talk.connection.id, *counts)
        self._note_worth(connection.number, client.next + server.next, len(waiting))

    def __len__(self) -> int:
        """The number of connections lent."""
        return len(self._reading)

    def all_back(self, *, over: bool = True) -> None:
        """Take every connection back; with ``over`` also those that have ended."""
        for flow in self._reading.flows(over):
            self.back(flow)

    def all_restored(self) -> None:
        """Take everything back, as Python objects that can be stored."""
        self.all_back()
        for talk in self._items._open.values():
            if isinstance(talk, Conversation) and isinstance(talk._pairing, _Untouched):
                talk._pairing.restore()

    def _note_worth(self, number: int, at: int, waiting: int) -> None:
        """Lend a connection less often if it was taken back too soon: lending copies its state."""
        since = self._lent_at.pop(number, None)
        if since is None:  # it was not lent
            return
        if at - since >= _WORTH_IT + waiting * _WORTH_A_REQUEST:
            self._waits.pop(number, None)
            return
        _, length = self._waits.get(number, (0, 0))
        longest = _LONGEST_WAIT and _LONGEST_WAIT + waiting // 4
        self._waits[number] = (length, min(2 * length + 1, longest))

    def _restore(self, connection: Connection, pairing: Pairing, waiting: list[Any]) -> None:
        pairing._open = OrderedDict()
        pairing._by_id = {}
        pairing._open_bytes = 0
        for each in waiting:
            asked = each if isinstance(each, Exchange) else self._made_up(connection, *each)
            assert asked.request is not None
            pairing._number += 1
            pairing._open[pairing._number] = asked
            pairing._by_id.setdefault(asked.correlation_id, deque()).append(pairing._number)
            pairing._open_bytes += len(asked.request.raw)

    def _made_up(
        self, connection: Connection, offset: int, size: int, first_ns: int, last_ns: int,
        capture: int, packet: int, key: int, version: int, correlation_id: int,
        client_id: str | None, raw: bytes | None,
    ) -> Exchange:  # fmt: skip
        """Make the exchange of a request that has no object yet, and perhaps no bytes."""
        if raw is None:
            raw = cast(bytes, Unkept(size))
        place = Place(capture, packet)
        frame = Frame("request", offset, size, raw, 0, first_ns, last_ns, place)
        return Exchange(
            connection, request=frame, api_key=key, api_version=version,
            correlation_id=correlation_id, client_id=client_id, software=connection.software,
            dialect=self._dialect,
        )  # fmt: skip


def _is_usual(talk: Conversation) -> bool:
    """Whether it is Kafka, in step, and in no rare state."""
    if type(talk) is not Conversation or talk._undecided is not None or not talk._cutters:
        return False
    pairing = talk._pairing
    if not isinstance(pairing, _Untouched) and (pairing._bare or pairing._tokens):
        return False
    return all(
        cutter._in_step and cutter._cut is None and cutter._passing is None
        for cutter in talk._cutters.values()
    )


def _is_kept_simply(stream: Stream) -> bool:
    """Whether the bytes kept for comparison are accounted for: not after they were dropped."""
    return len(stream._recent._queue) == len(stream.recent)


def _is_framed(stream: Stream, cutter: FrameCutter) -> bool:
    """Whether the stream's bytes are those that are cut into frames, and no byte of the current
    frame had to wait, which the extension does not support."""
    waited = any(mark.waited_ns for mark in cutter._marks if mark.end > cutter._base)
    return cutter._base + len(cutter._held) == stream.next and not waited


def _cutters(talk: Conversation) -> tuple[FrameCutter, FrameCutter]:
    """Return the cutters of the two directions, that of the readers' client first."""
    request, response = talk._cutters["request"], talk._cutters["response"]
    return (response, request) if talk.flipped else (request, response)


def _stream_state(stream: Stream, cutter: FrameCutter) -> tuple[Any, ...]:
    marks = [(mark.end, mark.timestamp_ns, *mark.place) for mark in cutter._marks]
    return (
        stream.next, stream.next_sequence, cutter._base, bytes(cutter._held), marks,
        list(stream.recent), stream.tally,
    )  # fmt: skip


def _restore_stream(stream: Stream, cutter: FrameCutter, state: tuple[Any, ...]) -> None:
    stream.next, stream.next_sequence, cutter._base, held, marks, recent = state
    stream.recent[:] = recent
    stream._recent._queue = deque((stream.recent, piece) for piece in stream.recent)
    stream._recent._cost = sum(len(data) + OVERHEAD for _, data in stream.recent)
    cutter._held[:] = held
    cutter._marks = deque(
        _Mark(end, time, Place(capture, packet)) for end, time, capture, packet in marks
    )


def _waiting(asked: Exchange) -> tuple[Any, ...]:
    frame = asked.request
    assert frame is not None
    return (
        asked, frame.offset, frame.size, frame.missing, frame.first_ns, frame.last_ns,
        frame.place.capture, frame.place.offset, asked.api_key, asked.api_version,
        asked.correlation_id, asked.client_id, len(frame.raw), frame.raw,
    )  # fmt: skip
