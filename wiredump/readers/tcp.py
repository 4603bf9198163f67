"""Turn TCP segments into events: find the connection of a segment, and the beginning and end of
connections.

A connection is one incarnation of its two endpoints: a SYN with another initial sequence number on
the same ports begins a new one. So does, after a minute without packets, a segment that cannot
belong to the known one: one of its numbers is far behind or a GB ahead, or both are far ahead, or
it has other bytes than those that were sent there. The first packet captured of a connection may be
any of its packets; this module decides what follows from it. ``stream`` handles the bytes of one
direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from wiredump.readers.account import Account
from wiredump.readers.flows import endpoints_of, port_of, reverse
from wiredump.readers.ledger import OVERHEAD, Ledger, Limits
from wiredump.readers.model import (
    FROM_CLIENT,
    FROM_SERVER,
    At,
    Closed,
    CloseReason,
    EndedWith,
    Event,
    Opened,
    Segment,
)
from wiredump.readers.round_trips import ACKNOWLEDGED, COPY_NS, acknowledge, note, send
from wiredump.readers.stream import SEQUENCES, WINDOW, Stream, distance
from wiredump.readers.tally import Tally
from wiredump.readers.tcp_state import Opening, TcpState

__all__ = ["STALE_NS", "Limits", "TcpReassembler"]

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
ACK: Final = 0x10

_CHANGES: Final = FIN | SYN | RST
_HANDSHAKE: Final = 1 << 16
"""How far a SYN-ACK may acknowledge beyond the SYN: data that came with it (TCP Fast Open)."""
_SHORTEST_TIMER_NS: Final = 100_000_000
"""No sender repeats a SYN-ACK so soon, which often has no identification."""
_RESET_WINDOW: Final = 1 << 24
"""How far past the next expected byte a reset is accepted."""
STALE_NS: Final = 60_000_000_000
_STALE_DISTANCE: Final = 1 << 24
"""A segment for a closed connection that is this late, or this far off, belongs to another one."""
_JUMP: Final = 1 << 20
"""How far a number of a segment is off, at least, if it belongs to another connection."""


class _Connection:
    """One connection. The newest packet is kept as three numbers: a segment would keep the file's
    bytes in memory."""

    __slots__ = (
        "capture", "closed", "closed_at", "ended_by", "ended_with", "flow", "number", "offset",
        "reversed_flow", "start", "streams", "syn_ns", "tally", "timestamp_ns",
    )  # fmt: skip

    def __init__(
        self, number: int, flow: bytes, start: Literal["syn", "syn-ack", "middle"], tally: Tally
    ) -> None:
        self.number = number
        self.flow = flow  # from the client
        self.reversed_flow = reverse(flow)
        self.start = start
        self.streams: tuple[Stream, Stream]
        self.tally = tally
        self.syn_ns: int | None = None
        """The time of the last SYN, until the handshake is over."""
        self.closed = False
        self.closed_at = 0
        self.ended_by: int | None = None
        self.ended_with: EndedWith | None = None
        self.timestamp_ns = self.capture = self.offset = 0

    def saw(self, segment: Segment) -> None:
        self.timestamp_ns = segment.timestamp_ns
        self.capture = segment.capture
        self.offset = segment.offset

    def ends(self, direction: int, how: EndedWith) -> None:
        """Note the first FIN or reset."""
        if self.ended_by is None:
            self.ended_by, self.ended_with = direction, how


_Found = tuple[_Connection, Stream, Stream]


class TcpReassembler:
    """``feed`` segments in the order in which they were captured, then ``close``; both return
    events."""

    def __init__(self, account: Account | None = None, limits: Limits | None = None) -> None:
        self._account = account if account is not None else Account()
        self._ledger = Ledger(self._account, limits if limits is not None else Limits())
        self._alone = self._ledger.limits.alone
        self._unweighed = 0
        """A lower bound of the memory used since it was last measured."""
        # Flow of either direction -> the connection, that direction, the other direction.
        self._flows: dict[bytes, _Found] = {}
        self._connections: dict[int, _Connection] = {}
        self._count = 0
        self._closed_bytes = 0

    @property
    def limits(self) -> Limits:
        """The limits."""
        return self._ledger.limits

    @property
    def account(self) -> Account:
        """The current sums."""
        self._account.stream = self._closed_bytes + sum(
            stream.next
            for connection in self._connections.values()
            if not connection.closed
            for stream in connection.streams
        )
        return self._account

    @property
    def counts(self) -> Account:
        """The sums without the lengths of streams, which take time to count."""
        return self._account

    def stream_of(self, flow: bytes) -> tuple[int, Stream]:
        """Return the connection's number, and the direction, of a segment that was just fed."""
        connection, stream, _ = self._flows[flow]
        return connection.number, stream

    def feed(self, segment: Segment) -> list[Event]:
        """Return the events of a segment, which may concern other connections, too (they share
        memory)."""
        events: list[Event] = []
        self._ledger.events = events
        payload, flags = segment.payload, segment.flags
        self._account.payload += len(payload)
        if self._alone:
            self._unweighed += len(payload) + OVERHEAD
            if self._unweighed > self._ledger.limits.alone_total_bytes // 4:
                self._weigh(segment)
        elif self._ledger.waiting:
            self._look(segment)
        found = self._flows.get(segment.flow)
        if found is None or flags & _CHANGES or found[0].closed:
            self._special(found, segment)
            return events
        connection, stream, other = found
        time = segment.timestamp_ns
        if time - connection.timestamp_ns > STALE_NS and _is_another(stream, other, segment):
            self._begin_again(connection, segment)
            return events
        connection.timestamp_ns = time
        connection.capture = capture = segment.capture
        connection.offset = offset = segment.offset
        if not segment.window:
            stream.tally.zero_windows += not _is_again(stream, segment)
        if connection.syn_ns is not None:
            self._shake(connection, stream, other, segment)
        if flags & ACK:
            timing, number = other.tally.timing, segment.acknowledgement
            if timing is not None and timing[ACKNOWLEDGED] != number:
                acknowledge(timing, number, time)
            if number != other.next_sequence:
                self._acknowledge(connection, stream, other, segment)
        if segment.sequence == stream.next_sequence and stream.plain and not segment.missing:
            if payload:
                sequence, timing = segment.sequence, stream.tally.timing
                if timing is None:
                    timing = stream.tally.time_from(sequence)
                send(timing, sequence, len(payload), time)
                note(timing, sequence, len(payload), segment.identification, time)
                stream.advance(bytes(payload), time, capture, offset)
        elif payload or segment.missing:
            self._place(stream, segment)
        if stream.waiting or other.waiting or stream.end is not None:
            self._settle(connection, segment)
        return events

    def close(self) -> list[Event]:
        """Close the open connections at the end of the captures, in the order in which they were
        opened."""
        events: list[Event] = []
        self._ledger.events = events
        for _, connection in sorted(self._connections.items()):
            self._close(connection, "end", connection)
        self._connections.clear()
        self._flows.clear()
        return events

    def weigh(self, at: At) -> list[Event]:
        """Apply the memory limit of connections that are alone, including those that were kept
        elsewhere until now."""
        events: list[Event] = []
        self._ledger.events = events
        self._weigh(at)
        return events

    def pause(self) -> tuple[bool, int]:
        """Release the events returned so far, before the state is saved. Returns whether a
        connection is open, and when its last packet came or, if none is open, when the last
        connection was closed."""
        self._ledger.events = []
        known = self._connections.values()
        open_ = [each.timestamp_ns for each in known if not each.closed]
        return bool(open_), max(open_ or [each.closed_at for each in known], default=0)

    @property
    def known(self) -> frozenset[int]:
        """The numbers of connections that may have further events."""
        return frozenset(self._connections)

    # ---- segments ----------------------------------------------------------------------------

    def _acknowledge(
        self, connection: _Connection, stream: Stream, other: Stream, segment: Segment
    ) -> None:
        if other.started:
            other.acknowledge(segment.acknowledgement, segment.timestamp_ns)
        elif connection.start == "syn" and stream.direction == FROM_CLIENT:
            # The SYN-ACK was not captured; the client's first segment acknowledges it.
            other.begin(segment.acknowledgement)

    def _place(self, stream: Stream, segment: Segment) -> None:
        """Process a payload, a FIN, or both. A direction begins with its first byte, not with a
        bare acknowledgement, whose sequence number is one too low in a keep-alive."""
        sequence = (segment.sequence + bool(segment.flags & SYN)) % SEQUENCES
        if not stream.started:
            stream.begin(sequence)
        stream.place(segment, sequence, bool(segment.flags & FIN))
        if self._ledger.held > self._ledger.limits.total_bytes and not self._alone:
            self._relieve(segment)

    def _settle(self, connection: _Connection, segment: Segment) -> None:
        """Apply the effects of time, acknowledgements and FINs."""
        client, server = connection.streams
        client.settle(segment)
        server.settle(segment)
        if client.finished and server.finished:
            self._close(connection, "fin", segment)

    def _look(self, segment: Segment) -> None:
        """Check one stream with a hole, the one checked longest ago, since its own connection may
        be silent. Only one for each packet, so that many holes do not make packets expensive."""
        waiting, now = self._ledger.waiting, segment.timestamp_ns
        stream, looked_ns = next(iter(waiting.items()))
        if abs(now - looked_ns) >= self._ledger.limits.reorder_ns:
            del waiting[stream]
            waiting[stream] = now
            self._settle(self._connections[stream.connection], segment)

    def _special(self, found: _Found | None, segment: Segment) -> None:
        """Handle the first segment, SYN, FIN, RST, and segments after the end."""
        flags = segment.flags
        if found is not None and self._begins_anew(*found, segment):
            self._begin_again(found[0], segment)
            return
        connection, stream, other = found = found or self._open(segment)
        connection.saw(segment)
        if flags & SYN and not (flags & RST or connection.closed):
            self._count_syn(connection, stream, other, segment)
        self._count_flags(connection, stream, other, segment)
        if flags & SYN and not flags & RST:
            stream.isn = segment.sequence
            if not stream.started:
                stream.begin(segment.sequence + 1)
        if flags & ACK and not flags & RST and not connection.closed:
            if flags & SYN and not other.started:
                other.begin(segment.acknowledgement)
            else:
                if other.tally.timing is not None:
                    acknowledge(other.tally.timing, segment.acknowledgement, segment.timestamp_ns)
                self._acknowledge(connection, stream, other, segment)
        if connection.closed:
            self._place_after_close(connection, stream, segment)
        elif flags & RST:
            self._reset(connection, stream, segment)
        elif segment.payload or segment.missing or flags & FIN:
            self._place(stream, segment)
            if stream.end is not None:
                connection.ends(stream.direction, "fin")
            self._settle(connection, segment)

    def _begin_again(self, connection: _Connection, segment: Segment) -> None:
        """Open another connection on the ports of a known one."""
        self._close(connection, "reused", segment)
        del self._connections[connection.number]
        self._special(None, segment)

    def _count_flags(
        self, connection: _Connection, stream: Stream, other: Stream, segment: Segment
    ) -> None:
        flags = segment.flags
        if flags & RST:
            stream.tally.resets += not _is_again(stream, segment)
        elif not flags & SYN:
            if not segment.window and not flags & FIN:
                stream.tally.zero_windows += not _is_again(stream, segment)
            self._shake(connection, stream, other, segment)

    def _count_syn(
        self, connection: _Connection, stream: Stream, other: Stream, segment: Segment
    ) -> None:
        tally = connection.tally
        if segment.flags & ACK:
            tally.syn_acks += not _is_again(stream, segment, _SHORTEST_TIMER_NS)
            return
        is_new = not _is_again(stream, segment, COPY_NS)
        tally.syns += is_new
        if is_new and other.isn is None and stream.direction == FROM_CLIENT:
            connection.syn_ns = segment.timestamp_ns

    def _shake(
        self, connection: _Connection, stream: Stream, other: Stream, segment: Segment
    ) -> None:
        """End the handshake with the client's first segment after the SYN-ACK."""
        syn_ns = connection.syn_ns
        if syn_ns is None or stream.direction != FROM_CLIENT or other.isn is None:
            return
        if segment.flags & ACK:
            connection.syn_ns = None
            if segment.timestamp_ns >= syn_ns:
                connection.tally.handshake_ns = segment.timestamp_ns - syn_ns

    def _reset(self, connection: _Connection, stream: Stream, segment: Segment) -> None:
        size = len(segment.payload)
        ahead = distance(segment.sequence, stream.next_sequence) if stream.started else 0
        # One lower than expected: it answers a keep-alive, or has the handshake's own number.
        believed = -1 <= ahead <= _RESET_WINDOW or segment.sequence == stream.isn
        if size or not believed:
            reason = f"a reset {ahead} bytes off" if not believed else f"a reset with {size} bytes"
            self._ledger.anomaly("reset", reason, size, stream, None, segment)
        if believed:
            connection.ends(stream.direction, "reset")
            self._close(connection, "reset", segment)

    def _place_after_close(self, connection: _Connection, stream: Stream, segment: Segment) -> None:
        """Handle retransmissions after the end, and bytes that no receiver accepted."""
        size = len(segment.payload)
        if not size:
            return
        sequence = segment.sequence + bool(segment.flags & SYN)
        start, old = 0, 0
        if stream.started:
            start = stream.next + distance(sequence, stream.next_sequence)
            old = min(size, max(0, stream.next - start))
        delay_ns = connection.tally.copy_delay_ns
        is_again = _is_again(stream, segment)
        # What was sent last is seen at one place before the end, at the other behind it.
        is_late = segment.timestamp_ns - connection.closed_at <= COPY_NS + 2 * (delay_ns or 0)
        if old == size and delay_ns is not None and (is_again or is_late):
            stream.copied(start, segment, delay_ns)
        elif old:
            stream.place_old(start, bytes(segment.payload[:old]), segment)
        if size > old:
            reason = f"{size - old} bytes after the connection was closed"
            self._ledger.anomaly("after-close", reason, size - old, stream, start + old, segment)

    # ---- connections -------------------------------------------------------------------------

    def _begins_anew(
        self, connection: _Connection, stream: Stream, other: Stream, segment: Segment
    ) -> bool:
        """Whether a segment on known ports belongs to another connection than the known one. A
        connection that ended long ago need not be remembered, so then it does."""
        flags = segment.flags
        if connection.closed and segment.timestamp_ns - connection.closed_at > STALE_NS:
            return True
        if flags & RST:
            return False
        if not flags & SYN:
            if not connection.closed or not segment.payload:
                return False
            off = abs(distance(segment.sequence, stream.next_sequence)) if stream.started else 0
            return off > _STALE_DISTANCE
        if stream.isn is not None:
            return stream.isn != segment.sequence
        if (
            stream.started
        ):  # the middle, or only an acknowledgement, was seen: the SYN may still come
            return stream.first_sequence != (segment.sequence + 1) % SEQUENCES
        if connection.closed:
            return True
        if flags & ACK and other.isn is not None:
            return (segment.acknowledgement - other.isn - 1) % SEQUENCES > _HANDSHAKE
        return False

    def _open(self, segment: Segment) -> _Found:
        flow = segment.flow
        start: Literal["syn", "syn-ack", "middle"] = "middle"
        from_client = port_of(flow, 0) >= port_of(flow, 1)
        if segment.flags & SYN:
            from_client = not segment.flags & ACK
            start = "syn" if from_client else "syn-ack"
        elif port_of(flow, 0) == port_of(flow, 1):
            from_client = flow > reverse(flow)
        client_flow = flow if from_client else reverse(flow)
        connection = _Connection(self.take_number(), client_flow, start, Tally())
        self._know(connection)
        connection.saw(segment)
        endpoints = endpoints_of(connection.flow)
        self._ledger.events.append(
            Opened(
                connection.number, *endpoints, start,
                segment.timestamp_ns, segment.capture, segment.offset, connection.tally,
                segment.tunnel,
            )
        )  # fmt: skip
        if len(self._connections) > self._ledger.limits.connections and not self._alone:
            self._evict(connection)
        return self._flows[flow]

    def take_number(self) -> int:
        """Return the number of the next connection."""
        self._count += 1
        return self._count - 1

    def ended(self, size: int) -> None:
        """Count the streams of connections that others have read to their end."""
        self._closed_bytes += size

    @property
    def flows(self) -> Mapping[bytes, Any]:
        """The flows of all known connections, in either direction."""
        return self._flows

    def dump(self, flow: bytes) -> TcpState | None:
        """Return the state of a connection that others may continue; None if anything about it is
        unusual. Until ``restore``, its segments must not be fed."""
        connection, stream, other = self._flows[flow]
        if connection.closed or not (stream.plain and other.plain) or flow == reverse(flow):
            return None
        client, server = connection.streams
        if connection.syn_ns is not None and server.isn is not None:
            return None  # the client's next segment ends the handshake, which is timed here
        return TcpState(
            connection.flow, connection.timestamp_ns, connection.capture, connection.offset,
            client.dump(), server.dump(), None,
        )  # fmt: skip

    def restore(self, number: int, tally: Tally, state: TcpState) -> None:
        """Continue a connection that was read elsewhere, perhaps from its beginning."""
        opening = state.opening
        if opening is not None:
            self._know(_Connection(number, state.flow, "syn", tally))
        connection = self._connections[number]
        connection.timestamp_ns = state.timestamp_ns
        connection.capture, connection.offset = state.capture, state.offset
        if opening is not None:
            self._restore_opening(connection, opening, state)
            return
        for stream, each in zip(connection.streams, (state.client, state.server), strict=True):
            stream.restore(each)

    def _restore_opening(self, connection: _Connection, opening: Opening, state: TcpState) -> None:
        connection.syn_ns = opening.syn_ns
        if opening.server_isn is not None:
            connection.tally.syn_acks = max(1, connection.tally.syn_acks)
        isns = opening.client_isn, opening.server_isn
        for stream, isn, each in zip(
            connection.streams, isns, (state.client, state.server), strict=True
        ):
            if isn is None:
                continue
            stream.isn = isn
            flags = SYN | ACK if stream.direction == FROM_SERVER else SYN
            stream.control = flags, isn, *opening.captured[stream.direction]
            stream.begin(isn + 1)
            stream.restore(each)
            if opening.ended >> stream.direction & 1:
                stream.end, stream.plain = stream.next, False
        if opening.ended:
            connection.ends(opening.ended_by, "fin")
        if opening.closed_ns is not None:
            connection.closed, connection.closed_at = True, opening.closed_ns
            for stream in connection.streams:
                stream.end_here()

    def _know(self, connection: _Connection) -> None:
        """Add a connection."""
        tally = connection.tally
        client = Stream(connection.number, FROM_CLIENT, self._ledger, tally.client)
        server = Stream(connection.number, FROM_SERVER, self._ledger, tally.broker)
        connection.streams = (client, server)
        self._connections[connection.number] = connection
        self._flows[connection.flow] = (connection, client, server)
        self._flows[connection.reversed_flow] = (connection, server, client)

    def _close(self, connection: _Connection, reason: CloseReason, at: At) -> None:
        if connection.closed:
            return
        connection.closed = True
        connection.closed_at = at.timestamp_ns
        client, server = connection.streams
        client.close(at)
        server.close(at)
        connection.tally.close()
        self._closed_bytes += client.next + server.next
        self._ledger.events.append(
            Closed(
                connection.number, reason, client.next, server.next,
                at.timestamp_ns, at.capture, at.offset, connection.ended_by, connection.ended_with,
            )
        )  # fmt: skip

    def _evict(self, newest: _Connection) -> None:
        """Forget an eighth of the connections, those silent for longest, but never the newest."""
        known = self._connections
        by_silence = sorted(
            (connection for connection in known.values() if connection is not newest),
            key=lambda connection: (connection.timestamp_ns, connection.number),
        )
        for connection in by_silence[: max(1, len(known) // 8)]:
            self._close(connection, "evicted", connection)
            del known[connection.number]
            del self._flows[connection.flow]
            self._flows.pop(
                connection.reversed_flow, None
            )  # both flows are equal for a connection to itself

    def _relieve(self, segment: Segment) -> None:
        """Give up holes until no more waits than is allowed."""
        ledger = self._ledger
        while ledger.held > ledger.limits.total_bytes:
            next(iter(ledger.waiting)).give_up(segment, "limit")

    def _weigh(self, at: At) -> None:
        """Apply the memory limit of connections that are alone; called rarely enough to measure
        each."""
        self._unweighed = 0
        ledger, limit = self._ledger, self._ledger.limits.alone_total_bytes
        streams = [stream for each in self._connections.values() for stream in each.streams]
        if ledger.held + sum(stream.remembered for stream in streams) <= limit // 4 * 3:
            return
        for stream in streams:
            if not stream.closed:
                stream.forget()
        while ledger.held > limit // 2:
            next(iter(ledger.waiting)).give_up(at, "memory")


def _is_another(stream: Stream, other: Stream, segment: Segment) -> bool:
    """Whether a segment after a long silence shows by its numbers or its content that its ports
    were used again, although no SYN was captured."""
    if not stream.started:
        return False
    ahead = distance(segment.sequence, stream.next_sequence)
    acknowledged = 0
    if other.started:
        acknowledged = distance(segment.acknowledgement, other.next_sequence)
    if min(ahead, acknowledged) < -_JUMP or max(ahead, acknowledged) > WINDOW:
        return True
    if ahead > _JUMP:  # the capture may lack so many bytes of one direction, but not of both
        return not other.started or acknowledged > _JUMP
    size = len(segment.payload)
    if size < 2 or ahead >= 0:  # a keep-alive repeats one byte
        return False
    start = stream.next + ahead
    return start + size <= 0 or stream.differs(start, bytes(segment.payload))


def _is_again(stream: Stream, segment: Segment, within_ns: int | None = None) -> bool:
    """Whether a segment that is counted by its header is a copy of the last such one, on another
    interface. One without identification is if it comes soon enough and, without ``within_ns``, if
    data had copies about as late."""
    last, now = stream.control, segment.timestamp_ns
    stream.control = segment.flags & (_CHANGES | ACK), segment.sequence, segment.identification, now
    if last is None or last[:2] != stream.control[:2]:
        return False
    if last[2] and segment.identification:
        return last[2] == segment.identification
    if within_ns is None:
        copies = stream.tally.copies
        within_ns = COPY_NS + 2 * stream.tally.copied_ns // copies if copies else -1
    return abs(now - last[3]) <= within_ns
