"""Turn the bytes of one TCP connection, in both directions, into exchanges and anomalies.

The bytes show whether this is Kafka, TLS or something else and, if the capture lacks the beginning,
which end is the broker. Then frames are cut and paired. Every byte is accounted for, in a frame or
in an anomaly.

Ports are only hints, those of other connections that are Kafka as well (``consider``). The end with
one of ``ports`` is the broker; if neither end has one, the end
that opened the connection is the client, or else the end that sends requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kproto.dialects import Dialect
from kproto.framing import DEFAULT_MAX_SIZE
from wiredump.connection_state import ConversationState
from wiredump.frame_boundaries import Requests, Responses
from wiredump.frames import Finder, FrameCutter, Passed, Piece
from wiredump.model import Anomaly, Connection, Direction, Frame, Item, Place
from wiredump.other_protocols import tls_details
from wiredump.pairing import Pairing
from wiredump.prologues import Prologue
from wiredump.readers.model import REASSEMBLY_LIMITS
from wiredump.recognition import Protocol, Recognition
from wiredump.search import Found, Search
from wiredump.unread import Unread

__all__ = ["DEFAULT_PORTS", "Conversation", "Event", "gap_anomaly", "port_of"]

DEFAULT_PORTS: Final = frozenset({9092})

MOST_AWAITED: Final = 4 << 20
"""The largest frame to wait for while looking for the next beginning of a frame."""


def _ignore(size: int) -> None:
    """Count nothing."""


class Event(NamedTuple):
    """Bytes, or, if ``raw`` is None, a gap of ``missing`` bytes. ``waited_ns`` is how long the
    bytes waited for earlier bytes of the stream."""

    forward: bool
    raw: bytes | None
    missing: int
    reason: str
    timestamp_ns: int
    place: Place
    waited_ns: int = 0

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.raw) if self.raw is not None else 0


def port_of(end: str) -> int:
    """Return the port of ``host:port``; 0 without one."""
    return int(end.rpartition(":")[2] or 0)


def gap_anomaly(event: Event, connection: Connection, direction: Direction) -> Anomaly:
    """Return the anomaly for a gap: bytes that are missing or exceed a reassembly limit."""
    kind, reason = "gap", f"{event.missing} bytes missing: {event.reason}"
    if event.reason in REASSEMBLY_LIMITS:
        kind = "reassembly-limit"
        reason = f"{event.missing} bytes beyond the reassembly limit ({event.reason})"
    return Anomaly(
        kind, reason, event.place, event.timestamp_ns, connection, direction, missing=event.missing
    )


class Conversation:
    """One connection. ``forward`` is the direction from ``connection.client`` as first assumed: the
    end that opened the connection, or that sent the first captured packet. If that end turns out to
    be the broker, ``connection`` is corrected and ``flipped`` is set. ``overhead`` is called with
    the number of bytes in front of Kafka that were read as the header of a proxy."""

    def __init__(
        self,
        connection: Connection,
        codec: Dialect | None = None,
        *,
        ports: frozenset[int] = DEFAULT_PORTS,
        max_size: int = DEFAULT_MAX_SIZE,
        overhead: Callable[[int], object] = _ignore,
    ) -> None:
        self.connection = connection
        self._overhead = overhead
        self._pairing = Pairing(connection, codec)
        self._max_size = max_size
        self._most_awaited = min(MOST_AWAITED, max_size)
        self.flipped = False
        self._undecided: list[Event] | None = []
        self._known = self._use(ports)
        self._starts = connection.from_start
        """Whether what is held begins with the connection, or behind a proxy's header."""
        self._requests = Requests(self._pairing.is_request)
        self._recognition: Recognition | None = self._recognise_from(connection.from_start)
        self._other_reason: tuple[str, Unread] = "", "not-kafka"
        self._begins = {True: 0, False: 0}
        """Where what is held begins in each direction: behind a proxy's header, or behind bytes
        that were given up."""
        self._passed: dict[bool, Passed] = {}
        """The bytes that were given up before the connection was recognised, by direction."""
        self._cutters: dict[Direction, FrameCutter] = {}
        self._other: dict[Direction, Passed] = {}
        self._framed_ns: int | None = None
        """When the first frame began; None before it was found."""

    def _recognise_from(self, from_start: bool) -> Recognition:
        self._starts = from_start
        return Recognition(
            self._requests, self._most_awaited, forward=not self.flipped, from_start=from_start,
            known=self._known,
        )  # fmt: skip

    def _use(self, ports: frozenset[int]) -> bool:
        """Use the ports to find the broker. Returns whether they were decisive."""
        connection = self.connection
        client, broker = (port_of(end) in ports for end in (connection.client, connection.broker))
        if client and not broker and not connection.from_start:
            self._flip()
        return client != broker

    def _flip(self) -> None:
        connection = self.connection
        self.flipped = not self.flipped
        connection.client, connection.broker = connection.broker, connection.client
        if connection.tally is not None:
            connection.tally.flip()

    # -- what comes in -----------------------------------------------------------------------

    def data(
        self, forward: bool, raw: bytes, timestamp_ns: int, place: Place, waited_ns: int = 0
    ) -> list[Item]:
        """Take the next bytes of one direction, and how long they waited for earlier bytes."""
        return self._take(Event(forward, raw, 0, "", timestamp_ns, place, waited_ns))

    def gap(
        self, forward: bool, size: int, reason: str, timestamp_ns: int, place: Place
    ) -> list[Item]:
        """Take a gap: bytes of one direction that the capture lacks."""
        return self._take(Event(forward, None, size, reason, timestamp_ns, place))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._starts = False
        self._passed = {}
        self._framed_ns = 0 if state.pop("_framed", False) else None
        self.__dict__.update(state)

    def resume(self, forward: bool) -> list[Item]:
        """Read the frames of one direction whose bytes were collected elsewhere."""
        if self._undecided is not None:
            return self._look_again()
        direction = self._direction(forward)
        return self._cut_off(direction, self._cutters[direction].resume())

    def dump(self) -> ConversationState | None:
        """Return the state that others may continue: of Kafka, between two frames in both
        directions, and in no rare state. Otherwise None."""
        if self._undecided is not None or not self._cutters:
            return None
        request, response = (cutter.dump() for cutter in self._cutters.values())
        pairing = self._pairing.dump()
        if request is None or response is None or pairing is None:
            return None
        return ConversationState(self.flipped, request, response, pairing)

    def restore(self, state: ConversationState) -> None:
        """Continue a conversation that was read elsewhere, perhaps from its beginning."""
        if self._undecided is not None:
            if state.pairing.newest is None and not self._undecided:
                self._restore_undecided(state)
                return
            self._decide("kafka")
        self._cutters["request"].restore(state.request)
        self._cutters["response"].restore(state.response)
        self._pairing.restore(state.pairing)
        if state.pairing.newest is not None or state.pairing.answered is not None:
            self._found_frame(self.connection.opened_ns)

    def _restore_undecided(self, state: ConversationState) -> None:
        """Continue before the first request: it may still turn out to be none."""
        assert self._undecided is not None
        for frames, forward in ((state.request, not self.flipped), (state.response, self.flipped)):
            for raw, timestamp_ns, place in frames.pieces():
                event = Event(forward, raw, 0, "", timestamp_ns, place)
                self._undecided.append(event)
                self._look_at(event)

    def finish(self) -> list[Item]:
        """Read what is left, since no more bytes will come: nothing, unlike within TLS."""
        return []

    def conclude(self) -> list[Item]:
        """Decide, before the end, what the connection is and which end is the broker."""
        return self._decide(self._verdict()) if self._undecided is not None else []

    def _verdict(self) -> Protocol:
        return self._recognise(final=True) or "unknown"

    @property
    def is_doubtful(self) -> bool:
        """Whether the bytes, of which no more will come, do not show what this is, and the ports
        may: whether other connections to them are Kafka."""
        return bool(self._undecided) and not self._known and self._verdict() == "unknown"

    @property
    def held(self) -> int:
        """The bytes that are kept while it is not known what this is."""
        return sum(event.size for event in self._undecided or ())

    @property
    def server_ports(self) -> frozenset[int]:
        """The ports at which a broker may be: of a connection in the middle, those of both ends."""
        connection = self.connection
        ends = (connection.broker, connection.client)
        return frozenset(map(port_of, ends[:1] if connection.from_start else ends))

    def consider(self, ports: frozenset[int]) -> list[Item]:
        """Recognise a connection again, if it is not recognised yet, as one on these ports of
        brokers."""
        if self._undecided is None or self._known or not self.server_ports & ports:
            return []
        events, self._undecided = self._undecided, []
        self._known = self._use(ports)
        self._recognition = self._recognise_from(self._starts)
        return [item for event in events for item in self._take(event)]

    def end(self, why: str) -> list[Item]:
        """End the connection; ``why`` becomes part of the anomalies of incomplete frames."""
        items = self.conclude()
        for direction in self._cutters:
            items += self._sort(direction, self._cutters[direction].end())
        items += self._pairing.end(why)
        for direction, passed in self._other.items():
            kind = "tls" if passed.unread == "tls" else "not-kafka"
            items.append(self._anomaly(kind, direction, passed))
        self._other.clear()
        return items

    def _take(self, event: Event) -> list[Item]:
        if self._undecided is None:
            return self._dispatch(event)
        self._undecided.append(event)
        self._look_at(event)
        return self._look_again()

    def _look_again(self) -> list[Item]:
        protocol = self._recognise()
        if protocol is None:
            return []
        assert self._recognition is not None
        if protocol == "unknown" and self._recognition.goes_on:
            return self._pass_over()
        return self._decide(protocol)

    def _pass_over(self) -> list[Item]:
        """Give up what is held, and go on recognising the connection by what follows."""
        assert self._recognition is not None
        events, self._undecided = self._undecided or [], []
        self._recognition.pass_over()
        items: list[Item] = []
        for event in events:
            forward = event.forward
            begins = self._begins[forward]
            self._begins[forward] += event.size + event.missing
            if event.raw is None:
                items.append(gap_anomaly(event, self.connection, self._direction(forward)))
                continue
            before = self._passed.get(forward)
            if before is None:
                before = Passed(begins, 0, "", event.timestamp_ns, event.place, "not-kafka")
            self._passed[forward] = before._replace(size=before.size + event.size)
        return items

    def _look_at(self, event: Event) -> None:
        assert self._recognition is not None
        if event.raw is None:
            self._recognition.gap(event.forward)
        else:
            self._recognition.data(event.forward, event.raw)

    # -- what it is --------------------------------------------------------------------------

    def _recognise(self, *, final: bool = False) -> Protocol | None:
        """Return the protocol that the bytes so far show, or None if they are too few."""
        assert self._recognition is not None
        before = self._recognition.prologue(final=final)
        if before is not None:
            self._pass_prologue(before)
        found = self._recognition.protocol(final=final)
        if self._recognition.forward == self.flipped:
            self._flip()
        return found

    def _pass_prologue(self, found: Prologue) -> None:
        """Drop a proxy's header from the bytes that are held, and recognise what follows."""
        connection, forward = self.connection, not self.flipped
        connection.proxied_client = connection.proxied_client or found.client
        connection.proxied_broker = found.broker or connection.proxied_broker
        left = {forward: found.client_size, not forward: found.server_size}
        for each, size in left.items():
            self._begins[each] += size
            self._overhead(size)
        held, self._undecided = self._undecided or [], []
        self._recognition = self._recognise_from(from_start=True)
        for event in held:
            if event.raw is not None and left[event.forward]:
                size = min(left[event.forward], len(event.raw))
                left[event.forward] -= size
                event = event._replace(raw=event.raw[size:])
            if event.raw != b"":
                self._undecided.append(event)
                self._look_at(event)

    def _decide(self, protocol: Protocol) -> list[Item]:
        events, self._undecided = self._undecided or [], None
        recognition, self._recognition = self._recognition, None
        assert recognition is not None
        if protocol == "kafka":
            if recognition.has_token:
                self._pairing.expect_tokens()
            self._cut_frames(in_step=recognition.in_step)
        else:
            self.connection.protocol = protocol
            self._other_reason = _reason(protocol, *recognition.heads)
            if protocol == "unknown" and self._known and not self.connection.from_start:
                self._other_reason = "no frame begins in these bytes", "before-start"
        items = self._account_for_passed(protocol)
        for event in events:
            items += self._dispatch(event)
        return items

    def _account_for_passed(self, protocol: Protocol) -> list[Item]:
        """Name the bytes that were given up: of Kafka, they precede the first frame."""
        items: list[Item] = []
        for forward, passed in self._passed.items():
            direction = self._direction(forward)
            if protocol == "kafka":
                reason: tuple[str, Unread] = "no frame begins in these bytes", "before-start"
                passed = passed._replace(reason=reason[0], unread=reason[1])
                items.append(self._anomaly("unframed", direction, passed))
            else:
                reason = self._other_reason
                self._other[direction] = passed._replace(reason=reason[0], unread=reason[1])
        self._passed.clear()
        return items

    def _direction(self, forward: bool) -> Direction:
        return "request" if forward != self.flipped else "response"

    def _cut_frames(self, *, in_step: bool) -> None:
        finders: dict[Direction, Finder] = {
            "request": self._find_request, "response": self._find_response
        }  # fmt: skip
        for direction, find in finders.items():
            forward = (direction == "request") != self.flipped
            self._cutters[direction] = FrameCutter(
                direction, find, in_step=in_step, max_size=self._max_size,
                begins=self._begins[forward],
            )  # fmt: skip

    def _find_request(self, search: Search) -> Found:
        return search.find(self._requests, self._most_awaited)

    def _find_response(self, search: Search) -> Found:
        """Find a response. That needs the requests: if they have yet to be found, wait for them as
        long as for a frame."""
        looked = len(search.held) - search.start
        if not (search.final or self._cutters["request"].in_step or looked > self._most_awaited):
            return Found(None, search.start)
        responses = Responses(self._pairing.expected, self._pairing.is_response)
        return search.find(responses, self._most_awaited)

    # -- where it goes -----------------------------------------------------------------------

    def _dispatch(self, event: Event) -> list[Item]:
        direction = self._direction(event.forward)
        items: list[Item] = []
        if event.raw is None:
            items.append(gap_anomaly(event, self.connection, direction))
        cutter = self._cutters.get(direction)
        if cutter is None:
            if event.raw:
                self._count_other(direction, event)
            return items
        pieces = (
            cutter.gap(event.missing, event.timestamp_ns, event.place, event.reason)
            if event.raw is None
            else cutter.data(event.raw, event.timestamp_ns, event.place, event.waited_ns)
        )
        return items + self._cut_off(direction, pieces)

    def _cut_off(self, direction: Direction, pieces: list[Piece]) -> list[Item]:
        items = self._sort(direction, pieces)
        if pieces and self._pairing.bare_tokens:
            for each in self._cutters.values():
                each.least = 0
        return items

    def _count_other(self, direction: Direction, event: Event) -> None:
        assert event.raw is not None
        before = self._other.get(direction)
        if before is None:
            reason, unread = self._other_reason
            begins = self._begins[event.forward]
            before = Passed(begins, 0, reason, event.timestamp_ns, event.place, unread)
        self._other[direction] = before._replace(size=before.size + len(event.raw))

    def _sort(self, direction: Direction, pieces: list[Piece]) -> list[Item]:
        items: list[Item] = []
        for piece in pieces:
            if isinstance(piece, Frame):
                self._found_frame(piece.first_ns)
                pair = self._pairing.request if direction == "request" else self._pairing.response
                items += pair(piece)
                if piece.missing:
                    items.append(self._cut(piece))
            else:
                precedes = piece.unread == "malformed" or (
                    piece.unread == "before-start" and self.connection.from_start
                )
                if precedes and not self._has_frame_before(piece.timestamp_ns):
                    piece = piece._replace(unread="not-kafka")
                items.append(self._anomaly("unframed", direction, piece))
        return items

    def _found_frame(self, at_ns: int) -> None:
        if self._framed_ns is None or at_ns < self._framed_ns:
            self._framed_ns = at_ns

    def _has_frame_before(self, at_ns: int) -> bool:
        return self._framed_ns is not None and self._framed_ns <= at_ns

    def _cut(self, frame: Frame) -> Anomaly:
        reason = f"{frame.missing} of the frame's {frame.size} bytes are missing"
        return Anomaly(
            "cut", reason, frame.place, frame.first_ns, self.connection, frame.direction,
            frame.offset,
        )  # fmt: skip

    def _anomaly(self, kind: str, direction: Direction, passed: Passed) -> Anomaly:
        return Anomaly(
            kind, passed.reason, passed.place, passed.timestamp_ns, self.connection, direction,
            passed.offset, passed.size, unread=passed.unread,
        )  # fmt: skip


def _reason(protocol: Protocol, client: bytes, server: bytes) -> tuple[str, Unread]:
    """Return why the bytes of another protocol are not read."""
    if protocol == "unknown":
        return "this is not Kafka", "not-kafka"
    if protocol != "tls":
        return f"this is {protocol}, not Kafka", "not-kafka"
    details = tls_details(client, server)
    version, name = details.version or "TLS", details.server_name
    what = f"{version} for {name}" if name else version
    return f"{what}: nothing inside can be read without its keys", "tls"
