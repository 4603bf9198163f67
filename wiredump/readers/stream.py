"""One direction of a connection: turns segments in any order into bytes in order. No handshakes.

Positions count from the direction's first byte and never wrap; a sequence number is taken as the
nearest to the next one expected. The rules:

- the first copy of a byte wins, whichever packet repeats it, and differences are reported;
- a hole stays open until it is filled, or until that has become impossible: the receiver
  acknowledged it (``Limits.reorder_ns`` ago), it was open for ``Limits.hole_ns``, too much waits
  behind it, or the connection ended. Then it becomes a Gap;
- if a packet was captured only in part, its other bytes are a hole that need not wait;
- an acknowledgement of data that was never seen counts as a hole only once later bytes show that
  the sender continued, or at the end: one wrong number must not cost a whole stream.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any, Final

from wiredump.readers.blocks import Block, Blocks, count_differing
from wiredump.readers.ledger import OVERHEAD, Ledger, Piece
from wiredump.readers.model import REASSEMBLY_LIMITS, AnomalyKind, At, Data, GapReason, Segment
from wiredump.readers.round_trips import acknowledge, extend, note, original, resend, restart, send
from wiredump.readers.tally import EndTally
from wiredump.readers.tcp_state import StreamState

__all__ = ["SEQUENCES", "WINDOW", "Stream", "distance"]

SEQUENCES: Final = 1 << 32
WINDOW: Final = 1 << 30
"""The largest window TCP can announce: no sender is further ahead of its receiver."""

_MASK: Final = SEQUENCES - 1
_GAPS_KEPT: Final = 256
"""The most gaps remembered: bytes that arrive for one are late, not retransmitted."""

_start: Final = itemgetter(0)
_end: Final = itemgetter(1)


def distance(sequence: int, expected: int) -> int:
    """Return how far ``sequence`` is past ``expected``, the shorter way round."""
    ahead = (sequence - expected) & _MASK
    return ahead if ahead < SEQUENCES >> 1 else ahead - SEQUENCES


class Stream:
    """``begin`` sets the first sequence number, then ``place`` takes every segment's payload.

    ``plain`` serves the fast path: nothing waits and the direction has not ended, so a segment with
    ``next_sequence`` is simply the next bytes.
    """

    __slots__ = (
        "_acknowledged", "_acknowledged_since", "_blocks", "_cost", "_cut", "_cut_end",
        "_delivered_ns", "_gaps", "_hole_at", "_hole_since", "_ledger", "_may_be_fin", "_recent",
        "_stray_end",
        "closed", "connection", "control", "direction", "end", "first_sequence", "isn", "next",
        "next_sequence", "plain", "recent", "started", "tally", "waiting",
    )  # fmt: skip

    def __init__(self, connection: int, direction: int, ledger: Ledger, tally: EndTally) -> None:
        self.connection = connection
        self.direction = direction
        self.tally = tally
        self.started = False
        self.closed = False
        self.plain = False
        self.isn: int | None = None
        self.control: tuple[int, int, int, int] | None = None
        """Of its last segment that is counted by its header: flags, sequence number,
        identification, time."""
        self.first_sequence = 0
        self.next = 0
        self.next_sequence = -1  # never equal to a segment's
        self.end: int | None = None
        self.waiting = False
        """Whether there are bytes behind a hole."""
        self.recent: list[Piece] = []
        self._ledger = ledger
        self._recent = ledger.recent_of_stream()
        self._blocks = Blocks()
        self._cut: list[tuple[int, int]] = []
        self._cut_end = 0
        """The furthest end of all that were ever cut."""
        self._cost = 0
        self._delivered_ns = 0
        """When a hole was last filled, while another one is open."""
        self._gaps: list[tuple[int, int, bool]] = []
        """With whether a limit made each."""
        self._hole_since = 0
        self._hole_at = 0
        self._acknowledged = 0
        self._may_be_fin = False
        """Whether the last acknowledgement was of one byte: of a FIN that was not captured."""
        self._acknowledged_since = 0
        self._stray_end = -1

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        self._may_be_fin, self.control = False, None  # states of version 4 lack them
        for name, value in state[1].items():
            if name in self.__slots__:
                setattr(self, name, value)
        if self.tally.timing is not None:
            extend(self.tally.timing)

    @property
    def finished(self) -> bool:
        """Whether the position of its FIN was reached."""
        return self.end is not None and self.next >= self.end

    def begin(self, first_sequence: int) -> None:
        """Set the sequence number of the first byte."""
        self.started = self.plain = True
        self.first_sequence = self.next_sequence = first_sequence & _MASK

    def advance(
        self, data: bytes, timestamp_ns: int, capture: int, offset: int, waited_ns: int = 0
    ) -> None:
        """Return the next bytes as Data."""
        ledger, start, size = self._ledger, self.next, len(data)
        ledger.account.data += size
        self._recent.add(self.recent, start, data)
        ledger.events.append(
            Data(
                self.connection, self.direction, start, data, timestamp_ns, capture, offset,
                waited_ns,
            )
        )  # fmt: skip
        self.next = start + size
        self.next_sequence = (self.next_sequence + size) & _MASK

    def dump(self) -> StreamState:
        """Return the state of a ``plain`` stream, without the bytes that it keeps."""
        return StreamState(self.next, self.next_sequence, self.tally, [])

    def restore(self, state: StreamState) -> None:
        """Continue behind bytes that were read elsewhere."""
        before = self.next
        self.next, self.next_sequence, _, recent = state
        if self.next > before and not (recent and recent[0][0] == before):
            self.forget()  # there is a hole between these bytes and the newest ones
        for start, data in recent:
            self._recent.add(self.recent, start, data)

    def acknowledge(self, sequence: int, now: int) -> None:
        """Note that the receiver has everything before ``sequence``."""
        ahead = (sequence - self.next_sequence) & _MASK
        if not 0 < ahead < WINDOW:
            return
        # Data that was acknowledged before it was captured is not measured.
        timing = self.tally.time_from(self.next_sequence, has_data=False)
        acknowledge(timing, sequence, now)
        if self._acknowledged <= self.next:
            self._acknowledged_since = now
        before = max(self._acknowledged, self.next)
        if self.next + ahead > before:
            self._acknowledged = self.next + ahead
            self._may_be_fin = self._acknowledged == before + 1

    # ---- segments ----------------------------------------------------------------------------

    def place(self, segment: Segment, sequence: int, fin: bool) -> None:
        """Process a payload that begins at ``sequence``, byte by byte."""
        payload = segment.payload
        size = len(payload)
        ahead = distance(sequence, self.next_sequence)
        if abs(ahead) > WINDOW and not self._resynchronise(segment, sequence, ahead):
            return
        start = self.next + distance(sequence, self.next_sequence)
        delay_ns = self._delay_of_copy(sequence, start, segment)
        if delay_ns is not None:
            self.copied(start, segment, delay_ns)
            return
        whole_end = start + size + segment.missing
        seen, repeated = self._seen, self.tally.retransmitted
        self._time(sequence, start, whole_end, seen, segment)
        old = min(size, max(0, self.next - start))
        if old:
            self.place_old(start, bytes(payload[:old]), segment)
        limit = self.end if self.end is not None else whole_end
        new_start, new_end = start + old, start + size
        if new_end > max(limit, new_start):
            past = new_end - max(limit, new_start)
            self._ledger.anomaly(
                "after-close", f"{past} bytes behind the FIN", past, self, new_end - past, segment
            )
            new_end -= past
        if new_end > new_start:
            self._place_new(new_start, bytes(payload[old : new_end - start]), segment)
        if segment.missing and self.end is None and whole_end > self.next:
            heappush(self._cut, (start + size, whole_end))
            self._cut_end = max(self._cut_end, whole_end)
            self._add_cost(OVERHEAD)
        if fin and self.end is None:
            self._place_fin(whole_end, segment)
        if size and start > seen:
            self.tally.holes += 1
        elif size and start < seen and self.tally.retransmitted == repeated:
            self.tally.out_of_order += not self._is_keep_alive(segment, start)
        if self._cut or self._blocks:
            self._drain(segment, segment.timestamp_ns)
        self.settle(segment)

    def _delay_of_copy(self, sequence: int, start: int, segment: Segment) -> int | None:
        """Return how long ago the segment was captured on another interface; None if it was
        not."""
        payload, timing = segment.payload, self.tally.timing
        size = len(payload) + segment.missing
        if timing is None or not size or start + size > self._seen:
            return None
        now, identification = segment.timestamp_ns, segment.identification
        found = original(timing, sequence, size, identification, now)
        if found is None:
            return None
        ago, is_same = found
        compared, differing = self._compare(start, bytes(payload))
        return ago if not differing and (is_same or compared == size) else None

    def copied(self, start: int, segment: Segment, delay_ns: int) -> None:
        """Count a segment that was captured on another interface before."""
        self.tally.count_copy(delay_ns)
        self._ledger.copied(self, start, len(segment.payload), segment)

    def _time(self, sequence: int, start: int, end: int, seen: int, segment: Segment) -> None:
        """Time a segment, unless bytes of it or behind it have been captured before."""
        now = segment.timestamp_ns
        if start < seen and self.tally.timing is not None:
            resend(self.tally.timing, sequence, end - start)
        elif start < end and start >= seen and self.end is None:
            send(self.tally.time_from(sequence), sequence, end - start, now)
        if start < end and self.tally.timing is not None:
            note(self.tally.timing, sequence, end - start, segment.identification, now)

    def _place_new(self, start: int, data: bytes, segment: Segment) -> None:
        if start == self.next and not self._blocks:
            self.advance(data, segment.timestamp_ns, segment.capture, segment.offset)
            return
        held, count = self._blocks.size, len(self._blocks)
        block = Block(start, data, segment.timestamp_ns, segment.capture, segment.offset)
        before = self._ledger.account.retransmitted
        for again in self._blocks.insert(block):
            self._ledger.repeated(self, again.start, again.length, again.differing, segment)
        self._count_repeated(before)
        added = self._blocks.size - held
        self._ledger.account.buffered += added
        self._add_cost(added + OVERHEAD * (len(self._blocks) - count))

    def place_old(self, start: int, data: bytes, segment: Segment) -> None:
        """Process bytes before the next one expected: retransmitted, late for their gap, or older
        than the first byte."""
        if self._is_keep_alive(segment, start):
            self._ledger.repeated(self, start, 1, None, segment)
            return
        before = self._ledger.account.retransmitted
        self._place_old(start, data, segment)
        self._count_repeated(before)

    def _is_keep_alive(self, segment: Segment, start: int) -> bool:
        """Whether a segment may be a keep-alive, which repeats the last byte with any value."""
        in_gap = bool(self._gaps) and self._gaps[-1][1] == self.next
        return len(segment.payload) == 1 and start == self.next - 1 and not in_gap

    def _count_repeated(self, before: int) -> None:
        again = self._ledger.account.retransmitted - before
        if again:
            self.tally.retransmitted += 1
            self.tally.retransmitted_bytes += again

    def _place_old(self, start: int, data: bytes, segment: Segment) -> None:
        end = start + len(data)
        position = start
        if position < 0:
            length = min(end, 0) - position
            reason = f"{length} bytes before the first one seen"
            self._ledger.anomaly("before-start", reason, length, self, position, segment)
            position += length
        gaps = self._gaps
        for number in range(bisect_right(gaps, position, key=_end), len(gaps)):
            gap_start, gap_end, limited = gaps[number]
            if gap_start >= end:
                break
            if gap_start > position:
                self._repeated(position, data[position - start : gap_start - start], segment)
                position = gap_start
            until = min(gap_end, end)
            reason = f"{until - position} bytes of a gap that was already reported"
            kind: AnomalyKind = "late"
            if limited:
                reason = f"{until - position} bytes beyond the reassembly limit, captured later"
                kind = "reassembly-limit"
            self._ledger.anomaly(kind, reason, until - position, self, position, segment)
            position = until
        if position < end:
            self._repeated(position, data[position - start :], segment)

    def differs(self, start: int, data: bytes) -> bool:
        """Whether other bytes were captured there, as far as they are still held."""
        return bool(self._compare(start, data)[1])

    def _repeated(self, start: int, data: bytes, segment: Segment) -> None:
        """Compare with the data returned earlier, as far as it is still held."""
        compared, differing = self._compare(start, data)
        known = differing if compared == len(data) or differing else None
        self._ledger.repeated(self, start, len(data), known, segment)

    def _compare(self, start: int, data: bytes) -> tuple[int, int]:
        """Return how many bytes are still held, and how many of them differ."""
        end, compared, differing = start + len(data), 0, 0
        recent = self.recent
        for number in range(bisect_left(recent, end, key=_start) - 1, -1, -1):
            piece_start, piece = recent[number]
            piece_end = piece_start + len(piece)
            if piece_end <= start:
                break
            low, high = max(start, piece_start), min(end, piece_end)
            compared += high - low
            first = piece[low - piece_start : high - piece_start]
            differing += count_differing(first, data[low - start : high - start])
        return compared, differing

    @property
    def _seen(self) -> int:
        """The end of the bytes that are known to have been sent."""
        return max(self.next, self._blocks.end or 0, self._cut_end)

    def _place_fin(self, end: int, segment: Segment) -> None:
        if end < self._seen:
            reason = f"a FIN at {end}, before bytes that were sent"
            self._ledger.anomaly("out-of-window", reason, 0, self, end, segment)
        else:
            self.end = end

    def _resynchronise(self, segment: Segment, sequence: int, ahead: int) -> bool:
        """Handle a segment that is too far off to belong to this stream: it is ignored until a
        second one continues it."""
        size = len(segment.payload)
        believed = sequence == self._stray_end
        self._stray_end = (sequence + size + segment.missing) & _MASK
        if not size + segment.missing:
            return False
        if not believed or self.end is not None:
            reason = f"{abs(ahead)} bytes {'ahead of' if ahead > 0 else 'behind'} what is expected"
            self._ledger.anomaly("out-of-window", reason, size, self, None, segment)
            return False
        self.give_up(segment)
        if self.tally.timing is not None:
            restart(self.tally.timing, sequence)
        self._gap((sequence - self.next_sequence) & _MASK, "resync", segment)
        self._gaps.clear()
        self.recent.clear()
        return True

    # ---- holes -------------------------------------------------------------------------------

    def _drain(self, at: At, filled_ns: int = 0) -> None:
        """Return the data that no hole precedes any more. TCP could deliver it when the hole was
        filled (``filled_ns``). A hole that was given up was filled by a packet that was not
        captured, at an unknown time; the data behind it counts as delivered when it was
        captured."""
        while True:
            begin = self._blocks.begin
            if begin == self.next:
                block = self._blocks.pop_first()
                self._ledger.account.buffered -= len(block.data)
                self._add_cost(-len(block.data) - OVERHEAD)
                self._delivered_ns = max(self._delivered_ns, filled_ns, block.timestamp_ns)
                self.advance(
                    block.data, block.timestamp_ns, block.capture, block.offset,
                    self._delivered_ns - block.timestamp_ns,
                )  # fmt: skip
                continue
            while self._cut and self._cut[0][1] <= self.next:
                heappop(self._cut)
                self._add_cost(-OVERHEAD)
            if not self._cut or self._cut[0][0] > self.next:
                return
            until = self._cut[0][1]
            if begin is not None:
                until = min(until, begin)
            self._gap(until - self.next, "snaplen", at)

    def _gap(self, length: int, reason: GapReason, at: At) -> None:
        self._ledger.gap(self, length, reason, at)
        start, self.next = self.next, self.next + length
        self.next_sequence = (self.next_sequence + length) & _MASK
        limited = reason in REASSEMBLY_LIMITS
        if self._gaps and self._gaps[-1][1:] == (start, limited):
            self._gaps[-1] = (self._gaps[-1][0], self.next, limited)
        else:
            self._gaps.append((start, self.next, limited))
            del self._gaps[:-_GAPS_KEPT]

    def _first_known(self) -> int | None:
        """Return where the hole at ``next`` ends."""
        begin = self._blocks.begin
        if not self._cut:
            return begin
        cut = self._cut[0][0]
        return min(cut, begin) if begin is not None else cut

    def settle(self, at: At) -> None:
        """Turn holes that cannot be filled any more into gaps, and note whether one is still
        open."""
        limits, now = self._ledger.limits, at.timestamp_ns
        while (known := self._first_known()) is not None:
            if not self.waiting:
                self._ledger.waiting[self] = now
            if not self.waiting or self._hole_at != self.next:
                self.waiting = True
                self._hole_since, self._hole_at = now, self.next
            reason: GapReason = "lost"
            if now - self._hole_since >= limits.hole_ns:
                until = known
            elif self._cost > limits.flow_bytes:
                until, reason = known, "limit"
            elif (
                self._acknowledged > self.next
                and now - self._acknowledged_since >= limits.reorder_ns
            ):
                until = min(known, self._acknowledged)
            else:
                break
            self._gap(until - self.next, reason, at)
            self._drain(at)
        self._note_state()

    def give_up(self, at: At, reason: GapReason = "lost") -> None:
        """Turn all holes into gaps, and return all data that waits."""
        while (known := self._first_known()) is not None:
            self._gap(known - self.next, reason, at)
            self._drain(at)
        self._note_state()

    @property
    def remembered(self) -> int:
        """The memory of the data that is kept for comparison, if the stream has its own."""
        return self._recent.cost if self._recent is not self._ledger.recent else 0

    def forget(self) -> None:
        """Drop that data."""
        self.recent, self._recent = [], self._ledger.recent_of_stream()

    def close(self, at: At) -> None:
        """End the direction. Bytes that wait, that were acknowledged, or that are before the FIN,
        are known to have been sent. (An acknowledgement one past the last byte is that of a
        FIN.)"""
        if self.closed:
            return
        self.give_up(at)
        sent = self.end if self.end is not None else self._acknowledged - self._may_be_fin
        if self.started and (sent > self.next + 1 or (self.end is not None and sent > self.next)):
            self._gap(sent - self.next, "lost", at)
        self.end_here()

    def end_here(self) -> None:
        """Nothing follows."""
        self.closed, self.plain = True, False
        if self._ledger.limits.alone:
            # There is no limit for all of them together, so those that ended keep nothing.
            self.recent, self._recent = [], self._ledger.recent

    def _note_state(self) -> None:
        """Nothing waits, or something does: for the fast path and the ledger."""
        if self._first_known() is None:
            self._delivered_ns = 0
            if self.waiting:
                self.waiting = False
                del self._ledger.waiting[self]
        self.plain = self.started and not (self.closed or self.waiting or self.end is not None)

    def _add_cost(self, cost: int) -> None:
        self._cost += cost
        self._ledger.held += cost
