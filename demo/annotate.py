"""Split a request frame into its fields, byte by byte, for display."""

from __future__ import annotations

from typing import NamedTuple

from kproto.annotate import request_fields
from kproto.dialects import dialect
from kproto.journal import Entry

__all__ = ["Span", "annotate"]


class Span(NamedTuple):
    """A range of bytes; ``offset`` counts from the first byte of the frame's size."""

    offset: int
    raw: bytes
    path: str
    type: str
    value: object


def annotate(entry: Entry) -> list[Span]:
    """Return the fields of a request from the journal, in order and without gaps. Raises
    DecodeError."""
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
