"""Batches that change their contents: another codec, or another message format.

Logs hold batches of magic 2 only. What older producers send is converted before it is appended, and
what older consumers fetch is converted on the way out, so that neither can tell a log of an older
format from this one. Offsets, keys, values and timestamps stay; older formats have no headers, and
magic 0 has no timestamps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import structs

from kproto.errors import KprotoError
from kproto.records import Compression, Record, RecordBatches, TimestampType, build_batch
from kproto.records.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP
from mockbroker.log.batch_header import BatchHeader, Buffer

__all__ = ["CODECS", "ConversionError", "down_convert", "rebuild"]

CODECS: Final = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
"""The values of ``compression.type`` but for "producer", which keeps the codec of a batch."""


class ConversionError(KprotoError):
    """A batch of zstd, which the older formats do not have (UNSUPPORTED_COMPRESSION_TYPE)."""


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


def down_convert(slices: Iterable[Buffer], magic: int, first_offset: int = 0) -> list[bytes]:
    """Return whole batches of magic 2 as those of magic 0 or 1, without control batches.

    In a batch without compression the records before ``first_offset`` are left out, as in Kafka.
    Raises ConversionError for a batch of zstd, and MissingExtraError for a codec that is not
    installed.
    """
    converted = []
    for batch in RecordBatches(b"".join(slices), check_crc=False):
        if batch.is_control:
            continue
        if batch.compression is Compression.ZSTD:
            raise ConversionError(f"zstd requires magic 2, not {magic}")
        records = [
            structs.replace(each, headers=()) if each.headers else each
            for each in batch.records()
            if batch.compression is not Compression.NONE or each.offset >= first_offset
        ]
        if not records:
            continue
        appended = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
        converted.append(
            build_batch(
                records,
                magic=magic,
                compression=batch.compression,
                timestamp_type=_timestamp_type(magic, appended),
                log_append_time=batch.max_timestamp if appended else NO_TIMESTAMP,
                base_offset=batch.base_offset,
            )
        )
    return converted


def _timestamp_type(magic: int, appended: bool) -> TimestampType:
    if magic == 0:
        return TimestampType.NO_TIMESTAMP_TYPE
    return TimestampType.LOG_APPEND_TIME if appended else TimestampType.CREATE_TIME
