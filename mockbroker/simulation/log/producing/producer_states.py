"""What a log knows of its idempotent producers (KIP-98, KIP-360): epochs, sequences, transactions.

The state belongs to the log. It follows the log through elections, and is cut with it. ``ROWS``
decides on a batch before it is appended; ``Producers.appended`` takes a batch in, also one that no
row has seen because it is read from the log again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from kproto.messages.end_txn_marker import EndTxnMarker
from kproto.records import ControlRecordType, RecordBatches, read_control_record
from kproto.records.model import NO_SEQUENCE
from mockbroker.simulation.log.batches.batch_header import BatchHeader
from mockbroker.simulation.log.batches.batch_storage import StoredBatch
from mockbroker.simulation.releases import fixes
from mockbroker.simulation.releases.rows import Refusable, Row, always, refuse, with_arguments

__all__ = [
    "COORDINATOR_ROWS",
    "NO_EPOCH",
    "ROWS",
    "START_ROWS",
    "Guard",
    "KeptBatch",
    "Marker",
    "Producer",
    "ProducerBatch",
    "Producers",
    "SequenceCheck",
    "SequenceForm",
    "answer_duplicate",
    "forget_deleted",
    "marker_of",
]

NO_EPOCH: Final = -1
_KEPT_BATCHES: Final = 5
"""As many batches as a producer may have in flight."""
_LAST_SEQUENCE: Final = 0x7FFFFFFF


class KeptBatch(msgspec.Struct, frozen=True, gc=False):
    """A batch by which a duplicate is recognised. ``timestamp`` is its largest."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class Marker(NamedTuple):
    """The end of a producer's transaction in one partition."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    offset: int
    timestamp: int
    is_commit: bool


class Guard(msgspec.Struct):
    """Stands for a question to the transaction coordinator (KIP-890). A log knows it until the
    producer's transaction begins or ends there, whatever the coordinator answers, or until it
    expires as a producer does.

    ``lowest_sequence`` is that of the batches of ``epoch``, the newest one, for which it was asked.
    ``implicit``: the first of them belonged to a transaction of version 2.
    """

    lowest_sequence: int
    epoch: int
    implicit: bool
    requested_ms: int

    def include(self, sequence: int, epoch: int) -> None:
        """Ask for a further batch, too."""
        if epoch > self.epoch or (epoch == self.epoch and sequence < self.lowest_sequence):
            self.epoch, self.lowest_sequence = epoch, sequence


class Producer(msgspec.Struct):
    """``batches`` are the newest ones of ``epoch``, oldest first. ``transaction_start`` is the
    first offset of the open transaction; None if none is open."""

    producer_id: int
    epoch: int = NO_EPOCH
    batches: deque[KeptBatch] = msgspec.field(default_factory=lambda: deque(maxlen=_KEPT_BATCHES))
    last_timestamp: int = -1
    coordinator_epoch: int = -1
    transaction_start: int | None = None
    touched: int = -1
    """The offset of the last batch or marker that changed this state."""

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; -1 if only a marker is known of this epoch."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def is_past(self, sequence: int) -> bool:
        """Whether a later sequence than this one is known. Sequences wrap."""
        if not self.batches:
            return False
        ahead = (sequence - self.batches[-1].last_sequence - 1) & _LAST_SEQUENCE
        return ahead > _LAST_SEQUENCE // 2


# ---- one batch, before it is appended -----------------------------------------------------------


class ProducerBatch(msgspec.Struct, frozen=True):
    """A batch with a producer id, as the rows see it. ``known`` is None for a new producer.

    ``guard`` is what the log knows of questions for the producer's transaction: a transaction of
    version 2 (KIP-890) always begins at sequence 0, and no batch may come before the first one that
    the coordinator was asked for. ``is_verified`` is False if the batch would have to be part of a
    transaction that the coordinator has confirmed, and the log does not know of that.
    """

    known: Producer | None
    epoch: int
    first_sequence: int
    last_sequence: int
    is_transactional: bool
    guard: Guard | None = None
    is_verified: bool = True

    def duplicate(self, kept: int) -> KeptBatch | None:
        """The batch of the same sequences among the newest ``kept``."""
        known = self.known
        if known is None or known.epoch != self.epoch:
            return None
        first, last = self.first_sequence, self.last_sequence
        batches = known.batches
        for batch in islice(batches, max(len(batches) - kept, 0), None):
            if batch.last_sequence == last and batch.first_sequence == first:
                return batch
        return None

    @property
    def form(self) -> SequenceForm:
        known, begins_at_zero = self.known, self.first_sequence == 0
        is_transactional, is_verified = self.is_transactional, self.is_verified
        is_implicit, overtakes = False, False
        if self.guard is not None:
            is_implicit = self.guard.implicit
            overtakes = self.first_sequence > self.guard.lowest_sequence
        if known is None:
            return SequenceForm(
                begins_at_zero,
                is_transactional,
                is_implicit,
                is_verified,
                overtakes,
                is_of_old_epoch=self.epoch < NO_EPOCH,
            )
        epoch, batches = known.epoch, known.batches
        has_gap, repeats_newest = False, False
        if batches and epoch == self.epoch:
            newest, first = batches[-1], self.first_sequence
            last = newest.last_sequence
            has_gap = first != (0 if last == _LAST_SEQUENCE else last + 1)
            repeats_newest = (first, self.last_sequence) == (newest.first_sequence, last)
        return SequenceForm(
            begins_at_zero,
            is_transactional,
            is_implicit,
            is_verified,
            overtakes,
            epoch != NO_EPOCH,
            epoch == self.epoch,
            self.epoch < epoch,
            bool(batches),
            has_gap,
            known.transaction_start is not None,
            repeats_newest,
            repeats_newest or self.duplicate(_KEPT_BATCHES) is not None,
        )


class SequenceForm(msgspec.Struct, frozen=True):
    """What decides about the sequence of a batch. ``overtakes_first``: its sequence lies behind the
    first one that the transaction coordinator was asked for. The fields from ``has_epoch`` on say
    how it relates to what the log knows of the producer."""

    begins_at_zero: bool
    is_transactional: bool
    is_implicit: bool
    is_verified: bool
    overtakes_first: bool = False
    has_epoch: bool = False
    is_of_epoch: bool = False
    is_of_old_epoch: bool = False
    has_batches: bool = False
    has_gap: bool = False
    is_open: bool = False
    repeats_newest: bool = False
    repeats_kept: bool = False


class SequenceCheck(Refusable):
    """What the rows decide about a batch: a duplicate, an error, or neither."""

    __slots__ = ("batch", "code", "duplicate")

    def __init__(self, batch: ProducerBatch) -> None:
        self.batch = batch
        self.duplicate: KeptBatch | None = None
        self.code = ErrorCode.NONE


@with_arguments
def answer_duplicate(check: SequenceCheck, kept: int = _KEPT_BATCHES) -> None:
    """The batch has been appended before. ``kept`` batches are remembered."""
    check.duplicate = check.batch.duplicate(kept)


_Row: TypeAlias = Row[SequenceForm, SequenceCheck]

_OUT_OF_ORDER: Final = refuse(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)


def _new_epoch_starts_late(batch: SequenceForm) -> bool:
    return batch.has_epoch and not batch.is_of_epoch and not batch.begins_at_zero


def _is_unknown_and_late(batch: SequenceForm) -> bool:
    return not batch.has_epoch and not batch.begins_at_zero


def _follows_marker_late(batch: SequenceForm) -> bool:
    return batch.is_of_epoch and not batch.has_batches and not batch.begins_at_zero


COORDINATOR_ROWS: Final[Sequence[_Row]] = (
    Row(
        "DP-IDEM-03",
        lambda batch: batch.is_of_old_epoch,
        (refuse(ErrorCode.INVALID_PRODUCER_EPOCH),),
    ),
    Row(
        "DP-TXN-46",
        lambda batch: not batch.is_verified and not batch.is_open,
        (refuse(ErrorCode.INVALID_TXN_STATE),),
        since=(3, 6),
        until=(4, 0),
    ),
    Row(
        "DP-TXN-46",
        lambda batch: not batch.is_verified and not (batch.is_open and batch.is_of_epoch),
        (refuse(ErrorCode.INVALID_TXN_STATE),),
        since=(4, 0),
    ),
)
"""The rows that hold for a coordinator too, whose batches have no sequence."""

ROWS: Final[Sequence[_Row]] = (
    Row("DP-IDEM-01", lambda batch: batch.repeats_kept, (answer_duplicate(),), since=(1, 0)),
    Row("DP-IDEM-02", lambda batch: batch.repeats_newest, (answer_duplicate(1),), until=(1, 0)),
    *COORDINATOR_ROWS,
    Row("DP-IDEM-07", lambda batch: batch.overtakes_first, (_OUT_OF_ORDER,), since=(3, 6)),
    Row("DP-IDEM-04", _new_epoch_starts_late, (_OUT_OF_ORDER,)),
    Row(
        "DP-IDEM-05",
        _is_unknown_and_late,
        (refuse(ErrorCode.UNKNOWN_PRODUCER_ID),),
        since=fixes.KAFKA_5793,
        until=(2, 5),
    ),
    Row("DP-IDEM-05", _is_unknown_and_late, (_OUT_OF_ORDER,), until=fixes.KAFKA_5793),
    Row(
        "DP-IDEM-07",
        lambda batch: batch.is_implicit and _is_unknown_and_late(batch),
        (_OUT_OF_ORDER,),
        since=fixes.KAFKA_18202,
    ),
    Row("DP-IDEM-08", _follows_marker_late, (_OUT_OF_ORDER,), until=fixes.KAFKA_7298),
    Row(
        "DP-IDEM-08",
        _follows_marker_late,
        (refuse(ErrorCode.UNKNOWN_PRODUCER_ID),),
        since=fixes.KAFKA_7298,
        until=(2, 5),
    ),
    Row("DP-IDEM-08", _follows_marker_late, (_OUT_OF_ORDER,), since=(2, 5)),
    Row("DP-IDEM-09", lambda batch: batch.has_gap, (_OUT_OF_ORDER,)),
    Row(
        "DP-IDEM-11",
        lambda batch: batch.is_open and not batch.is_transactional,
        (refuse(ErrorCode.INVALID_TXN_STATE),),
    ),
)
"""The first row that applies decides. A batch to which none applies is appended."""


def forget_deleted(subject: tuple[Producers, int]) -> None:
    """Producers go with their batches."""
    producers, start_offset = subject
    producers.forget_before(start_offset)


START_ROWS: Final[Sequence[Row[object, tuple[Producers, int]]]] = (
    Row("DP-IDEM-13", always, (forget_deleted,), until=fixes.KAFKA_7190),
)
"""What happens to producers when the log starts later. With KAFKA-7190 they stay until they
expire."""

# ---- the state of a log -------------------------------------------------------------------------


class Producers:
    """The producers of one log, by producer id."""

    def __init__(self) -> None:
        self._producers: dict[int, Producer] = {}
        self._open: dict[int, int] = {}
        self._ended: deque[tuple[int, int]] = deque()
        self._guards: dict[int, Guard] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[Producer]:
        """Yield the producers, ids ascending."""
        return iter([self._producers[each] for each in sorted(self._producers)])

    def get(self, producer_id: int) -> Producer | None:
        """Return what is known of a producer."""
        return self._producers.get(producer_id)

    def guard(self, producer_id: int) -> Guard | None:
        """Return what stands for the question whether the producer has a transaction here."""
        return self._guards.get(producer_id)

    def ask(
        self, producer_id: int, sequence: int, epoch: int, *, implicit: bool, now_ms: int
    ) -> Guard:
        """Return what stands for the question, which a batch asks that begins so."""
        guard = self._guards.setdefault(producer_id, Guard(sequence, epoch, implicit, now_ms))
        guard.include(sequence, epoch)
        return guard

    def holds(self, producer_id: int, guard: Guard | None) -> bool:
        """Whether this question is the present one."""
        return guard is not None and self._guards.get(producer_id) is guard

    @property
    def first_open(self) -> int | None:
        """The first offset of the oldest open transaction."""
        return min(self._open.values()) if self._open else None

    def first_unstable(self, high_watermark: int) -> int | None:
        """Return the first offset of the oldest transaction that is open, or whose marker is not
        below the high watermark."""
        ended = self._ended
        if not ended and not self._open:
            return None
        while ended and ended[0][1] < high_watermark:
            ended.popleft()
        first = self.first_open
        for start, marker in ended:
            if marker >= high_watermark and (first is None or start < first):
                first = start
        return first

    def appended(self, header: BatchHeader, base_offset: int) -> None:
        """Take in a batch of data that has a producer id.

        A tester appends batches that no row has checked. One of an older epoch, or whose sequence
        lies behind, leaves the state to what the producer has really sent.
        """
        producer = self._of(header.producer_id)
        if header.producer_epoch < producer.epoch:
            return
        if header.producer_epoch != producer.epoch:
            producer.batches.clear()
            producer.epoch = header.producer_epoch
        delta = header.last_offset_delta
        last_offset = base_offset + delta
        first = header.base_sequence
        if first >= 0 and not producer.is_past(first):
            last = (first + delta) & _LAST_SEQUENCE
            producer.batches.append(
                KeptBatch(first, last, base_offset, last_offset, header.max_timestamp)
            )
        producer.last_timestamp = header.max_timestamp
        producer.touched = last_offset
        if header.is_transactional and producer.transaction_start is None:
            producer.transaction_start = base_offset
            self._open[header.producer_id] = base_offset
            self._guards.pop(header.producer_id, None)

    def ended(self, marker: Marker) -> int | None:
        """Take in the end of a transaction and return its first offset; None if none was open.

        A marker that raises the epoch makes the sequences start anew.
        """
        producer = self._of(marker.producer_id)
        if marker.producer_epoch != producer.epoch:
            producer.batches.clear()
            producer.epoch = marker.producer_epoch
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = marker.timestamp
        producer.touched = marker.offset
        self._guards.pop(marker.producer_id, None)
        start, producer.transaction_start = producer.transaction_start, None
        if start is not None:
            del self._open[marker.producer_id]
            self._ended.append((start, marker.offset))
        return start

    def _of(self, producer_id: int) -> Producer:
        found = self._producers.get(producer_id)
        if found is None:
            found = self._producers[producer_id] = Producer(producer_id)
        return found

    def forget(self, producer_id: int | None) -> int:
        """Forget a producer, None: all of them, and return how many there were."""
        requested = [*self._producers] if producer_id is None else [producer_id]
        return sum(self._remove(each) for each in requested)

    def _remove(self, producer_id: int) -> bool:
        self._open.pop(producer_id, None)
        return self._producers.pop(producer_id, None) is not None

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget the producers that have no open transaction and whose last batch is older, and
        older questions."""
        old = [
            each.producer_id
            for each in self._producers.values()
            if each.transaction_start is None and now_ms - each.last_timestamp >= expiration_ms
        ]
        for producer_id in old:
            self._remove(producer_id)
        self._guards = {
            producer_id: guard
            for producer_id, guard in self._guards.items()
            if now_ms - guard.requested_ms < expiration_ms
        }

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that may expire."""
        return not self._producers and not self._guards

    def forget_before(self, start_offset: int) -> None:
        """Forget the batches that lie before the start of the log, and producers that have none
        left."""
        gone = []
        for producer_id, known in self._producers.items():
            while known.batches and known.batches[0].last_offset < start_offset:
                known.batches.popleft()
            if not known.batches:
                gone.append(producer_id)
        for producer_id in gone:
            self._remove(producer_id)

    def truncate(
        self, end_offset: int, remaining: Iterable[tuple[BatchHeader, Marker | None]]
    ) -> None:
        """Follow a truncation. ``remaining`` are the batches that the log still has; those of
        producers that the truncation does not touch are not needed."""
        cut = {each for each, known in self._producers.items() if known.touched >= end_offset}
        if not cut:
            return
        for producer_id in cut:
            self._remove(producer_id)
        self._ended = deque(each for each in self._ended if each[1] < end_offset)
        self.replay(each for each in remaining if each[0].producer_id in cut)

    def replay(self, batches: Iterable[tuple[BatchHeader, Marker | None]]) -> None:
        """Follow batches of the log, with what those of markers say."""
        for header, marker in batches:
            if marker is not None:
                self.ended(marker)
            elif not header.is_control:
                self.appended(header, header.base_offset)


def marker_of(batch: StoredBatch) -> Marker | None:
    """Return what a control batch says of a transaction; None if it says something else."""
    header, data = batch
    for each in RecordBatches(data, check_crc=False):
        for record in each.records():
            control = read_control_record(record)
            if isinstance(control.message, EndTxnMarker):
                return Marker(
                    header.producer_id,
                    header.producer_epoch,
                    control.message.coordinator_epoch,
                    header.last_offset,
                    header.max_timestamp,
                    control.type == ControlRecordType.COMMIT,
                )
    return None
