"""The common part of batches of every magic: facts of the header, and records on demand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kproto.records.model import (
    CODEC_MASK,
    CONTROL,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL,
    Compression,
    Record,
    TimestampType,
)
from kproto.records.window import Window

__all__ = ["Batch"]

LAST_SEQUENCE: Final = 0x7FFFFFFF


class Batch:
    """One batch. Its header has been read; its records are read on demand.

    Iterating, or ``records()``, decodes all records at once: a batch is read whole or refused with
    a DecodeError. Nothing is cached, so keep the list if you need it again.

    A message of magic 0 or 1 is a batch of one record, and a wrapper message is a batch of many.
    Facts that those formats lack are -1 or False, as in Kafka's own classes.
    """

    magic: int
    offset: int
    """The offset of the batch's first byte in the buffer."""
    size: int
    """The size of the batch in bytes, its header included."""
    crc: int
    """The checksum in the batch, unsigned: CRC-32C for magic 2, else CRC-32."""
    attributes: int
    """The attributes on the wire: int16 for magic 2, else int8."""
    last_offset: int
    """The offset of the last record, or of the last one before compaction."""
    max_timestamp: int
    """The largest timestamp of the records, or the broker's; -1 for magic 0."""
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE

    _window: Window
    _limit: int

    @property
    def base_offset(self) -> int:
        """The offset of the first record, or of the first one before compaction."""
        raise NotImplementedError

    @property
    def next_offset(self) -> int:
        """The offset from which to fetch after this batch."""
        return self.last_offset + 1

    @property
    def compression(self) -> Compression:
        """The codec of the records."""
        return Compression(self.attributes & CODEC_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the timestamps are those of the producer or of the broker."""
        raise NotImplementedError

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return self.magic == 2 and bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the records are markers, which ``kproto.records.control`` reads."""
        return self.magic == 2 and bool(self.attributes & CONTROL)

    @property
    def delete_horizon(self) -> int | None:
        """The time in milliseconds from which compaction may remove the batch's tombstones
        (KIP-534), or None."""
        return None

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, or -1 without sequences. The successor of 2^31 - 1 is
        0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        last = self.base_sequence + self.last_offset - self.base_offset
        return last if last <= LAST_SEQUENCE else last - LAST_SEQUENCE - 1

    @property
    def data(self) -> bytes:
        """The batch's own bytes."""
        return self._window.data[self.offset : self.offset + self.size]

    def crc_is_right(self) -> bool:
        """Whether the checksum matches the bytes it covers."""
        raise NotImplementedError

    def records(self) -> list[Record]:
        """Return all records. Raises DecodeError, and MissingExtraError for a codec that is not
        installed."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records())

    def __repr__(self) -> str:
        kind = "control " if self.is_control else ""
        return (
            f"<{type(self).__name__} magic {self.magic}, {kind}up to offset {self.last_offset}, "
            f"{self.size} bytes at {self.offset}>"
        )
