"""The settings of a batch to be written. Refuses what Kafka's builder refuses."""

from __future__ import annotations

from typing import Any, Final, TypedDict

import msgspec

from kproto.errors import EncodeError
from kproto.records.model import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME_BIT,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    Compression,
    TimestampType,
)

__all__ = ["BatchArguments", "BatchSettings"]

_BITS: Final = {
    "base_offset": 64,
    "log_append_time": 64,
    "producer_id": 64,
    "delete_horizon": 64,
    "producer_epoch": 16,
    "base_sequence": 32,
    "partition_leader_epoch": 32,
}
_NULLABLE: Final = ("base_offset", "delete_horizon")
_ENUMS: Final[dict[str, type[Any]]] = {"compression": Compression, "timestamp_type": TimestampType}


class BatchArguments(TypedDict, total=False):
    """The keyword arguments that become ``BatchSettings``, for type checkers."""

    magic: int
    compression: Compression
    level: int | None
    timestamp_type: TimestampType
    log_append_time: int
    base_offset: int | None
    partition_leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    delete_horizon: int | None


class BatchSettings(msgspec.Struct, kw_only=True, frozen=True):
    """The header of a batch to be written, and its compression.

    The defaults are those of a producer that is neither idempotent nor transactional.
    """

    magic: int = 2
    compression: Compression = Compression.NONE
    level: int | None = None
    """The codec's own compression level; None is its default."""
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    log_append_time: int = NO_TIMESTAMP
    """With LOG_APPEND_TIME: the time of appending on the broker, in milliseconds."""
    base_offset: int | None = None
    """None means the first record's offset, or 0 if it has none."""
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False
    delete_horizon: int | None = None
    """KIP-534: the time in milliseconds from which compaction may remove the batch's tombstones."""

    def check(self) -> None:
        """Raise EncodeError, with the name of the setting as path, for settings that no batch can
        have."""
        for name, kind in _ENUMS.items():
            if not isinstance(value := getattr(self, name), kind):
                raise EncodeError(f"{value!r} is not a {kind.__name__}", path=name)
        if self.magic not in (0, 1, 2):
            raise EncodeError(f"{self.magic} is not 0, 1 or 2", path="magic")
        if self.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE and self.magic > 0:
            raise EncodeError("timestamps require magic 1 or 2", path="timestamp_type")
        for name, bits in _BITS.items():
            value = getattr(self, name)
            if value is None and name in _NULLABLE:
                continue
            if type(value) is not int or not -1 << bits - 1 <= value < 1 << bits - 1:
                raise EncodeError(f"{value!r} is not an int{bits}", path=name)
        for name in _NULLABLE:
            value = getattr(self, name)
            if value is not None and value < 0:
                raise EncodeError(f"{value} is negative", path=name)
        if self.magic < 2:
            self._check_old()
        self._check_producer()

    def _check_old(self) -> None:
        if self.compression is Compression.ZSTD:
            raise EncodeError("zstd requires magic 2", path="compression")
        for name in ("is_transactional", "is_control"):
            if getattr(self, name):
                raise EncodeError("requires magic 2", path=name)
        if self.delete_horizon is not None:
            raise EncodeError("requires magic 2", path="delete_horizon")

    def _check_producer(self) -> None:
        if self.producer_id == NO_PRODUCER_ID:
            if self.is_transactional:
                raise EncodeError("is required for a transactional batch", path="producer_id")
            return
        if self.producer_epoch == NO_PRODUCER_EPOCH:
            raise EncodeError("is required with a producer id", path="producer_epoch")
        if self.base_sequence < 0 and not self.is_control:
            raise EncodeError("is required with a producer id", path="base_sequence")

    @property
    def attributes(self) -> int:
        """The attribute bits of the batch's header."""
        bits = int(self.compression)
        if self.magic > 0 and self.timestamp_type is TimestampType.LOG_APPEND_TIME:
            bits |= LOG_APPEND_TIME_BIT
        if self.is_transactional:
            bits |= TRANSACTIONAL
        if self.is_control:
            bits |= CONTROL
        if self.delete_horizon is not None:
            bits |= DELETE_HORIZON
        return bits
