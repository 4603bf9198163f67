"""Compaction: of the records with one key, only the newest stays.

Offsets stay as they are, so gaps appear. Only whole segments below the newest one, and below the
first open transaction, are compacted. Tombstones, and markers of transactions without records, get
a horizon when they are first seen (KIP-534, since 3.1) and go once it has passed. Before, they go
from segments that are older than the last compacted one by ``delete.retention.ms``. A batch without
records stays as a header if a producer's last sequence is in it or, since 3.9, if the compacted
range ends with it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import msgspec

from kproto.records import (
    Compression,
    ControlRecordType,
    Record,
    RecordBatches,
    TimestampType,
    build_batch,
    read_control_record,
)
from kproto.records.model import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    TRANSACTIONAL,
)
from mockbroker.simulation.log.batches.batch_header import (
    HEADER_SIZE,
    BatchHeader,
    Buffer,
    read_header,
    with_header,
)
from mockbroker.simulation.log.batches.batch_storage import StoredBatch
from mockbroker.simulation.log.cleaning.retention import SegmentSize, segment_sizes
from mockbroker.simulation.log.log_settings import LogSettings
from mockbroker.simulation.log.partition_log import AbortedTransaction, PartitionLog, Segment

__all__ = ["CompactedLog", "compact_log", "compaction_end"]

_BEFORE_LENGTH: Final = 12
_KEPT_ATTRIBUTES: Final = LOG_APPEND_TIME_BIT | TRANSACTIONAL | CONTROL


class CompactedLog(msgspec.Struct):
    """What stays of a log. ``removed`` counts the records that do not."""

    batches: list[Buffer]
    aborted: list[AbortedTransaction]
    segments: list[Segment]
    removed: int


def compaction_end(log: PartitionLog, settings: LogSettings, now_ms: int) -> int:
    """Return the offset below which a log may be compacted, which is where a segment begins."""
    limits = [log.last_stable_offset, log.segments[-1].base_offset]
    newest_ms = now_ms - settings.min_compaction_lag_ms
    if settings.min_compaction_lag_ms > 0:
        recent = [each for each in segment_sizes(log)[:-1] if each.newest_ms > newest_ms]
        limits += [each.base_offset for each in recent[:1]]
    limit = min(limits)
    return max((each.base_offset for each in log.segments if each.base_offset <= limit), default=0)


def compact_log(
    log: PartitionLog,
    settings: LogSettings,
    now_ms: int,
    *,
    keeps_end: bool = True,
    sets_horizons: bool = True,
) -> CompactedLog:
    """Return what compaction makes of a log. ``keeps_end``: a header stays of the last batch that
    was compacted, so that its last offset is not lost. ``sets_horizons``: batches say until when
    their tombstones stay, instead of the age of their segment. Raises DecodeError or
    MissingExtraError if a batch cannot be decoded."""
    storage = log.storage
    end_offset = compaction_end(log, settings, now_ms)
    behind = storage.index_of(end_offset)
    newest = _newest_offsets(log, behind)
    kept_end = end_offset if keeps_end else None
    compaction = _Compaction(
        log,
        newest,
        kept_end,
        now_ms,
        now_ms + settings.delete_retention_ms if sets_horizons else None,
        () if sets_horizons else _aged_segments(log, settings.delete_retention_ms),
    )
    kept: list[Buffer] = []
    for batch in storage.batches(0, behind):
        found = compaction.compacted(batch)
        if found is not None:
            kept.append(found)
    kept += [batch.data for batch in storage.batches(behind)]
    aborted = compaction.transactions.still_aborted
    aborted += [each for each in log.aborted if each.last_offset >= end_offset]
    segments = _merged(log.segments, segment_sizes(log), end_offset, settings.segment_bytes)
    return CompactedLog(kept, aborted, segments, compaction.removed)


def _aged_segments(log: PartitionLog, delete_retention_ms: int) -> tuple[range, ...]:
    """Return the offsets of the segments whose tombstones go before KIP-534: those that were last
    appended to ``delete.retention.ms`` before the last one of the former compaction."""
    spans = list(pairwise(log.segments))
    former = [each for each, _ in spans if each.base_offset < log.compacted_end]
    if not former:
        return ()
    newest_ms = former[-1].modified_ms - delete_retention_ms
    return tuple(
        range(each.base_offset, following.base_offset)
        for each, following in spans
        if each.modified_ms <= newest_ms
    )


def _newest_offsets(log: PartitionLog, behind: int) -> dict[bytes, int]:
    """Return the newest offset of each key. Records of aborted transactions do not count."""
    newest: dict[bytes, int] = {}
    transactions = _Transactions(log)
    for batch in log.storage.batches(0, behind):
        if not transactions.may_discard(batch) and not batch.header.is_control:
            for record in _records(batch):
                if record.key is not None:
                    newest[record.key] = record.offset
    return newest


def _records(batch: StoredBatch) -> Iterator[Record]:
    for each in RecordBatches(batch.data, check_crc=False):
        yield from each


class _Transactions:
    """Follows transactions while the batches of a log are read in order."""

    def __init__(self, log: PartitionLog) -> None:
        self._begun = sorted(log.aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}
        self._with_records: set[int] = set()
        self._committed: set[int] = set()
        self.still_aborted: list[AbortedTransaction] = []
        """The aborted transactions of which records were read."""

    def may_discard(self, batch: StoredBatch) -> bool:
        """Return whether the batch belongs to an aborted transaction, or is the marker of a
        transaction of which no other batch was read."""
        header = batch.header
        while self._begun and self._begun[-1].first_offset <= header.last_offset:
            transaction = self._begun.pop()
            self._aborted.setdefault(transaction.producer_id, transaction)
        if header.is_control:
            return self._ends(batch)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._with_records.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def _ends(self, batch: StoredBatch) -> bool:
        producer_id = batch.header.producer_id
        record = next(_records(batch), None)
        if record is None:
            return True
        kind = read_control_record(record).type
        if kind == ControlRecordType.ABORT:
            transaction = self._aborted.pop(producer_id, None)
            had_records = producer_id in self._with_records
            self._with_records.discard(producer_id)
            if transaction is not None and had_records:
                self.still_aborted.append(transaction)
            return transaction is None or not had_records
        if kind == ControlRecordType.COMMIT:
            committed = producer_id in self._committed
            self._committed.discard(producer_id)
            return not committed
        return False


@dataclass(slots=True)
class _Compaction:
    """Goes through a log once, batch by batch. Without a ``new_horizon_ms`` tombstones go from the
    offsets of ``aged``, which are in order."""

    log: PartitionLog
    newest: dict[bytes, int]
    kept_end: int | None
    now_ms: int
    new_horizon_ms: int | None
    aged: tuple[range, ...]
    removed: int = 0
    transactions: _Transactions = field(init=False)
    _last_of: dict[int, tuple[int | None, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.transactions = _Transactions(self.log)
        self._last_of = {
            each.producer_id: (each.batches[-1].last_offset if each.batches else None, each.epoch)
            for each in self.log.producers
        }

    def compacted(self, batch: StoredBatch) -> Buffer | None:
        """Return what stays of a batch, None if nothing does."""
        header = batch.header
        may_discard = self.transactions.may_discard(batch)
        horizon_ms = header.base_timestamp if header.attributes & DELETE_HORIZON else None
        if self.new_horizon_ms is None:
            has_passed = self._is_aged(header.base_offset)
        else:
            has_passed = horizon_ms is not None and horizon_ms <= self.now_ms
        discards = may_discard and (has_passed or not header.is_control)
        records = list(_records(batch))
        kept = [
            each
            for each in records
            if not discards and (header.is_control or self._stays(each, has_passed))
        ]
        self.removed += len(records) - len(kept)
        if not kept:
            return _emptied(batch) if self._is_last(header) else None
        empty_transaction = header.is_control and may_discard
        needs_horizon = horizon_ms is None and (
            empty_transaction or any(each.value is None for each in kept)
        )
        if needs_horizon and self.new_horizon_ms is not None:
            return _rebuilt(batch, kept, self.new_horizon_ms)
        return batch.data if len(kept) == len(records) else _rebuilt(batch, kept, horizon_ms)

    def _is_aged(self, offset: int) -> bool:
        # By bisection: a log may have thousands of segments.
        at = bisect_right(self.aged, offset, key=lambda segment: segment.start)
        return at > 0 and offset in self.aged[at - 1]

    def _stays(self, record: Record, horizon_has_passed: bool) -> bool:
        if record.key is None or record.offset < self.newest[record.key]:
            return False
        return record.value is not None or not horizon_has_passed

    def _is_last(self, header: BatchHeader) -> bool:
        """Whether a batch tells something that its records do not: where a producer is, or the
        last offset of what was compacted."""
        if header.last_offset + 1 == self.kept_end:
            return True
        if header.producer_id not in self._last_of:
            return False
        last_offset, epoch = self._last_of[header.producer_id]
        if last_offset is not None:
            return header.last_offset == last_offset
        return header.is_control and header.producer_epoch == epoch


def _rebuilt(batch: StoredBatch, records: list[Record], horizon_ms: int | None) -> bytes:
    """Return a batch of these records that covers the same offsets."""
    header = batch.header
    data = build_batch(
        records,
        compression=Compression(header.codec),
        timestamp_type=TimestampType(int(header.has_append_time)),
        log_append_time=header.max_timestamp if header.has_append_time else NO_TIMESTAMP,
        base_offset=header.base_offset,
        partition_leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        delete_horizon=horizon_ms,
    )
    built = read_header(data)._replace(last_offset_delta=header.last_offset_delta)
    return with_header(data, built)


def _emptied(batch: StoredBatch) -> bytes:
    """Return the header of a batch without its records."""
    header = batch.header
    changed = header._replace(
        length=HEADER_SIZE - _BEFORE_LENGTH,
        attributes=header.attributes & _KEPT_ATTRIBUTES,
        base_timestamp=NO_TIMESTAMP,
        record_count=0,
    )
    return with_header(bytes(HEADER_SIZE), changed)


def _merged(
    segments: list[Segment], sizes: list[SegmentSize], end_offset: int, segment_bytes: int
) -> list[Segment]:
    """Return the segments after compaction: neighbours become one as long as they were not larger
    than a segment before it."""
    merged: list[Segment] = []
    room = -1
    for segment, size in zip(segments, sizes, strict=True):
        room -= size.size
        if merged and room >= 0 and segment.base_offset < end_offset:
            merged[-1] = merged[-1]._replace(modified_ms=segment.modified_ms)
        else:
            merged.append(segment)
            room = segment_bytes - size.size
    return merged
