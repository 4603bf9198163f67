"""Write batches for testers, and read records back: between documents and the bytes of a log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import attrgetter

from kproto.errors import KprotoError
from kproto.records import Compression, Record, RecordBatches, TimestampType, build_batch
from mockbroker.errors import ClusterError
from mockbroker.simulation.log.batches.batch_header import HEADER_SIZE, BatchHeader, read_header
from mockbroker.simulation.log.batches.record_documents import (
    CODECS,
    BatchDocument,
    LoggedRecord,
    UnreadableBatch,
)
from mockbroker.simulation.log.partition_log import AbortedTransaction, PartitionLog
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["batch_of", "read_records"]


def batch_of(given: BatchDocument, now_ms: int, *, append_time: bool) -> tuple[bytes, BatchHeader]:
    """Return the bytes of a batch and its header.

    ``append_time``: the topic's timestamps are the broker's. Bytes that the tester wrote are
    checked only as far as the log has to find its way through them. Raises ClusterError.
    """
    if given.data is not None:
        return given.data, _checked_header(given.data)
    records = [
        Record(
            timestamp=now_ms if each.timestamp is None else each.timestamp,
            key=each.key,
            value=each.value,
            headers=each.headers,
        )
        for each in given.records
    ]
    kind = TimestampType.LOG_APPEND_TIME if append_time else TimestampType.CREATE_TIME
    try:
        data = build_batch(
            records,
            compression=Compression(CODECS.index(given.codec)),
            timestamp_type=kind,
            log_append_time=now_ms if append_time else -1,
            base_offset=0,
            producer_id=given.producer_id,
            producer_epoch=given.producer_epoch,
            base_sequence=given.base_sequence,
            is_transactional=given.transactional,
        )
    except KprotoError as error:
        raise ClusterError(f"the batch cannot be built: {error}") from None
    return data, read_header(data, 0)


def _checked_header(data: bytes) -> BatchHeader:
    if len(data) < HEADER_SIZE:
        raise ClusterError(f"a batch has a header of {HEADER_SIZE} bytes, not of {len(data)}")
    header = read_header(data, 0)
    if header.magic != 2:
        raise ClusterError(f"the batch has magic {header.magic}; logs hold batches of magic 2")
    if header.size != len(data):
        raise ClusterError(f"the batch says that it has {header.size} bytes, not {len(data)}")
    if header.last_offset_delta < 0:
        raise ClusterError(f"the last offset delta is {header.last_offset_delta}")
    return header


def read_records(
    tp: TopicPartition, log: PartitionLog, first_offset: int = 0, *, committed: bool = False
) -> Iterator[LoggedRecord | UnreadableBatch]:
    """Yield the records of a log in order, without control records, and each batch that cannot be
    decoded. ``committed``: to the last stable offset, without the records of aborted transactions,
    as a consumer with read_committed gets them. The log must not change meanwhile."""
    storage = log.storage
    first_offset = max(first_offset, log.start_offset)
    end_offset = log.last_stable_offset if committed else log.end_offset
    aborted = _AbortedTransactions(log.aborted if committed else ())
    for batch in storage.batches(storage.index_of(first_offset)):
        if batch.header.base_offset >= end_offset:
            return
        if aborted.have(batch.header):
            continue
        try:
            yield from _records_of(tp, bytes(batch.data), first_offset, end_offset)
        except KprotoError as error:
            header = batch.header
            yield UnreadableBatch(
                *tp, header.base_offset, header.last_offset, len(batch.data), str(error)
            )


class _AbortedTransactions:
    """Aborted transactions by producer, in the order of their markers."""

    def __init__(self, transactions: Iterable[AbortedTransaction]) -> None:
        self._of: dict[int, list[AbortedTransaction]] = {}
        for each in transactions:
            self._of.setdefault(each.producer_id, []).append(each)

    def have(self, batch: BatchHeader) -> bool:
        """Whether the batch is of one of them."""
        own = self._of.get(batch.producer_id, []) if batch.is_transactional else []
        place = bisect_right(own, batch.base_offset, key=attrgetter("last_offset"))
        return place < len(own) and own[place].first_offset <= batch.base_offset


def _records_of(
    tp: TopicPartition, data: bytes, first_offset: int, end_offset: int
) -> list[LoggedRecord]:
    return [
        LoggedRecord(*tp, each.offset, each.timestamp, each.key, each.value, each.headers)
        for batch in RecordBatches(data)
        if not batch.is_control
        for each in batch
        if first_offset <= each.offset < end_offset
    ]
