"""Messages of magic 0 and 1, wrapper messages included, which Kafka wrote before 0.11.

======  ======  ==========================  =======================================================
byte    type    field
======  ======  ==========================  =======================================================
0       int64   offset
8       int32   message_size                bytes after this field
12      uint32  crc                         CRC-32 of all that follows
16      int8    magic                       0 or 1
17      int8    attributes                  codec; magic 1: who set the timestamp (KIP-32)
18      int64   timestamp                   magic 1 only
..      bytes   key                         int32 length (-1: null), then the bytes
..      bytes   value                       the same; compressed messages in a wrapper
======  ======  ==========================  =======================================================

A wrapper has the offset of its last message. Within it, magic 0 has absolute offsets and magic 1
offsets relative to the first message (KIP-31).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from kproto.errors import DecodeError
from kproto.records.batch import Batch
from kproto.records.crc import crc32
from kproto.records.model import (
    CODEC_MASK,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    Compression,
    Record,
    TimestampType,
)
from kproto.records.native import record_codec
from kproto.records.window import Window, unpacked

__all__ = ["ENTRY_HEADER", "LEAST_MESSAGE", "MessageBatch"]

ENTRY_HEADER: Final = 12
"""The size of offset and size, which precede every message."""
LEAST_MESSAGE: Final = 14
"""The size of a message of magic 0 without key and value."""
CRC: Final = 12
CHECKED: Final = 16
ATTRIBUTES: Final = 17

_HEAD: Final = struct.Struct(">qiIbb")
_LONG: Final = struct.Struct(">q")
_INT: Final = struct.Struct(">i")


class _Message(NamedTuple):
    offset: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: Window | None
    """The offset of the value; None if it is null."""

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the timestamps are those of the producer or of the broker."""
        if self.magic == 0:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType(bool(self.attributes & LOG_APPEND_TIME_BIT))

    def record(self) -> Record:
        value = self.value
        payload = None if value is None else value.data[value.at : value.end]
        return Record(self.offset, self.timestamp, self.key, payload)


def _read(window: Window, check_crc: bool) -> _Message:
    """Read the message that fills ``window``, offset and size included."""
    data, start, end, _, _ = window
    offset, _size, crc, magic, attributes = _HEAD.unpack_from(data, start)
    if check_crc and (computed := crc32(data[start + CHECKED : end])) != crc:
        raise window.error(f"checksum is {computed:#010x}, not {crc:#010x}", start + CRC, "crc")
    at = start + _HEAD.size
    timestamp = NO_TIMESTAMP
    if magic == 1:
        (timestamp,) = _LONG.unpack_from(data, at)  # within LEAST_MESSAGE
        at += 8
    key, at = _bytes(window, at, "key")
    value, at = _bytes(window, at, "value")
    if at != end:
        raise window.error(f"{end - at} bytes after the message's value", at)
    key_bytes = None if key is None else data[key.at : key.end]
    return _Message(offset, crc, magic, attributes, timestamp, key_bytes, value)


def _bytes(window: Window, begin: int, field: str) -> tuple[Window | None, int]:
    left = window.end - begin
    if left < 4:
        raise window.error(f"bytes needed: 4, left: {left}", begin, field)
    (length,) = _INT.unpack_from(window.data, begin)
    at = begin + 4
    if length == -1:
        return None, at
    if length < 0:
        raise window.error(f"length {length} is negative, and only -1 means null", begin, field)
    if length > left - 4:
        raise window.error(f"bytes needed: {length}, left: {left - 4}", begin, field)
    return window._replace(at=at, end=at + length), at + length


class MessageBatch(Batch):
    """A message of magic 0 or 1: one record, or the wrapper of several."""

    def __init__(self, window: Window, check_crc: bool, limit: int) -> None:
        self._window = window
        self._limit = limit
        self._check_crc = check_crc
        self.offset = window.at
        self.size = window.end - window.at
        self._message = message = _read(window, check_crc)
        self.magic = message.magic
        self.crc = message.crc
        self.attributes = message.attributes
        self.last_offset = message.offset
        self.max_timestamp = message.timestamp
        if message.codec > Compression.LZ4:
            raise self._error(
                "zstd requires magic 2"
                if message.codec == Compression.ZSTD
                else f"no codec has number {message.codec}",
                ATTRIBUTES,
                "attributes",
            )
        if message.codec and message.value is None:
            raise self._error("a wrapper's value may not be null", _HEAD.size, "value")

    def _error(self, problem: str, byte: int, field: str) -> DecodeError:
        return self._window.error(problem, self.offset + byte, field)

    @property
    def base_offset(self) -> int:
        """The offset of the first record. For a wrapper, this requires decompression."""
        return self.records()[0].offset if self.compression else self.last_offset

    @property
    def timestamp_type(self) -> TimestampType:
        return self._message.timestamp_type

    def crc_is_right(self) -> bool:
        return crc32(self.data[CHECKED:]) == self.crc

    def records(self) -> list[Record]:
        value = self._message.value
        if value is None or not self.compression:
            return [self._message.record()]
        inner = unpacked(value, self.compression, self.magic, self._limit, "records")
        return self._in_c(inner) or self._in_python(inner)

    def _in_c(self, inner: Window) -> list[Record] | None:
        """Return the records read by the C extension; None if it is not in use or something may be
        wrong."""
        if (codec := record_codec()) is None:
            return None
        appended = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        return codec.read_messages(
            inner.data,
            inner.at,
            inner.end,
            self.magic,
            self.last_offset,
            crc32 if self._check_crc else None,
            self.max_timestamp if appended else None,
        )

    def _in_python(self, inner: Window) -> list[Record]:
        messages = self._inner(inner)
        if not messages:
            raise inner.error("a wrapper without messages", inner.at, "records")
        base = self._base(messages[-1].offset) if self.magic == 1 else 0
        appended = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        return [
            message._replace(
                offset=base + message.offset,
                timestamp=self.max_timestamp if appended else message.timestamp,
            ).record()
            for message in messages
        ]

    def _inner(self, window: Window) -> list[_Message]:
        messages: list[_Message] = []
        at = window.at
        while at < window.end:
            part = window.part(at, window.end, f"records[{len(messages)}]")
            left = window.end - at
            if left < ENTRY_HEADER:
                raise part.error(f"bytes needed: {ENTRY_HEADER}, left: {left}", at)
            (size,) = _INT.unpack_from(window.data, at + 8)
            if not LEAST_MESSAGE <= size <= left - ENTRY_HEADER:
                problem = f"message of {size} bytes, at least {LEAST_MESSAGE}"
                raise part.error(f"{problem}, left: {left - ENTRY_HEADER}", at + 8, "message_size")
            message = _read(part._replace(end=at + ENTRY_HEADER + size), self._check_crc)
            if message.magic != self.magic:
                problem = f"magic {message.magic} in a wrapper of magic {self.magic}"
                raise part.error(problem, at + CHECKED, "magic")
            if message.codec:
                raise part.error(
                    "a compressed message within a wrapper", at + ATTRIBUTES, "attributes"
                )
            messages.append(message)
            at += ENTRY_HEADER + size
        return messages

    def _base(self, last_inner: int) -> int:
        """Return the number to add to the offsets within a wrapper of magic 1.

        Some releases of librdkafka produced wrappers of offset 0, whose offsets count from 0.
        """
        if self.last_offset == 0:
            return 0
        if self.last_offset < last_inner:
            raise self._error(
                f"wrapper's offset {self.last_offset} is below its last message's, {last_inner}",
                0,
                "offset",
            )
        return self.last_offset - last_inner
