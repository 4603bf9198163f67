"""Records and the constants of the formats: codecs, kinds of timestamps, attribute bits.

This module contains values only. ``batches``, ``record_batch`` and ``message_set`` read them;
``build`` writes them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import msgspec

__all__ = [
    "CONTROL",
    "DELETE_HORIZON",
    "MAX_DECOMPRESSED",
    "NO_PARTITION_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "TRANSACTIONAL",
    "Compression",
    "Header",
    "Record",
    "TimestampType",
]

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1

MAX_DECOMPRESSED: Final = 128 << 20
"""The default limit of one batch's decompressed records, in bytes.

Kafka has no such limit; its largest batch is ``message.max.bytes``, 1 MiB unless configured.
"""

# Bits of a batch's attributes. The lowest three are the codec.
CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL: Final = 0x10
"""Attribute bit: the batch is part of a transaction (KIP-98)."""
CONTROL: Final = 0x20
"""Attribute bit: a control batch, whose records are for clients instead of applications
(KIP-98)."""
DELETE_HORIZON: Final = 0x40
"""Attribute bit: the base timestamp is the time from which compaction may remove tombstones
(KIP-534)."""

Header = tuple[str, bytes | None]
"""A record's header (KIP-82): its key, and its value or None."""


class Compression(IntEnum):
    """The codec of a batch, by its number in the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4
    """KIP-110, only in batches of magic 2."""


class TimestampType(IntEnum):
    """Who set the timestamps (KIP-32)."""

    NO_TIMESTAMP_TYPE = -1
    """Messages of magic 0 have no timestamp."""
    CREATE_TIME = 0
    """The producer."""
    LOG_APPEND_TIME = 1
    """The broker, once for the whole batch."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record, of any magic.

    In a record that was read, ``offset`` is absolute and ``timestamp`` (milliseconds since the
    epoch) is what a consumer returns: the broker's in a batch of log append time, and -1 if there
    is none. Magic 0 and 1 have no headers.

    In a record to be written, an ``offset`` of -1 means the one after the previous record.
    """

    offset: int = -1
    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
