"""Find records by their timestamps. Headers say which batch holds the answer; only that one is
decoded, and the first one of a log that begins in the middle of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kproto.records import Record, RecordBatches
from mockbroker.simulation.log.batches.batch_storage import StoredBatch
from mockbroker.simulation.log.partition_log import PartitionLog

__all__ = ["TimedOffset", "first_at_or_after", "first_of_newest"]


class TimedOffset(NamedTuple):
    """A record's timestamp and offset, and the leader epoch of its batch."""

    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(log: PartitionLog, timestamp: int, end_offset: int) -> TimedOffset | None:
    """Return the first record with at least this timestamp, of those before ``end_offset``.

    Raises DecodeError or MissingExtraError if the batch that should hold it cannot be decoded.
    """
    storage = log.storage
    for index in storage.indexes_since(timestamp, storage.index_of(log.start_offset)):
        batch = storage.batch(index)
        if batch.header.base_offset >= end_offset:
            return None
        for record in _records(batch, log.start_offset):
            if record.timestamp >= timestamp:
                return _found(record, batch) if record.offset < end_offset else None
    return None


def first_of_newest(log: PartitionLog, end_offset: int) -> TimedOffset | None:
    """Return the first record of those with the largest timestamp, of those before ``end_offset``.
    Brokers do not look into remote storage for it. Raises as ``first_at_or_after`` does."""
    storage, start_offset = log.storage, log.local_start_offset
    first, behind = storage.index_of(start_offset), storage.index_of(end_offset)
    best: TimedOffset | None = None
    if first < behind and storage.base_offset(first) < start_offset:
        best = _newest(storage.batch(first), start_offset)
        first += 1
    index = storage.newest_index(first, behind)
    if index is not None:
        batch = storage.batch(index)
        if best is None or batch.header.max_timestamp > best.timestamp:
            best = _newest(batch, start_offset) or best
    return best


def _newest(batch: StoredBatch, start_offset: int) -> TimedOffset | None:
    records = list(_records(batch, start_offset))
    if not records:
        return None
    # ``max`` returns the first of equal ones.
    return _found(max(records, key=lambda record: record.timestamp), batch)


def _records(batch: StoredBatch, start_offset: int) -> Iterator[Record]:
    for each in RecordBatches(batch.data, check_crc=False):
        for record in each:
            if record.offset >= start_offset:
                yield record


def _found(record: Record, batch: StoredBatch) -> TimedOffset:
    return TimedOffset(record.timestamp, record.offset, batch.header.leader_epoch)
