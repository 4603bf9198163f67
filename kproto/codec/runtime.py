"""Functions that generated decoders and encoders call for cases they do not inline.

None of them explains an error. Any problem raises ``FastPathMiss`` (or another exception); the
generated function then passes the bytes or the value to ``interpreter``.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

__all__ = [
    "SHORT_LENGTH",
    "FastPathMiss",
    "buffers",
    "compact",
    "int16_string",
    "long_array",
    "long_string",
    "make_uuid",
    "packers",
    "repeated",
    "string_length",
    "strings",
    "tagged_section",
    "unknown_tags",
    "unpackers",
    "unsigned_varint",
    "varint",
]

TABLE_SIZE: Final = 128
"""Arrays of up to ``TABLE_SIZE - 2`` numbers use prebuilt unpackers: their count fits in one
byte."""

ONE_BYTE: Final = [bytes((value,)) for value in range(128)]
SHORT_LENGTH: Final = ONE_BYTE[1:]
"""The compact form (length + 1) of the lengths that fit in one byte: 0 to 126."""


class FastPathMiss(Exception):
    """The value or the bytes need the interpreter. Callers of the codec never see this
    exception."""


def varint(data: bytes, at: int, first: int) -> tuple[int, int]:
    """Finish an unsigned varint whose first byte is over 127. Returns the value and its end."""
    value = first & 0x7F
    for shift in (7, 14, 21):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    byte = data[at]
    if byte > 0x07:  # beyond 2^31 - 1: no length, count or tag is that large
        raise FastPathMiss
    return value | byte << 28, at + 1


def long_string(data: bytes, at: int, first: int) -> tuple[bytes, int]:
    """Return a string's bytes and end, given the first byte of its varint. The length must fit an
    int16."""
    size, at = varint(data, at, first) if first > 127 else (first, at)
    if not 0 < size <= 0x8000:
        raise FastPathMiss
    stop = at + size - 1
    return data[at:stop], stop


def int16_string(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    """Return a string's bytes and end, given its int16 length."""
    if size < 0:
        raise FastPathMiss
    return data[at : at + size], at + size


def unknown_tags(data: bytes, at: int, count: int) -> tuple[dict[int, bytes], int]:
    """Read a tagged section whose fields the schema does not define. ``count`` is its first
    byte."""
    if count > 127:
        count, at = varint(data, at, count)
    tags: dict[int, bytes] = {}
    previous = -1
    for _ in range(count):
        tag = data[at]
        at += 1
        if tag > 127:
            tag, at = varint(data, at, tag)
        size = data[at]
        at += 1
        if size > 127:
            size, at = varint(data, at, size)
        if tag <= previous or size > len(data) - at:
            raise FastPathMiss
        previous = tag
        tags[tag] = data[at : at + size]
        at += size
    return tags, at


def long_array(data: bytes, at: int, count: int, letter: str) -> tuple[list[Any], int]:
    """Read ``count`` numbers of format ``letter``."""
    width = struct.calcsize(letter)
    if count < 0 or count * width > len(data) - at:
        raise FastPathMiss
    values = list(struct.unpack_from(f">{count}{letter}", data, at))
    return values, at + count * width


def _refuse_null(*_args: object) -> Any:
    raise FastPathMiss


Unpackers = list[Callable[..., tuple[Any, ...]]]


def _unpackers(format_of: Callable[[int], str], refused: int = 0) -> Unpackers:
    """Return a table of ``unpack_from`` functions indexed by a small number, each made on first
    use. Indexes below ``refused`` raise."""

    def first_use(index: int) -> Callable[..., tuple[Any, ...]]:
        def unpack(data: bytes, at: int) -> tuple[Any, ...]:
            table[index] = struct.Struct(">" + format_of(index)).unpack_from
            return table[index](data, at)

        return unpack

    table: Unpackers = [_refuse_null] * refused
    table += [first_use(index) for index in range(refused, TABLE_SIZE)]
    return table


@cache
def unpackers(letter: str) -> Unpackers:
    """Return unpackers of arrays of ``letter``, indexed by count + 1 as compact lengths are. Index
    0, null, raises."""
    return _unpackers(lambda index: f"{index - 1}{letter}", refused=1)


