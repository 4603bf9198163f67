"""Record batches to send, right ones and wrong ones."""

from __future__ import annotations

import struct
import time
from typing import Any, Final

from kproto.records import Record, build_batch
from kproto.records.crc import crc32c
from kproto.records.record_batch import HEADER

__all__ = ["HOUR_MS", "NOW", "THEN", "batch", "changed", "record"]

HOUR_MS: Final = 3_600_000
NOW: Final = int(time.time() * 1000)
THEN: Final = NOW - HOUR_MS
"""The timestamp of most records: not so recent that it might be a broker's clock."""

_FIELDS: Final = (
    "base_offset", "batch_length", "partition_leader_epoch", "magic", "crc", "attributes",
    "last_offset_delta", "base_timestamp", "max_timestamp", "producer_id", "producer_epoch",
    "base_sequence", "record_count",
)  # fmt: skip
_CHECKED: Final = 21


def record(
    value: bytes | None = b"v", key: bytes | None = b"k", timestamp: int = THEN, **fields: Any
) -> Record:
    return Record(timestamp=timestamp, key=key, value=value, **fields)


def batch(*values: bytes | Record, **settings: Any) -> bytes:
    """One batch of records with these values, or of these records."""
    rows = [each if isinstance(each, Record) else record(each) for each in values or (b"v",)]
    return build_batch(rows, **settings)


def changed(data: bytes, *, crc_right: bool = True, **fields: int) -> bytes:
    """A batch of magic 2 with other values in its header, and its checksum computed anew."""
    values = dict(zip(_FIELDS, HEADER.unpack_from(data), strict=True))
    values.update(fields)
    made = bytearray(HEADER.pack(*values.values()) + data[HEADER.size :])
    if crc_right:
        struct.pack_into(">I", made, 17, crc32c(bytes(made), _CHECKED, len(made)))
    return bytes(made)
