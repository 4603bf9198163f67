"""One request frame, byte by byte: which bytes are which field. For eyes; judges nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kproto import reference
from kproto.codegen.base import Message
from kproto.codegen.codec import schema_of
from kproto.dialects import dialect
from kproto.journal import Entry

__all__ = ["Span", "annotate"]

SIZE_LENGTH = 4


class Span(NamedTuple):
    """A run of bytes; ``offset`` counts from the first byte of the frame's size."""

    offset: int
    raw: bytes
    path: str
    type: str
    value: object


def annotate(entry: Entry) -> list[Span]:
    """The fields of a journalled request, in order, without a gap. Raises DecodeError."""
    frame = entry.raw
    codec = dialect(entry.dialect)
    header, body = codec.decode_request(frame)
    version = header.request_api_version
    header_version = codec.api(header.request_api_key, version).request_header_version(version)
    _, body_at = type(header).decode_from(frame, header_version, SIZE_LENGTH)
    size = Span(0, frame[:SIZE_LENGTH], "size", "int32", len(frame) - SIZE_LENGTH)
    return [
        size,
        *_spans(header, header_version, frame[SIZE_LENGTH:body_at], SIZE_LENGTH, "header"),
        *_spans(body, version, frame[body_at:], body_at, "body"),
    ]


def _spans(message: Message, version: int, data: bytes, start: int, prefix: str) -> Iterator[Span]:
    for span in reference.fields(schema_of(type(message)), version, data):
        if span.leaf:
            raw = data[span.offset : span.offset + span.length]
            path = f"{prefix}.{span.path}" if span.path else prefix
            yield Span(start + span.offset, raw, path, span.type, span.value)
