"""Older messages for older clients: Fetch 0 and 1 know magic 0 only, 2 and 3 magic 0 and 1.

Releases before 4.0 convert what they store as magic 2. Headers are lost, control batches left out;
batches of zstd cannot be converted (KIP-110). This module decodes records, as no other of the
package does.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kproto.error_codes import ErrorCode
from kproto.errors import MissingExtraError
from kproto.records import Batch, Compression, Record, RecordBatches, TimestampType, build_batch
from mockbroker.fetching.query import FetchQuery, PartitionAnswer
from mockbroker.log.settings import LogSettings
from mockbroker.rows import Row

__all__ = [
    "CONVERSION",
    "OLDEST_AS_STORED",
    "Conversion",
    "UnsupportedCompressionError",
    "converted",
]

OLDEST_AS_STORED: Final = 10
"""From this version on, records go out as they are stored, whatever the topic's configs."""

_TOO_LARGE: Final = struct.Struct(">qi")
_BATCH_OVERHEAD: Final = 61


class Conversion:
    """A partition's answer to a fetch, with the configs of its topic."""

    __slots__ = ("answer", "magic", "query", "settings")

    def __init__(self, answer: PartitionAnswer, settings: LogSettings, query: FetchQuery) -> None:
        self.answer = answer
        self.settings = settings
        self.query = query
        version = query.version
        self.magic = 0 if version <= 1 else 1 if version <= 3 else None


@dataclass(frozen=True, slots=True)
class _Fail:
    """Answer with an error alone."""

    code: ErrorCode

    def perform(self, subject: Conversion, /) -> None:
        subject.answer.fail(self.code)


@dataclass(frozen=True, slots=True)
class _Convert:
    """Replace the records by older ones."""

    def perform(self, subject: Conversion, /) -> None:
        answer, magic = subject.answer, subject.magic
        assert magic is not None, "the row's condition says so"
        try:
            data = converted(b"".join(answer.records or ()), magic, answer.position.offset)
        except UnsupportedCompressionError:
            return _Fail(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE).perform(subject)
        answer.records, answer.size = (memoryview(data),), len(data)
        return None


CONVERSION: Final[tuple[Row[Conversion, Conversion], ...]] = (
    Row(
        "DP-FORMAT-05",
        lambda at: at.query.version < OLDEST_AS_STORED and at.settings.compression_type == "zstd",
        (_Fail(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),),
        since=(2, 1),
        until=(4, 0),
    ),
    Row(
        "DP-FORMAT-04",
        lambda at: (
            at.magic is not None and not at.query.from_replica and not at.settings.down_conversion
        ),
        (_Fail(ErrorCode.UNSUPPORTED_VERSION),),
        since=(2, 0),
    ),
    Row(
        "DP-FORMAT-03",
        lambda at: at.magic is not None and at.answer.size > 0,
        (_Convert(),),
    ),
)


class UnsupportedCompressionError(Exception):
    """A batch's codec is unknown to the older format, or its library is not installed here."""


def converted(data: bytes, magic: int, offset: int) -> bytes:
    """Convert whole batches to messages of ``magic`` 0 or 1, for a reader at ``offset``.

    At most as many bytes as there were come out, but the first batch always. If nothing can be
    converted, it is the beginning of a message that is too large. Raises
    UnsupportedCompressionError.
    """
    parts: list[bytes] = []
    for batch in RecordBatches(data, check_crc=False, allow_partial=True):
        if batch.is_control:
            continue
        if batch.magic <= magic:
            parts.append(data[batch.offset : batch.offset + batch.size])
            continue
        if batch.compression is Compression.ZSTD:
            raise UnsupportedCompressionError
        try:
            parts.append(_messages(batch, magic, offset))
        except MissingExtraError:
            raise UnsupportedCompressionError from None
    parts = [each for each in parts if each]
    if not parts:
        size = max(len(data), _TOO_LARGE.size)
        return _TOO_LARGE.pack(-1, max(size + 1, _BATCH_OVERHEAD)).ljust(size, b"\0")
    return b"".join(parts)[: max(len(data), len(parts[0]))]


def _messages(batch: Batch, magic: int, offset: int) -> bytes:
    """A batch as messages. Without compression those before ``offset`` are left out."""
    records: Iterable[Record] = batch.records()
    if batch.compression is Compression.NONE:
        records = [each for each in records if each.offset >= offset]
    appended = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    return build_batch(
        [Record(each.offset, each.timestamp, each.key, each.value) for each in records],
        magic=magic,
        compression=batch.compression,
        timestamp_type=batch.timestamp_type,
        log_append_time=batch.max_timestamp if appended else -1,
    )
