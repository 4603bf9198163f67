"""What batches of every magic have in common: the header's facts and records on demand."""

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
from kproto.records.place import Window

__all__ = ["Batch"]

LAST_SEQUENCE: Final = 0x7FFFFFFF


class Batch:
    """One batch: its header is read, its records are when asked for.

    Iterating, or ``records()``, decodes them all at once: a batch is read whole or refused with a
    DecodeError. Nothing is kept; ask once, or keep the list.

    A message of magic 0 or 1 is a batch of one record, and a wrapper message one of many. What
    those formats lack is -1 or False, as in Kafka's own classes.
    """

    magic: int
    offset: int
    """The first byte of the batch in the buffer that was read."""
    size: int
    """Bytes of the batch, its header included."""
    crc: int
    """As the batch says it, unsigned: CRC-32C for magic 2, else CRC-32."""
    attributes: int
    """As on the wire: int16 for magic 2, else int8."""
    last_offset: int
    """The offset of its last record, or the last it had before compaction."""
    max_timestamp: int
    """The largest timestamp of its records, or the broker's; -1 for magic 0."""
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE

    _window: Window
    _limit: int

    @property
    def base_offset(self) -> int:
        """The offset of its first record, or the first it had before compaction."""
        raise NotImplementedError

    @property
    def next_offset(self) -> int:
        """Where to fetch from after this batch."""
        return self.last_offset + 1

    @property
    def compression(self) -> Compression:
        return Compression(self.attributes & CODEC_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        raise NotImplementedError

    @property
    def is_transactional(self) -> bool:
        return self.magic == 2 and bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether its records are markers; ``kproto.records.control`` reads them."""
        return self.magic == 2 and bool(self.attributes & CONTROL)

    @property
    def delete_horizon(self) -> int | None:
        """From when on, in milliseconds, compaction may drop its tombstones (KIP-534), or None."""
        return None

    @property
    def last_sequence(self) -> int:
        """The sequence of its last record, -1 without sequences. After 2^31 - 1 comes 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        last = self.base_sequence + self.last_offset - self.base_offset
        return last if last <= LAST_SEQUENCE else last - LAST_SEQUENCE - 1

    @property
    def data(self) -> bytes:
        """The batch's own bytes."""
        return self._window.data[self.offset : self.offset + self.size]

    def crc_is_right(self) -> bool:
        """Whether the checksum fits the bytes it covers."""
        raise NotImplementedError

    def records(self) -> list[Record]:
        """Every record. Raises DecodeError, and MissingExtraError for a codec not installed."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records())

    def __repr__(self) -> str:
        kind = "control " if self.is_control else ""
        return (
            f"<{type(self).__name__} magic {self.magic}, {kind}up to offset {self.last_offset}, "
            f"{self.size} bytes at {self.offset}>"
        )
