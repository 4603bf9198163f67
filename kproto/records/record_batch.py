"""Record batches, magic 2 (KIP-98): the header, and the way to the records.

======  ======  ==========================  =======================================================
byte    type    field
======  ======  ==========================  =======================================================
0       int64   base_offset
8       int32   batch_length                bytes after this field
12      int32   partition_leader_epoch      set by the leader, and so outside the checksum
16      int8    magic                       2
17      uint32  crc                         CRC-32C of all that follows
21      int16   attributes                  codec, and the bits of ``model``
23      int32   last_offset_delta
27      int64   base_timestamp              or the delete horizon (KIP-534)
35      int64   max_timestamp
43      int64   producer_id
51      int16   producer_epoch
53      int32   base_sequence
57      int32   record_count
61              records, compressed together
======  ======  ==========================  =======================================================
"""

from __future__ import annotations

import struct
from typing import Final

from kproto.errors import DecodeError
from kproto.records.batch import Batch
from kproto.records.crc import crc32c
from kproto.records.model import (
    CODEC_MASK,
    DELETE_HORIZON,
    LOG_APPEND_TIME_BIT,
    Compression,
    Record,
    TimestampType,
)
from kproto.records.record import LEAST_RECORD, Section, read_records
from kproto.records.window import Window, unpacked

__all__ = ["HEADER", "HEADER_SIZE", "RecordBatch"]

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = HEADER.size
CRC: Final = 17
CHECKED: Final = 21
"""The offset of the first byte that the checksum covers."""


class RecordBatch(Batch):
    """A batch of magic 2."""

    base_offset: int = 0
    last_offset_delta: int
    base_timestamp: int
    record_count: int

    def __init__(self, window: Window, check_crc: bool, limit: int) -> None:
        self._window = window
        self._limit = limit
        self.offset = window.at
        self.size = window.end - window.at
        if self.size < HEADER_SIZE:
            raise window.error(
                f"batch of {self.size} bytes is shorter than its header, {HEADER_SIZE} bytes",
                window.at + 8,
                "batch_length",
            )
        (
            self.base_offset,
            _length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = HEADER.unpack_from(window.data, window.at)
        self.last_offset = self.base_offset + self.last_offset_delta
        if self.last_offset_delta < 0 or self.last_offset >> 63 > 0:
            problem = f"{self.last_offset} from {self.base_offset} on is not a valid last offset"
            raise window.error(problem, window.at + 23, "last_offset_delta")
        if check_crc and not self.crc_is_right():
            raise window.error(
                f"checksum is {self._computed():#010x}, not {self.crc:#010x}",
                window.at + CRC,
                "crc",
            )
        if self.attributes & CODEC_MASK > Compression.ZSTD:
            raise window.error(
                f"no codec has number {self.attributes & CODEC_MASK}",
                window.at + CHECKED,
                "attributes",
            )

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the timestamps are those of the producer or of the broker."""
        return TimestampType(bool(self.attributes & LOG_APPEND_TIME_BIT))

    @property
    def delete_horizon(self) -> int | None:
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    def _computed(self) -> int:
        window = self._window
        return crc32c(window.data, window.at + CHECKED, window.end)

    def crc_is_right(self) -> bool:
        return self._computed() == self.crc

    def __len__(self) -> int:
        """Return ``record_count`` of the header, which ``records`` enforces."""
        return max(self.record_count, 0)

    def records(self) -> list[Record]:
        return read_records(*self.section())

    def section(self) -> Section:
        """Return the decompressed records as bytes, with the header's facts about all of them.

        Raises what ``records`` raises for errors before the first record.
        """
        window = self._window._replace(at=self.offset + HEADER_SIZE)
        codec = self.compression
        if codec is not Compression.NONE and self.record_count:
            window = unpacked(window, codec, 2, self._limit, "records")
        self._check_count(window)
        appended = None
        if self.attributes & LOG_APPEND_TIME_BIT:
            appended = self.max_timestamp
        return Section(window, self.record_count, self.base_offset, self.base_timestamp, appended)

    def _check_count(self, records: Window) -> None:
        """Refuse a count that the bytes cannot hold before anything is allocated for it."""
        count = self.record_count
        problem = ""
        if count < 0:
            problem = f"count {count} is negative"
        elif count * LEAST_RECORD > records.end - records.at:
            problem = f"{count} records do not fit into {records.end - records.at} bytes"
        if problem:
            raise DecodeError(
                problem, offset=self.offset + 57, path=f"{self._window.path}.record_count"
            )
