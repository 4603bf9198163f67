"""One request frame, byte by byte: which bytes are which field. For eyes; judges nothing."""

from __future__ import annotations

from typing import NamedTuple

from kproto.annotate import request_fields
from kproto.dialects import dialect
from kproto.journal import Entry

__all__ = ["Span", "annotate"]


class Span(NamedTuple):
    """A run of bytes; ``offset`` counts from the first byte of the frame's size."""

    offset: int
    raw: bytes
    path: str
    type: str
    value: object


def annotate(entry: Entry) -> list[Span]:
    """The fields of a journalled request, in order, without a gap. Raises DecodeError."""
    return [
        Span(
            field.offset,
            entry.raw[field.offset : field.offset + field.length],
            field.path.removesuffix(f" ({field.type})"),
            field.type,
            field.value,
        )
        for field in request_fields(dialect(entry.dialect), entry.raw)
        if field.leaf
    ]
