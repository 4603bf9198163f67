"""Encode records as messages of magic 0 or 1, as Kafka did before 0.11.

The reference is the MemoryRecordsBuilder of Kafka 3.9, the last that writes them. Without
compression the messages follow one another; with it, one wrapper holds them and has the last offset
and the largest timestamp.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from kproto.errors import EncodeError
from kproto.records.checks import explain
from kproto.records.compression import compress
from kproto.records.crc import crc32
from kproto.records.model import LOG_APPEND_TIME_BIT, Compression, Record, TimestampType
from kproto.records.settings import BatchSettings

__all__ = ["encode_messages"]

_ENTRY: Final = struct.Struct(">qiI")
_HEAD_0: Final = struct.Struct(">bb")
_HEAD_1: Final = struct.Struct(">bbq")
CRC_SIZE: Final = 4
LARGEST: Final = 0x7FFFFFFF


class _InvalidRecord(Exception):
    """A record that cannot be written; ``explain`` raises the reason."""


def encode_messages(records: Sequence[Record], settings: BatchSettings) -> bytes:
    """Encode the message set of ``records``, which must not be empty. Raises EncodeError."""
    try:
        base_offset = settings.base_offset
        if base_offset is None:
            base_offset = max(records[0].offset, 0)
        return _encode(records, settings, base_offset)
    except Exception:
        explain(records, settings.base_offset, magic=settings.magic)
        raise


def _encode(records: Sequence[Record], settings: BatchSettings, base_offset: int) -> bytes:
    magic, compressed = settings.magic, settings.compression is not Compression.NONE
    appended = settings.timestamp_type is TimestampType.LOG_APPEND_TIME and magic > 0
    bit = LOG_APPEND_TIME_BIT if appended else 0
    relative = base_offset if compressed and magic == 1 else 0
    parts = []
    last_offset, max_timestamp = base_offset - 1, -1
    for record in records:
        offset = last_offset + 1 if record.offset == -1 else record.offset
        if offset <= last_offset or record.timestamp < -1 or record.headers:
            raise _InvalidRecord
        last_offset = offset
        timestamp = record.timestamp
        if appended and not compressed:
            timestamp = settings.log_append_time
        max_timestamp = max(max_timestamp, timestamp)
        parts.append(_message(offset - relative, magic, bit, timestamp, record.key, record.value))
    inner = b"".join(parts)
    if not compressed:
        return inner
    value = compress(settings.compression, inner, magic=magic, level=settings.level)
    timestamp = settings.log_append_time if appended else max_timestamp
    return _message(last_offset, magic, bit | settings.compression, timestamp, None, value)


def _message(
    offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytes:
    head = _HEAD_1.pack(1, attributes, timestamp) if magic else _HEAD_0.pack(0, attributes)
    body = head + _bytes(key) + _bytes(value)
    size = CRC_SIZE + len(body)
    if size > LARGEST:
        raise EncodeError(f"{size} bytes exceed an int32", path="records")
    return _ENTRY.pack(offset, size, crc32(body)) + body


def _bytes(value: bytes | None) -> bytes:
    if value is None:
        return b"\xff\xff\xff\xff"
    if not isinstance(value, bytes):
        raise _InvalidRecord
    return len(value).to_bytes(4, "big") + value
