"""Older messages for older clients: Fetch 0 and 1 know magic 0 only, 2 and 3 magic 0 and 1.

Releases before 4.0 convert what they store as magic 2. Headers are lost, control batches left out;
batches of zstd cannot be converted (KIP-110). Logs of an older format (``message.format.version``)
give all clients messages of it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from kproto.error_codes import ErrorCode
from kproto.errors import MissingExtraError
from kproto.records import Batch, Compression, Record, RecordBatches, TimestampType, build_batch
from mockbroker.simulation.fetching.query import FetchQuery, PartitionAnswer
from mockbroker.simulation.log.log_settings import LogSettings
from mockbroker.simulation.releases.rows import Row, always, refuse, with_arguments

__all__ = [
    "CONVERSION",
    "FORMAT_REFUSALS",
    "OLDEST_AS_STORED",
    "Conversion",
    "UnsupportedCompressionError",
    "converted",
]

OLDEST_AS_STORED: Final = 10
"""From this version on, records go out as they are stored, whatever the topic's configs."""

_NEWEST_MAGIC: Final = 2
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
        self.magic = min(0 if version <= 1 else 1 if version <= 3 else 2, settings.magic)

    def refuse(self, code: ErrorCode) -> None:
        self.answer.fail(code)


@with_arguments
def _convert_records(
    subject: Conversion, *, fills: bool = True, keeps_incomplete: bool = True
) -> None:
    """Replace the records by older ones."""
    answer = subject.answer
    try:
        data = converted(
            answer.records or (), subject.magic, answer.position.offset,
            fills=fills, keeps_incomplete=keeps_incomplete,
        )  # fmt: skip
    except UnsupportedCompressionError:
        subject.refuse(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    else:
        answer.records, answer.size = (memoryview(data),), len(data)


CONVERSION: Final[tuple[Row[Conversion, Conversion], ...]] = (
    Row(
        "DP-FORMAT-05",
        lambda at: at.query.version < OLDEST_AS_STORED and at.settings.compression_type == "zstd",
        (refuse(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),),
        since=(2, 1),
        until=(4, 0),
    ),
    Row(
        "DP-FORMAT-04",
        lambda at: (
            at.magic < at.settings.magic
            and not at.query.from_replica
            and not at.settings.down_conversion
        ),
        (refuse(ErrorCode.UNSUPPORTED_VERSION),),
        since=(2, 0),
    ),
    Row(
        "DP-FORMAT-03",
        lambda at: at.magic < _NEWEST_MAGIC and at.answer.size > 0,
        (_convert_records(keeps_incomplete=False),),
        since=(3, 0),
    ),
    Row(
        "REL-110",
        lambda at: at.magic < _NEWEST_MAGIC and at.answer.size > 0,
        (_convert_records(),),
        since=(2, 0),
        until=(3, 0),
    ),
    Row(
        "REL-28",
        lambda at: at.magic < _NEWEST_MAGIC and at.answer.size > 0,
        (_convert_records(fills=False),),
        until=(2, 0),
    ),
)


def _use_default_fields(subject: PartitionAnswer) -> None:
    """Kafka's classes leave these two fields at their defaults."""
    subject.aborted, subject.records = [], None


FORMAT_REFUSALS: Final[tuple[Row[PartitionAnswer, PartitionAnswer], ...]] = (
    Row("DP-FORMAT-04", always, (_use_default_fields,), since=(3, 0)),
)
"""How a refusal by ``CONVERSION`` differs from other errors."""


class UnsupportedCompressionError(Exception):
    """A batch of zstd, which older formats do not have, or of a codec whose library is missing."""


def converted(
    slices: Sequence[memoryview], magic: int, offset: int, *, fills: bool, keeps_incomplete: bool
) -> bytes:
    """Convert whole batches to messages of ``magic`` 0 or 1, for a reader at ``offset``.

    If not even one batch is whole, the bytes stay as they are if it ``keeps_incomplete`` ones, or
    none are left. If it ``fills``, as many bytes come out as there were, or the first batch if that
    is larger: the rest is the beginning of a message that is too large, which clients leave alone.
    Raises UnsupportedCompressionError if the first batch cannot be converted.
    """
    parts: list[bytes] = []
    batch, size = None, sum(map(len, slices))
    for batch in RecordBatches(b"".join(slices), check_crc=False, allow_partial=True):
        if batch.is_control:
            continue
        try:
            messages = _messages(batch, magic, offset)
        except UnsupportedCompressionError:
            if parts:
                break  # the client's next fetch begins here, and fails
            raise
        if messages:
            parts.append(messages)
    if batch is None and keeps_incomplete:
        return b"".join(slices)
    if batch is None or not fills:
        return b"".join(parts)
    size = max(size, len(parts[0]) if parts else _TOO_LARGE.size)
    data = b"".join(parts)[:size]
    left = size - len(data)
    return (data + _TOO_LARGE.pack(-1, max(left + 1, _BATCH_OVERHEAD))).ljust(size, b"\0")[:size]


def _messages(batch: Batch, magic: int, offset: int) -> bytes:
    """A batch as messages. Without compression those before ``offset`` are left out."""
    if batch.compression is Compression.ZSTD:
        raise UnsupportedCompressionError
    try:
        records = batch.records()
    except MissingExtraError as error:
        raise UnsupportedCompressionError from error
    if batch.compression is Compression.NONE:
        records = [each for each in records if each.offset >= offset]
    if not records:
        return b""
    appended = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    return build_batch(
        [Record(each.offset, each.timestamp, each.key, each.value) for each in records],
        magic=magic,
        compression=batch.compression,
        timestamp_type=batch.timestamp_type if magic else TimestampType.NO_TIMESTAMP_TYPE,
        log_append_time=batch.max_timestamp if appended else -1,
        base_offset=records[0].offset,
    )
