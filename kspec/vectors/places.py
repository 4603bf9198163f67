"""Find the lengths and counts in a body, and replace them.

Used by ``damage`` and ``kspec.clientfuzz`` to make invalid bodies. Spans are the reference codec's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from kproto.codec.runtime import unsigned_varint
from kproto.reference import FieldSpan
from kproto.schema.model import Field, MessageSchema

__all__ = ["Place", "field_at", "padded", "place_of"]


class Place(NamedTuple):
    """The length or count of a field, from ``start`` to ``end``.

    ``whole`` is the end of the field, ``value`` the number (None for null), and ``size`` its width
    in bytes if it is not a varint.
    """

    span: FieldSpan
    start: int
    end: int
    whole: int
    value: int | None
    size: int
    flexible: bool
    nullable: bool

    def prefix(self, value: int | None) -> bytes:
        """Encode another length or count; None means null."""
        if self.flexible:
            return unsigned_varint(0 if value is None else (value + 1) & 0xFFFFFFFF)
        return (-1 if value is None else value).to_bytes(self.size, "big", signed=True)


def place_of(
    schema: MessageSchema, version: int, span: FieldSpan, spans: Sequence[FieldSpan]
) -> Place:
    """Find the prefix of a ``count``, string, bytes or records field."""
    field = field_at(schema, span.path)
    flexible = schema.is_flexible(version, field)
    # An element of an array of strings is never null.
    nullable = field.is_nullable(version) and not span.path.endswith("]")
    end = span.offset + span.length
    if span.type == "count":
        array = next(each for each in spans if each.path == span.path and each.type[:2] == "[]")
        whole = array.offset + array.length
        return Place(span, span.offset, end, whole, span.value, 4, flexible, nullable)
    size = 2 if span.type == "string" else 4
    if span.value is None:
        return Place(span, span.offset, end, end, None, size, flexible, nullable)
    raw = span.value.encode() if isinstance(span.value, str) else span.value
    return Place(span, span.offset, end - len(raw), end, len(raw), size, flexible, nullable)


def field_at(schema: MessageSchema, path: str) -> Field:
    """Return the field whose value, or one of whose elements, is at a path."""
    first, *names = re.sub(r"\[\d+\]", "", path).split(".")
    field = schema.root.field(first)
    for name in names:
        assert field.type.inner_struct is not None
        field = field.type.inner_struct.field(name)
    return field


def padded(varint: bytes, size: int) -> bytes:
    """Encode the same number in ``size`` bytes."""
    more = bytes((*varint[:-1], varint[-1] | 0x80))
    return more + b"\x80" * (size - len(varint) - 1) + b"\x00"
