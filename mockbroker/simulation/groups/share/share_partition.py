"""One partition as a share group sees it: the records that are in flight, from ``start_offset`` on.

The leader of the partition keeps it. Records that were not fetched yet are not in flight.
Boundaries of batches are Kafka's: a batch keeps one state until a request concerns a part of it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.share.deliveries import (
    Acknowledgement,
    AckType,
    Delivery,
    DeliveryRules,
    RecordState,
    StoreError,
    Throttle,
)
from mockbroker.simulation.groups.share.share_settings import ShareTimes
from mockbroker.simulation.groups.share.stored_batches import (
    STATE_IDS,
    StateBatch,
    WrittenState,
)
from mockbroker.simulation.log.batches.batch_header import BatchHeader
from mockbroker.simulation.releases.rows import apply_first
from mockbroker.simulation.state.cluster_parts import TopicPartition
from mockbroker.simulation.state.timers import Timers

__all__ = [
    "UNINITIALIZED",
    "AckBatch",
    "AcquiredRange",
    "InFlightBatch",
    "SharePartition",
    "StartedAcknowledgement",
]

UNINITIALIZED = -1
"""A start offset that the first fetch decides on."""


class AcquiredRange(NamedTuple):
    """Records that a fetch has acquired, by their offsets, and how often they were delivered."""

    first: int
    last: int
    times: int


class AckBatch(NamedTuple):
    """Acknowledgements of a range of offsets: of one type, or a type for each."""

    first: int
    last: int
    types: tuple[int, ...]


class StartedAcknowledgement(msgspec.Struct, eq=False):
    """Acknowledgements of one partition that were checked: all of them are right, or, with an
    error, none counts. ``store`` makes them count."""

    code: ErrorCode = ErrorCode.NONE
    text: str | None = None
    store: Callable[[], StoreError | None] = lambda: None

    def complete(self) -> None:
        """Let the acknowledgements count, unless they cannot be stored."""
        error = self.store()
        if error is not None:
            self.code, self.text = error


class _AckError(Exception):
    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class InFlightBatch:
    """Records that were acquired together: one state for all of them, or one for each."""

    __slots__ = ("each", "first", "last", "whole")

    def __init__(self, first: int, last: int, whole: Delivery) -> None:
        self.first = first
        self.last = last
        self.whole: Delivery | None = whole
        self.each: dict[int, Delivery] = {}

    def deliveries(self) -> Iterator[tuple[int, int, Delivery]]:
        """Yield first and last offset of each state."""
        if self.whole is not None:
            yield self.first, self.last, self.whole
        for offset, delivery in self.each.items():
            yield offset, offset, delivery

    def at(self, offset: int) -> Delivery:
        return self.whole if self.whole is not None else self.each[offset]


class SharePartition:
    """``times`` returns the configs of the group. ``start_offset`` is -1 until the first fetch.
    ``state_epoch`` is the epoch of the group at which the state was made. ``storing`` is called
    before a change is stored, and returns the error of the share coordinator; ``stored`` gets what
    is stored then."""

    def __init__(
        self,
        group_id: str,
        tp: TopicPartition,
        timers: Timers,
        rules: DeliveryRules,
        times: Callable[[], ShareTimes],
        start_offset: int = UNINITIALIZED,
        state_epoch: int = 0,
        storing: Callable[[SharePartition], StoreError | None] = lambda share: None,
        stored: Callable[[WrittenState], object] = lambda state: None,
    ) -> None:
        self.state_epoch = state_epoch
        self._storing = storing
        self._stored = stored
        self.group_id = group_id
        self.tp = tp
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.leader_epoch = 0
        self.stored_start = start_offset
        """The start offset as it was stored last, which DescribeShareGroupOffsets shows."""
        self.stored_complete = UNINITIALIZED if start_offset == UNINITIALIZED else 0
        """How many records behind it were acknowledged or archived then."""
        self._timers = timers
        self._rules = rules
        self._times = times
        self._batches: list[InFlightBatch] = []
        self._looks_back = False
        """Whether a record in flight may be available."""
        self._watchers: dict[object, Callable[[], None]] = {}

    # ---- facts -------------------------------------------------------------------------------

    def deliveries(self) -> Iterator[tuple[int, int, Delivery]]:
        """Yield first and last offset of each state, in the order of offsets."""
        for batch in self._batches:
            yield from batch.deliveries()

    @property
    def in_flight(self) -> int:
        """The number of offsets from the start to the last one that was acquired."""
        return self.end_offset - self.start_offset + 1 if self._batches else 0

    @property
    def complete(self) -> int:
        """How many records from the start offset on need no more delivery."""
        return sum(
            last - max(first, self.start_offset) + 1
            for first, last, delivery in self.deliveries()
            if delivery.state.is_final and last >= self.start_offset
        )

    @property
    def can_acquire(self) -> bool:
        behind = self.next_offset() == self.end_offset + 1
        return not behind or self.in_flight < self._times().max_locks

    def next_offset(self) -> int:
        """From where the next fetch reads: the first record that is available."""
        if not self._batches or self.start_offset > self._batches[-1].last:
            self._looks_back = False
            return self.end_offset
        if self._looks_back:
            for first, _, delivery in self.deliveries():
                if delivery.state is RecordState.AVAILABLE:
                    return first
            self._looks_back = False
        return self.end_offset + 1

    # ---- watching ----------------------------------------------------------------------------

    def watch(self, key: object, call: Callable[[], None]) -> None:
        """Call a function when records may have become available, until ``unwatch(key)``."""
        self._watchers[key] = call

    def unwatch(self, key: object) -> None:
        self._watchers.pop(key, None)

    def _changed(self) -> None:
        for call in tuple(self._watchers.values()):
            call()

    # ---- acquiring ---------------------------------------------------------------------------

    def begin_at(self, offset: int, leader_epoch: int) -> None:
        """The leader loads the partition; ``offset`` counts if it has no start yet."""
        self.leader_epoch = leader_epoch
        if self.start_offset == UNINITIALIZED:
            self.start_offset = self.end_offset = offset
        self._move_start()

    def acquire(
        self,
        member_id: str,
        headers: Sequence[BatchHeader],
        aborted: Sequence[BatchHeader],
        fetch_offset: int,
        *,
        most: int,
        batch_size: int,
        strict: bool,
    ) -> list[AcquiredRange]:
        """Acquire records of batches that were read from ``fetch_offset`` on, about ``most`` of
        them; ``strict``: no more than that. Those of ``aborted`` batches are archived."""
        if most <= 0 or not headers or headers[-1].last_offset < self.start_offset:
            return []
        last = headers[-1].last_offset
        room = min(most, self._times().max_locks - self.in_flight)
        if room <= 0 and fetch_offset <= self.end_offset:
            room = min(most, self.end_offset - fetch_offset + 1)
            last = min(last, self.end_offset)
        if room <= 0:
            return []
        base = headers[0].base_offset
        self._archive(RecordState.AVAILABLE, fetch_offset, base)
        floor = self._floor(base)
        if floor is None:
            base = max(base, self.start_offset)
        elif floor.last >= base:
            base = floor.first
        in_flight = self._between(min(headers[0].base_offset, base), last)
        acquired: list[AcquiredRange] = []
        if in_flight:
            count, stopped = self._acquire_again(
                member_id, in_flight, headers[0].base_offset, last, room, acquired, strict=strict
            )
            room = 0 if stopped else room - count
            base = in_flight[-1].last + 1
        if room > 0 and base <= last:
            acquired += self._acquire_new(
                member_id, headers, base, last, room, batch_size, strict=strict
            )
        return self._without(acquired, aborted)

    def _acquire_again(
        self,
        member_id: str,
        batches: Sequence[InFlightBatch],
        first: int,
        last: int,
        room: int,
        acquired: list[AcquiredRange],
        *,
        strict: bool,
    ) -> tuple[int, bool]:
        """Acquire what is available of batches that are in flight. Returns how many records that
        were, and whether nothing else may be acquired with them."""
        total = 0
        for batch in batches:
            if total >= room:
                break
            throttled = self._is_throttled(batch, first, last)
            if throttled and total:
                return total, True
            inside = first <= batch.first and batch.last <= last
            too_large = strict and batch.last - batch.first + 1 > room - total
            whole = batch.whole
            if whole is not None and inside and not too_large and not throttled:
                if whole.state is RecordState.AVAILABLE:
                    self._lock(whole, member_id, batch.first, batch.last)
                    acquired.append(AcquiredRange(batch.first, batch.last, whole.count))
                    total += batch.last - batch.first + 1
                continue
            if whole is not None and whole.state is not RecordState.AVAILABLE:
                continue
            self._split(batch)
            count = self._acquire_records(
                member_id, batch, first, last, room - total, acquired, strict=strict
            )
            total += count
            if throttled and count:
                return total, True
        return total, False

    def _acquire_records(
        self,
        member_id: str,
        batch: InFlightBatch,
        first: int,
        last: int,
        room: int,
        acquired: list[AcquiredRange],
        *,
        strict: bool,
    ) -> int:
        limit = self._times().delivery_limit
        single: list[AcquiredRange] = []
        most: int | None = room if strict else None
        for offset, delivery in batch.each.items():
            if not first <= offset <= last or delivery.state is not RecordState.AVAILABLE:
                continue
            throttle = self._throttle(delivery.count)
            if throttle.alone:
                if limit > 2 and delivery.count == limit - 1 and single:
                    break
                halves = delivery.count - throttle.threshold + 1
                alone = max(1, len(batch.each) >> halves)
                most = alone if most is None else min(most, alone)
            self._lock(delivery, member_id, offset, offset)
            single.append(AcquiredRange(offset, offset, delivery.count))
            if throttle.alone and limit > 2 and delivery.count == limit:
                break
            if most is not None and len(single) >= most:
                break
        acquired += _joined(single)
        return len(single)

    def _throttle(self, count: int) -> Throttle:
        event = Throttle(count, self._times().delivery_limit)
        apply_first(self._rules.redelivery, event, event)
        return event

    def _is_throttled(self, batch: InFlightBatch, first: int, last: int) -> bool:
        counts = [
            delivery.count
            for at, _, delivery in batch.deliveries()
            if delivery.state is RecordState.AVAILABLE
            and (batch.whole is not None or first <= at <= last)
        ]
        return self._throttle(max(counts, default=0)).alone

    def _acquire_new(
        self,
        member_id: str,
        headers: Sequence[BatchHeader],
        first: int,
        last: int,
        room: int,
        batch_size: int,
        *,
        strict: bool,
    ) -> list[AcquiredRange]:
        """Acquire records that are not in flight, up to the end of a batch of the log."""
        if not self._batches:
            first = max(first, self.end_offset)
        if room < last - first + 1:
            last = _end_of_batch(headers, first + room - 1)
        ranges, begin = [], first
        if not strict and last - first + 1 > batch_size:
            for header in headers:
                base = header.base_offset
                if base <= last and base - begin >= batch_size:
                    ranges.append(AcquiredRange(begin, base - 1, 1))
                    begin = base
        ranges.append(AcquiredRange(begin, last, 1))
        if strict and last - first + 1 > room:
            batch = InFlightBatch(first, last, Delivery(RecordState.AVAILABLE, 0))
            self._split(batch)
            for offset in range(first, first + room):
                self._lock(batch.each[offset], member_id, offset, offset)
            self._insert(batch)
            self._looks_back = True
            ranges = [AcquiredRange(first, first + room - 1, 1)]
        else:
            for span in ranges:
                delivery = Delivery(RecordState.AVAILABLE, 0)
                self._lock(delivery, member_id, span.first, span.last)
                self._insert(InFlightBatch(span.first, span.last, delivery))
        if self._batches[0].first == first:
            self.start_offset = first
        self.end_offset = max(self.end_offset, last)
        return ranges

    def _without(
        self, acquired: list[AcquiredRange], aborted: Sequence[BatchHeader]
    ) -> list[AcquiredRange]:
        """Archive the records of transactions that were aborted, and leave them out."""
        for header in aborted:
            self._archive(RecordState.ACQUIRED, header.base_offset, header.last_offset + 1)
        left = acquired
        for header in aborted:
            parts: list[AcquiredRange] = []
            for span in left:
                before = span._replace(last=min(span.last, header.base_offset - 1))
                behind = span._replace(first=max(span.first, header.last_offset + 1))
                parts += [part for part in (before, behind) if part.first <= part.last]
            left = parts
        return left

    def _lock(self, delivery: Delivery, member_id: str, first: int, last: int) -> None:
        delivery.state, delivery.member_id = RecordState.ACQUIRED, member_id
        delivery.count += 1
        self._renew(delivery, first, last)

    def _renew(self, delivery: Delivery, first: int, last: int) -> None:
        if delivery.lock is None:
            name = f"group {self.group_id}: lock of {self.tp[0]}-{self.tp[1]} from {first}"
            delivery.lock = self._timers.timer(partial(self._lock_over, first, last), name)
        delivery.lock.set(self._timers.now_ms + self._times().lock_ms)

    # ---- batches -----------------------------------------------------------------------------

    def _insert(self, batch: InFlightBatch) -> None:
        at = bisect_left(self._batches, batch.first, key=lambda each: each.first)
        self._batches.insert(at, batch)

    def _floor(self, offset: int) -> InFlightBatch | None:
        at = bisect_right(self._batches, offset, key=lambda each: each.first)
        return self._batches[at - 1] if at else None

    def _between(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches whose first offset lies between these two."""
        begin = bisect_left(self._batches, first, key=lambda each: each.first)
        end = bisect_right(self._batches, last, key=lambda each: each.first)
        return self._batches[begin:end]

    def _split(self, batch: InFlightBatch) -> None:
        """Let each record of a batch have a state of its own."""
        whole = batch.whole
        if whole is None:
            return
        due_ms = None if whole.lock is None else whole.lock.due_ms
        for offset in range(batch.first, batch.last + 1):
            delivery = Delivery(whole.state, whole.count, whole.member_id)
            if due_ms is not None:
                self._renew(delivery, offset, offset)
                assert delivery.lock is not None, "just made"
                delivery.lock.set(due_ms)
            batch.each[offset] = delivery
        if whole.lock is not None:
            whole.lock.set(None)
        batch.whole = None

    def _archive(self, state: RecordState, first: int, end: int) -> None:
        """Archive records in this state from ``first`` up to ``end``: they are not in the log, or
        not to be seen."""
        for batch in self._batches:
            if batch.last < first or batch.first >= end:
                continue
            if batch.whole is not None:
                if batch.whole.state is not state:
                    continue
                if first > batch.first or batch.last >= end:
                    self._split(batch)
            for at, _, delivery in batch.deliveries():
                if delivery.state is state and (batch.whole is not None or first <= at < end):
                    delivery.leave(RecordState.ARCHIVED)
                    self._looks_back = True

    # ---- acknowledging -----------------------------------------------------------------------

    def acknowledge(self, member_id: str, batches: Iterable[AckBatch]) -> StartedAcknowledgement:
        """Check acknowledgements. Until they are completed, the records stay acquired."""
        moves: list[tuple[int, int, Acknowledgement]] = []
        touched: set[int] = set()
        try:
            for batch in batches:
                if batch.last >= self.start_offset:
                    self._collect(member_id, batch, moves, touched)
        except _AckError as error:
            return StartedAcknowledgement(error.code, str(error))
        return StartedAcknowledgement(store=partial(self._complete, moves))

    def _complete(self, moves: Sequence[tuple[int, int, Acknowledgement]]) -> StoreError | None:
        changes = any(event.state is not None for _, _, event in moves)
        error = self._storing(self) if changes else None
        if error is None:
            for first, last, event in moves:
                self._apply(event, first, last)
            if changes:
                self._store(
                    StateBatch(first, last, STATE_IDS[event.state], event.delivery.count)
                    for first, last, event in moves
                    if event.state is not None
                )
        return error

    def _collect(
        self,
        member_id: str,
        batch: AckBatch,
        moves: list[tuple[int, int, Acknowledgement]],
        touched: set[int],
    ) -> None:
        invalid = ErrorCode.INVALID_RECORD_STATE
        floor = self._floor(batch.first)
        if floor is None and batch.first < self.start_offset:
            floor = self._floor(self.start_offset)
        if floor is None:
            raise _AckError(
                invalid,
                "Batch record not found. The request batch offsets are not found in the cache.",
            )
        in_flight = self._between(floor.first, batch.last)
        for limit, end in ((batch.first, "first"), (batch.last, "last")):
            if in_flight[-1].last < limit:
                raise _AckError(
                    ErrorCode.INVALID_REQUEST,
                    f"Batch record not found. The {end} offset in request is past acquired "
                    "records.",
                )
        for each in in_flight:
            if each.last < self.start_offset or each.last < batch.first:
                continue
            self._check_whole(member_id, each, touched)
            inside = batch.first <= each.first and each.last <= batch.last
            moved = each.first < self.start_offset <= each.last
            if not inside or moved or len(batch.types) > 1:
                self._split(each)
            for first, last, delivery in each.deliveries():
                if each.whole is None and not (
                    max(batch.first, self.start_offset) <= first <= batch.last
                ):
                    continue
                kind = batch.types[first - batch.first] if len(batch.types) > 1 else batch.types[0]
                event = self._acknowledgement(member_id, delivery, kind, touched)
                moves.append((first, last, event))
                if event.state is not None:
                    touched.add(id(delivery))

    def _check_whole(self, member_id: str, batch: InFlightBatch, touched: set[int]) -> None:
        if batch.whole is not None:
            self._acknowledgement(member_id, batch.whole, AckType.ACCEPT, touched, whole=True)

    def _acknowledgement(
        self,
        member_id: str,
        delivery: Delivery,
        kind: int,
        touched: set[int],
        *,
        whole: bool = False,
    ) -> Acknowledgement:
        times = self._times()
        event = Acknowledgement(
            delivery,
            member_id,
            kind,
            times.delivery_limit,
            whole=whole,
            in_progress=id(delivery) in touched,
            renews=times.renews,
        )
        apply_first(self._rules.acknowledge, event, event)
        if event.error is not None:
            raise _AckError(*event.error)
        return event

    def _apply(self, event: Acknowledgement, first: int, last: int) -> None:
        if event.state is None:
            self._renew(event.delivery, first, last)
            return
        event.delivery.leave(event.state)
        if event.state is RecordState.AVAILABLE:
            self._looks_back = True

    # ---- ends of locks -----------------------------------------------------------------------

    def _lock_over(self, first: int, last: int) -> None:
        self.end_locks(first, last)

    def end_locks(self, first: int = 0, last: int | None = None) -> int:
        """Expire the locks of these records, None: of all from ``first`` on. Returns how many
        records were acquired."""
        return self._release(None, first, last)

    def release(self, member_id: str) -> int:
        """Expire the locks of a member whose session is over."""
        return self._release(member_id, 0, None)

    def _release(self, member_id: str | None, first: int, last: int | None) -> int:
        limit = self._times().delivery_limit
        released: list[tuple[int, int, Acknowledgement]] = []
        for batch in self._batches:
            if batch.last < first or (last is not None and batch.first > last):
                continue
            if batch.whole is not None and batch.first < self.start_offset <= batch.last:
                self._split(batch)
            for at, end, delivery in batch.deliveries():
                if end < first or (last is not None and at > last):
                    continue
                event = Acknowledgement(
                    delivery,
                    member_id,
                    AckType.RELEASE,
                    limit,
                    before_start=end < self.start_offset,
                )
                apply_first(self._rules.lock_end, event, event)
                if event.state is not None:
                    released.append((at, end, event))
        if not released or self._complete(released) is not None:
            return 0
        return sum(end - at + 1 for at, end, _ in released)

    def set_count(self, offset: int, count: int) -> bool:
        """Let a record have been delivered this often. Returns whether it is in flight."""
        floor = self._floor(offset)
        if floor is None or floor.last < offset:
            return False
        self._split(floor)
        floor.each[offset].count = count
        return True

    def reload(self, start_offset: int, complete: int, batches: Iterable[StateBatch]) -> None:
        """Know what is stored and nothing else, as a leader does that loads it: no record is
        acquired any more, and deliveries that nothing was stored about do not count."""
        for _, _, delivery in self.deliveries():
            if delivery.state is RecordState.ACQUIRED:
                delivery.leave(RecordState.AVAILABLE)
        self._batches.clear()
        self.load(start_offset, complete, batches)
        self._changed()

    # ---- storing -----------------------------------------------------------------------------

    def load(self, start_offset: int, complete: int, batches: Iterable[StateBatch]) -> None:
        """Take over what is stored, before any record is acquired."""
        states = {number: state for state, number in STATE_IDS.items()}
        self.start_offset = self.end_offset = self.stored_start = start_offset
        self.stored_complete = complete
        for batch in batches:
            delivery = Delivery(states.get(batch.state, RecordState.AVAILABLE), batch.deliveries)
            self._insert(InFlightBatch(batch.first, batch.last, delivery))
            self.end_offset = max(self.end_offset, batch.last)
        self._looks_back = True

    # ---- moving ------------------------------------------------------------------------------

    def _store(self, batches: Iterable[StateBatch]) -> None:
        """Store the state, of which ``batches`` have changed, then move the start offset over what
        is done."""
        self.stored_start, self.stored_complete = self.start_offset, self.complete
        self._stored(WrittenState(self.stored_start, self.stored_complete, [*batches]))
        self._move_start()
        self._changed()

    def _move_start(self) -> None:
        done = None
        for _, last, delivery in self.deliveries():
            if not delivery.state.is_final:
                break
            done = last
        if done is None or done < self.start_offset:
            return
        if done == self._batches[-1].last:
            self.start_offset = self.end_offset = done + 1
            self._batches.clear()
            return
        while self._batches[0].last <= done:
            self._batches.pop(0)
        self.start_offset = max(self.start_offset, done + 1, self._batches[0].first)

    def log_starts_at(self, offset: int) -> None:
        """The log begins at this offset, behind the start offset."""
        if offset <= self.start_offset:
            return
        self._archive(RecordState.AVAILABLE, self.start_offset, offset)
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset)


def _joined(ranges: Sequence[AcquiredRange]) -> list[AcquiredRange]:
    """Join neighbours that were delivered as often."""
    joined: list[AcquiredRange] = []
    for span in ranges:
        last = joined[-1] if joined else None
        if last is not None and span.first == last.last + 1 and span.times == last.times:
            joined[-1] = last._replace(last=span.last)
        else:
            joined.append(span)
    return joined


def _end_of_batch(headers: Sequence[BatchHeader], offset: int) -> int:
    """The last offset of the batch that holds an offset; the offset itself if none does."""
    for header in headers:
        if header.base_offset <= offset <= header.last_offset:
            return header.last_offset
    return offset
