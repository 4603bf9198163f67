"""One TCP connection, from its bytes in both directions to exchanges and anomalies.

Finds out, by the bytes, whether this is Kafka at all, TLS or something else, and which end is the
broker where the capture does not have the beginning; then cuts frames and pairs them. Every byte
given is accounted for: in a frame, or in an anomaly.

Ports are hints and no more. The end that has one of ``ports`` is the broker; where neither has, the
end that opened the connection is the client, or else the one that sends requests.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kproto.dialects import Dialect
from kproto.framing import DEFAULT_MAX_SIZE
from wiredump.boundaries import (
    REQUEST_PREFIX,
    Found,
    Search,
    every_request,
    find_request,
    find_response,
)
from wiredump.frames import FrameCutter, Passed, Piece
from wiredump.model import Anomaly, Connection, Direction, Frame, Item, Place
from wiredump.pairing import Pairing

__all__ = ["DEFAULT_PORTS", "Conversation"]

DEFAULT_PORTS: Final = frozenset({9092})

MOST_UNDECIDED: Final = 1 << 20
"""Bytes kept of a connection while it is not known what it is."""

MOST_AWAITED: Final = 4 << 20
"""The largest frame that is waited for to find a connection's frames again."""

_OTHERS: Final = {
    "tls": "TLS: nothing inside can be read without its keys",
    "unknown": "this is not Kafka",
}


class _Event(NamedTuple):
    """Bytes, or (``raw`` None) a gap of ``missing`` bytes."""

    forward: bool
    raw: bytes | None
    missing: int
    reason: str
    timestamp_ns: int
    place: Place


