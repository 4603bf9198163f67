"""Encode records as one batch of magic 2, as Kafka's MemoryRecordsBuilder does.

The base timestamp is the first record's, or the delete horizon; deltas are relative to it. Each
number takes its shortest varint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kproto.errors import EncodeError
from kproto.records.checks import explain
from kproto.records.compression import compress
from kproto.records.crc import crc32c
from kproto.records.model import Compression, Header, Record, TimestampType
from kproto.records.native import record_codec
from kproto.records.record_batch import HEADER, HEADER_SIZE
from kproto.records.settings import BatchSettings
from kproto.records.varints import SMALL, wrapped, write

__all__ = ["encode_batch"]

AFTER_LENGTH: Final = 12
"""The size of base offset and batch length in bytes."""
LARGEST: Final = 0x7FFFFFFF

NULL: Final = write(-1)
NO_HEADERS: Final = write(0)


def encode_batch(records: Sequence[Record], settings: BatchSettings) -> bytes:
    """Encode one batch of ``records``, which must not be empty. Raises EncodeError."""
    try:
        base_offset, base_timestamp = settings.base_offset, settings.delete_horizon
        if base_offset is None:
            base_offset = max(records[0].offset, 0)
        if base_timestamp is None:
            base_timestamp = records[0].timestamp
        written = None
        codec = record_codec()
        if codec is not None:
            written = codec.write(records, base_offset, base_timestamp)
        if written is None:
            written = _encode(records, base_offset, base_timestamp)
        body, last_offset, max_timestamp = written
        if settings.timestamp_type is TimestampType.LOG_APPEND_TIME:
            max_timestamp = settings.log_append_time
        if settings.compression is not Compression.NONE:
            body = compress(settings.compression, body, level=settings.level)
        fields = (
            settings.attributes,
            last_offset - base_offset,
            base_timestamp,
            max_timestamp,
            settings.producer_id,
            settings.producer_epoch,
            settings.base_sequence,
            len(records),
        )
        return _with_header(body, base_offset, settings.partition_leader_epoch, fields)
    except Exception:
        explain(records, settings.base_offset, magic=2)
        raise


def _with_header(body: bytes, base_offset: int, epoch: int, fields: tuple[int, ...]) -> bytes:
    length = HEADER_SIZE - AFTER_LENGTH + len(body)
    if length > LARGEST:
        raise EncodeError(f"{length} bytes exceed an int32", path="records")
    # The checksum covers the header from the attributes on, so it is computed first.
    unsigned = HEADER.pack(base_offset, length, epoch, 2, 0, *fields)
    crc = crc32c(unsigned[21:] + body)
    return HEADER.pack(base_offset, length, epoch, 2, crc, *fields) + body


class _InvalidRecord(Exception):
    """A record that cannot be written; ``explain`` raises the reason."""


def _encode(
    records: Sequence[Record], base_offset: int, base_timestamp: int
) -> tuple[bytes, int, int]:
    """Return the records' bytes, the last offset, and the largest timestamp."""
    parts: list[bytes] = []
    append = parts.append
    small, many = SMALL, len(SMALL)
    last_offset = base_offset - 1
    max_timestamp = -1
    for record in records:
        offset = record.offset
        if offset == -1:
            offset = last_offset + 1
        elif offset <= last_offset:
            raise _InvalidRecord
        last_offset = offset
        timestamp = record.timestamp
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        elif timestamp < -1:
            raise _InvalidRecord
        delta = timestamp - base_timestamp
        head = b"\x00" + (small[delta] if 0 <= delta < many else write(wrapped(delta)))
        delta = offset - base_offset
        head += small[delta] if delta < many else write(delta)
        key = record.key
        if key is None:
            head += NULL
        else:
            size = len(key)
            head += (small[size] if size < many else write(size)) + key
        value = record.value
        if value is None:
            head += NULL
            value = b""
        elif not isinstance(value, bytes):  # join would accept any buffer, whatever its length
            raise _InvalidRecord
        else:
            size = len(value)
            head += small[size] if size < many else write(size)
        tail = _headers(record.headers) if record.headers else NO_HEADERS
        size = len(head) + len(value) + len(tail)
        append(small[size] if size < many else write(size))
        append(head)
        append(value)
        append(tail)
    if last_offset - base_offset > LARGEST:
        raise _InvalidRecord
    return b"".join(parts), last_offset, max_timestamp


def _headers(headers: Sequence[Header]) -> bytes:
    small, many = SMALL, len(SMALL)
    size = len(headers)
    parts = [small[size] if size < many else write(size)]
    for key, value in headers:
        raw = key.encode()
        size = len(raw)
        parts.append(small[size] if size < many else write(size))
        parts.append(raw)
        if value is None:
            parts.append(NULL)
        elif not isinstance(value, bytes):
            raise _InvalidRecord
        else:
            size = len(value)
            parts.append(small[size] if size < many else write(size))
            parts.append(value)
    return b"".join(parts)
