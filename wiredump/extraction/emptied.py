"""Remove the contents of records: every key, value and header value is replaced by zeros of its
length.

Offsets, timestamps, counts, sizes of records, codecs and producer ids stay, and so do defects: a
batch that cannot be read keeps its header, followed by zeros, and a cut batch stays cut. Control
batches are written by the broker, and kept.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kproto.errors import DecodeError, EncodeError
from kproto.records import Batch, Compression, Record, RecordBatch, RecordBatches, build_batch
from kproto.records.crc import crc32c
from kproto.records.record_batch import HEADER, HEADER_SIZE

__all__ = ["emptied"]

_MESSAGE_HEADER: Final = 18
"""The bytes of a message of magic 0 or 1 before its contents."""
_CRC: Final = 4
_BASE_TIMESTAMP: Final = 7
"""Positions of fields in a batch's header."""


def emptied(data: bytes) -> bytes:
    """Return a field of type ``records`` without contents.

    Raises MissingExtraError if the library of a batch's codec is not installed: the batch is not
    damaged, and zeros in its place would be unreadable for clients.
    """
    out: list[bytes] = []
    at = 0
    try:
        for batch in RecordBatches(data, allow_partial=True, check_crc=False):
            out.append(_batch(batch))
            at = batch.offset + batch.size
    except DecodeError:
        pass  # the rest cannot be read by anybody
    return b"".join([*out, _zeros(data[at:])])


def _batch(batch: Batch) -> bytes:
    if batch.is_control or (isinstance(batch, RecordBatch) and not batch.record_count):
        return batch.data
    if not batch.crc_is_right():
        return _zeros(batch.data)
    try:
        records = [_record(record) for record in batch]
        if isinstance(batch, RecordBatch):
            return _rebuilt(batch, records)
        return _message(batch, records)
    except (DecodeError, EncodeError):
        return _zeros(batch.data)


def _record(record: Record) -> Record:
    return msgspec.structs.replace(
        record,
        key=_same_length(record.key),
        value=_same_length(record.value),
        headers=tuple((name, _same_length(value)) for name, value in record.headers),
    )


def _same_length(value: bytes | None) -> bytes | None:
    return None if value is None else bytes(len(value))


def _rebuilt(batch: RecordBatch, records: list[Record]) -> bytes:
    """Rebuild the header with a new size, checksum and base timestamp."""
    made = build_batch(
        records, compression=Compression(batch.compression), base_offset=batch.base_offset,
        delete_horizon=batch.delete_horizon,
    )  # fmt: skip
    fields = list(HEADER.unpack_from(batch.data))
    fields[1] = len(made) - 12
    fields[_BASE_TIMESTAMP] = HEADER.unpack_from(made)[_BASE_TIMESTAMP]
    body = made[HEADER_SIZE:]
    fields[_CRC] = 0
    fields[_CRC] = crc32c(HEADER.pack(*fields)[21:] + body)
    return HEADER.pack(*fields) + body


def _message(batch: Batch, records: list[Record]) -> bytes:
    """Empty a message of magic 0 or 1; a wrapper keeps its codec."""
    return build_batch(
        records,
        magic=batch.magic,
        compression=Compression(batch.compression),
        timestamp_type=batch.timestamp_type,
        log_append_time=batch.max_timestamp,
    )


def _zeros(data: bytes) -> bytes:
    """Return the header of a batch that cannot be read, whole or not, followed by zeros."""
    is_old = len(data) > 16 and data[16] < 2
    kept = data[: _MESSAGE_HEADER if is_old else HEADER_SIZE]
    return kept + bytes(len(data) - len(kept))