class Conversation:
    """``forward`` is the direction from the connection's ``client`` as first taken: the end that
    opened it, or that sent the first packet captured. ``connection`` is corrected, and ``flipped``
    set, where that turns out to be the broker."""

    def __init__(
        self,
        connection: Connection,
        codec: Dialect | None = None,
        *,
        ports: frozenset[int] = DEFAULT_PORTS,
        max_size: int = DEFAULT_MAX_SIZE,
    ) -> None:
        self.connection = connection
        self._pairing = Pairing(connection, codec)
        self._max_size = max_size
        self._most_awaited = min(MOST_AWAITED, max_size)
        self.flipped = False
        self._undecided: list[_Event] | None = []
        self._seen = {True: bytearray(), False: bytearray()}
        self._known_broker = self._use(ports)
        self._cutters: dict[Direction, FrameCutter] = {}
        self._other: dict[Direction, Passed] = {}

    def _use(self, ports: frozenset[int]) -> bool:
        """Whether the ports say which end is the broker."""
        connection = self.connection
        client, broker = (
            int(end.rpartition(":")[2] or 0) in ports
            for end in (connection.client, connection.broker)
        )
        if client and not broker and not connection.from_start:
            self._flip()
        return client != broker

    def _flip(self) -> None:
        connection = self.connection
        self.flipped = not self.flipped
        connection.client, connection.broker = connection.broker, connection.client

    # -- what comes in -----------------------------------------------------------------------

    def data(self, forward: bool, raw: bytes, timestamp_ns: int, place: Place) -> list[Item]:
        """The next bytes of one direction."""
        return self._take(_Event(forward, raw, 0, "", timestamp_ns, place))

    def gap(
        self, forward: bool, size: int, reason: str, timestamp_ns: int, place: Place
    ) -> list[Item]:
        """Bytes of one direction that the capture does not have."""
        return self._take(_Event(forward, None, size, reason, timestamp_ns, place))

    def end(self, why: str) -> list[Item]:
        """No more will come; ``why`` goes into the anomalies of what is not complete."""
        items: list[Item] = []
        if self._undecided is not None:
            items += self._decide(self._recognise(final=True) or "unknown")
        for direction in self._cutters:
            items += self._sort(direction, self._cutters[direction].end())
        items += self._pairing.end(why)
        for direction, passed in self._other.items():
            items.append(self._anomaly(self.connection.protocol, direction, passed))
        self._other.clear()
        return items

    def _take(self, event: _Event) -> list[Item]:
        if self._undecided is None:
            return self._dispatch(event)
        self._undecided.append(event)
        if event.raw is not None:
            self._seen[event.forward] += event.raw
        protocol = self._recognise()
        return [] if protocol is None else self._decide(protocol)

    # -- what it is --------------------------------------------------------------------------

    def _recognise(self, *, final: bool = False) -> str | None:
        """The protocol by what was seen so far, None while that is too little."""
        if self.connection.from_start and not self._gap_first():
            return self._recognise_start(self._seen[not self.flipped])
        for forward, seen in self._seen.items():
            if _is_tls(seen):
                return "tls"
            if self._find_request(Search(seen, 0, final, _no_start)).at is not None:
                if forward == self.flipped and not self._known_broker:
                    self._flip()
                return "kafka"
        if self._known_broker:
            return "kafka"
        return "unknown" if max(map(len, self._seen.values())) > MOST_UNDECIDED else None

    def _gap_first(self) -> bool:
        assert self._undecided is not None
        client = (event for event in self._undecided if event.forward != self.flipped)
        first = next(client, None)
        return first is not None and first.raw is None

    def _recognise_start(self, seen: bytearray) -> str | None:
        """By the first bytes a client ever sent."""
        fits = every_request().fits(seen, 0, len(seen))
        if fits:
            return "kafka"
        if _is_tls(seen):
            return "tls"
        if fits is None and len(seen) < REQUEST_PREFIX:
            return None if not seen or seen[0] <= 7 else self._unlike_kafka()
        return None if fits is None else self._unlike_kafka()

    def _unlike_kafka(self) -> str:
        return "kafka" if self._known_broker else "unknown"

    def _decide(self, protocol: str) -> list[Item]:
        events, self._undecided = self._undecided or [], None
        from_start = self.connection.from_start
        self._seen = {}
        if protocol == "tls":
            self.connection.protocol = "tls"
        if protocol == "kafka":
            for direction, find in (
                ("request", self._find_request),
                ("response", self._find_response),
            ):
                self._cutters[direction] = FrameCutter(  # type: ignore[index]
                    direction,  # type: ignore[arg-type]
                    find,
                    in_step=from_start,
                    max_size=self._max_size,
                )
        items: list[Item] = []
        for event in events:
            items += self._dispatch(event)
        return items

    def _find_request(self, search: Search) -> Found:
        return find_request(search, self._pairing.is_request, self._most_awaited)

    def _find_response(self, search: Search) -> Found:
        """It takes the requests to tell a response: wait while they have yet to be found."""
        if not search.final and not self._cutters["request"].in_step:
            return Found(None, max(search.start, len(search.held) - self._most_awaited))
        pairing = self._pairing
        return find_response(search, pairing.open_ids, pairing.is_response, self._most_awaited)

    # -- where it goes -----------------------------------------------------------------------

    def _dispatch(self, event: _Event) -> list[Item]:
        direction: Direction = "request" if event.forward != self.flipped else "response"
        items: list[Item] = []
        if event.raw is None:
            items.append(self._gap_anomaly(direction, event))
        cutter = self._cutters.get(direction)
        if cutter is None:
            if event.raw:
                self._count_other(direction, event)
            return items
        pieces = (
            cutter.gap(event.missing, event.timestamp_ns, event.place, event.reason)
            if event.raw is None
            else cutter.data(event.raw, event.timestamp_ns, event.place)
        )
        return items + self._sort(direction, pieces)

    def _gap_anomaly(self, direction: Direction, event: _Event) -> Anomaly:
        reason = f"{event.missing} bytes missing: {event.reason}"
        return Anomaly(
            "gap", reason, event.place, event.timestamp_ns, self.connection, direction,
            missing=event.missing,
        )  # fmt: skip

    def _count_other(self, direction: Direction, event: _Event) -> None:
        assert event.raw is not None
        before = self._other.get(direction)
        if before is None:
            reason = _OTHERS[self.connection.protocol]
            before = Passed(0, 0, reason, event.timestamp_ns, event.place)
        self._other[direction] = before._replace(size=before.size + len(event.raw))

    def _sort(self, direction: Direction, pieces: list[Piece]) -> list[Item]:
        items: list[Item] = []
        for piece in pieces:
            if isinstance(piece, Frame):
                pair = self._pairing.request if direction == "request" else self._pairing.response
                items += pair(piece)
                if piece.missing:
                    items.append(self._cut(piece))
            else:
                items.append(self._anomaly("unframed", direction, piece))
        return items

    def _cut(self, frame: Frame) -> Anomaly:
        reason = f"{frame.missing} of the frame's {frame.size} bytes are missing"
        return Anomaly(
            "cut", reason, frame.place, frame.first_ns, self.connection, frame.direction,
            frame.offset,
        )  # fmt: skip

    def _anomaly(self, kind: str, direction: Direction, passed: Passed) -> Anomaly:
        kind = "not-kafka" if kind == "unknown" else kind
        return Anomaly(
            kind, passed.reason, passed.place, passed.timestamp_ns, self.connection, direction,
            passed.offset, passed.size,
        )  # fmt: skip


def _no_start(at: int) -> bool:
    return False


def _is_tls(seen: bytes | bytearray) -> bool:
    """A handshake, alert or data record of TLS 1.0 to 1.3, at the very beginning."""
    return len(seen) >= 5 and 0x14 <= seen[0] <= 0x17 and seen[1] == 3 and seen[2] <= 4
