"""The header of a record batch of magic 2, read in place: no record is decoded.

``kproto.records.record_batch`` has the layout.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple, TypeAlias

from kproto.records.crc import crc32c
from kproto.records.model import CODEC_MASK, CONTROL, LOG_APPEND_TIME_BIT, TRANSACTIONAL
from kproto.records.record_batch import HEADER, HEADER_SIZE

__all__ = [
    "HEADER_SIZE",
    "BatchHeader",
    "Buffer",
    "read_header",
    "with_header",
    "with_time",
]

Buffer: TypeAlias = bytes | bytearray | memoryview

_CRC_AT: Final = 17
_CHECKED_AT: Final = 21
_UNSIGNED: Final = struct.Struct(">I")
_unpack_header: Final = HEADER.unpack_from
_new_tuple: Final = tuple.__new__
"""As ``BatchHeader._make``, which every batch would take, without a call in Python."""


class BatchHeader(NamedTuple):
    """The fields of a header, in wire order."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.length + 12

    @property
    def last_offset(self) -> int:
        """The offset of the last record, also where compaction has removed it."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        """The number of the compression codec."""
        return self.attributes & CODEC_MASK

    @property
    def has_append_time(self) -> bool:
        """Whether ``max_timestamp`` is the broker's time, and that of every record."""
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a marker of a transaction, or another control record."""
        return bool(self.attributes & CONTROL)


def read_header(data: Buffer, at: int = 0) -> BatchHeader:
    """Read the header that starts at byte ``at``; at least ``HEADER_SIZE`` bytes must follow."""
    return _new_tuple(BatchHeader, _unpack_header(data, at))


def with_time(data: Buffer, header: BatchHeader, max_timestamp: int, *, append_time: bool) -> bytes:
    """Return the batch with another largest timestamp and kind of timestamps, and its checksum
    computed anew. The records keep their own timestamps."""
    bit = LOG_APPEND_TIME_BIT if append_time else 0
    attributes = header.attributes & ~LOG_APPEND_TIME_BIT | bit
    return with_header(data, header._replace(attributes=attributes, max_timestamp=max_timestamp))


def with_header(data: Buffer, header: BatchHeader) -> bytes:
    """Return the batch with these fields, and its checksum computed anew."""
    changed = bytearray(data)
    HEADER.pack_into(changed, 0, *header)
    _UNSIGNED.pack_into(changed, _CRC_AT, crc32c(changed, _CHECKED_AT))
    return bytes(changed)
