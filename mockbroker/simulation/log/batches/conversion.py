"""Batches that change their contents: another codec, or another message format.

Logs hold batches of magic 2 only. What older producers send is converted before it is appended;
``fetching.down_conversion`` converts what older consumers fetch. So neither can tell a log of an
older format from this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import structs

from kproto.records import Compression, Record, TimestampType, build_batch
from kproto.records.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP
from mockbroker.simulation.log.batches.batch_header import BatchHeader

__all__ = ["CODECS", "rebuild"]

CODECS: Final = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
"""The values of ``compression.type`` but for "producer", which keeps the codec of a batch."""


def rebuild(
    records: Sequence[Record],
    header: BatchHeader | None,
    codec: Compression,
    append_time_ms: int | None,
) -> bytes:
    """Return one batch of magic 2 with these records, offsets from 0 on.

    ``header`` is that of the batch that they came in; None if it was of an older format.
    ``append_time_ms`` is the broker's time, for topics of LogAppendTime. Raises MissingExtraError
    if the codec is not installed.
    """
    renumbered = [
        each if each.offset == offset else structs.replace(each, offset=offset)
        for offset, each in enumerate(records)
    ]
    appended = append_time_ms is not None
    return build_batch(
        renumbered,
        compression=codec,
        timestamp_type=TimestampType.LOG_APPEND_TIME if appended else TimestampType.CREATE_TIME,
        log_append_time=NO_TIMESTAMP if append_time_ms is None else append_time_ms,
        base_offset=0,
        producer_id=NO_PRODUCER_ID if header is None else header.producer_id,
        producer_epoch=NO_PRODUCER_EPOCH if header is None else header.producer_epoch,
        base_sequence=NO_SEQUENCE if header is None else header.base_sequence,
        is_transactional=header is not None and header.is_transactional,
    )