@cache
def strings(letters: str, more: int) -> Unpackers:
    """Return unpackers of a string's bytes followed by ``letters``. The index is the length as
    written, which is ``more`` than the true length; with ``more`` of 1, index 0 is null and
    raises."""
    return _unpackers(lambda index: f"{index - more}s{letters}", refused=more)


@cache
def repeated(letters: str) -> Unpackers:
    """Return unpackers of ``letters`` repeated, indexed by the number of repetitions."""
    return _unpackers(lambda count: letters * count)


@cache
def packers(prefix: str, letter: str) -> list[Callable[..., bytes]]:
    """Return packers of ``prefix`` followed by ``count`` numbers of ``letter``, indexed by
    count."""
    table: list[Callable[..., bytes]] = []

    def first_use(count: int) -> Callable[..., bytes]:
        def pack(*values: Any) -> bytes:
            table[count] = struct.Struct(f">{prefix}{count}{letter}").pack
            return table[count](*values)

        return pack

    table += [first_use(count) for count in range(TABLE_SIZE - 1)]
    return table


def unsigned_varint(value: int) -> bytes:
    """Encode an unsigned varint: seven bits per byte, lowest first (KIP-482)."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact(length: int) -> bytes:
    """Encode ``length + 1`` as an unsigned varint."""
    return SHORT_LENGTH[length] if length < 127 else unsigned_varint(length + 1)


def buffers(held: Any) -> tuple[tuple[Any, ...], int]:
    """Return the buffers that stand for the value of a field of bytes, and the sum of their
    lengths."""
    if type(held) is bytes:
        return (held,), len(held)
    if type(held) is not tuple:
        raise FastPathMiss
    for each in held:
        if type(each) is not bytes and memoryview(each).nbytes != len(each):
            raise FastPathMiss  # its items are not bytes
    return held, sum(map(len, held))


def string_length(length: int) -> bytes:
    """As ``compact``, for a string, whose length must fit an int16."""
    if length > 0x7FFF:
        raise FastPathMiss
    return compact(length)


def tagged_section(known: list[tuple[int, bytes]], unknown: Mapping[int, bytes]) -> bytes:
    """Encode a tagged section in ascending order of tag. ``known`` holds only fields that differ
    from their default."""
    tags = dict(known)
    for tag, raw in unknown.items():
        if tag in tags or type(tag) is not int or type(raw) is not bytes:
            raise FastPathMiss
        if not 0 <= tag <= 0x7FFFFFFF:
            raise FastPathMiss
        tags[tag] = raw
    parts = [unsigned_varint(len(tags))]
    for tag in sorted(tags):
        raw = tags[tag]
        parts += (unsigned_varint(tag), unsigned_varint(len(raw)), raw)
    return b"".join(parts)


def _uuid_maker() -> Callable[[bytes], uuid.UUID]:
    """Return the fastest function that makes a UUID from 16 bytes on this interpreter.

    ``UUID.__init__`` spends most of its time on arguments we do not pass. Where setting the two
    slots directly gives an equal object, the function does that; elsewhere it calls the
    constructor.
    """

    def construct(raw: bytes) -> uuid.UUID:
        return uuid.UUID(bytes=raw)

    try:
        set_int = uuid.UUID.__dict__["int"].__set__
        set_safe = uuid.UUID.__dict__["is_safe"].__set__
    except (KeyError, AttributeError):
        return construct
    new, kind, unknown = object.__new__, uuid.UUID, uuid.SafeUUID.unknown
    from_bytes = int.from_bytes

    def assemble(raw: bytes) -> uuid.UUID:
        if len(raw) != 16:
            raise FastPathMiss
        value = new(kind)
        set_int(value, from_bytes(raw, "big"))
        set_safe(value, unknown)
        return value

    sample = bytes(range(16))
    try:
        same = assemble(sample) == construct(sample)
        same = same and repr(assemble(sample)) == repr(construct(sample))
    except Exception:  # an interpreter whose UUIDs have other slots
        return construct
    return assemble if same else construct


make_uuid: Final = _uuid_maker()
