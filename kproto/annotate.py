"""Which bytes of a frame are which field: the reference codec's spans, laid over a whole frame.

Slow on purpose (it is the reference that reads), so for eyes: ``kproto decode --bytes``, the demo,
hex views. Judges nothing; a frame that does not decode raises DecodeError as decoding would.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kproto import reference
from kproto.codegen.base import Buffer, Message
from kproto.codegen.codec import schema_of
from kproto.dialects import Dialect

__all__ = ["FrameField", "request_fields", "response_fields"]

SIZE_LENGTH: Final = 4

PARTS: Final = frozenset({"count", "presence", "tagged fields", "tag count", "tag"})
"""Span types that are part of a field (or struct) with a row of its own, whose path they share."""


class FrameField(NamedTuple):
    """A run of bytes. ``offset`` counts from the first byte of the frame's size, ``path`` is
    DecodeError's, followed by ``(count)`` and the like for the parts of a field. Leaves follow one
    another without a gap; the other rows are the structs and arrays around them."""

    offset: int
    length: int
    path: str
    type: str
    value: Any
    leaf: bool


def request_fields(dialect: Dialect, frame: Buffer) -> list[FrameField]:
    """Every field of a whole request frame, size, header and body."""
    data = bytes(frame)
    header, body = dialect.decode_request(data)
    version = header.request_api_version
    header_version = dialect.api(header.request_api_key, version).request_header_version(version)
    return _frame_fields(data, header, header_version, body, version)


def response_fields(
    dialect: Dialect, frame: Buffer, *, api_key: int, api_version: int
) -> list[FrameField]:
    """Every field of a whole response frame, size, header and body."""
    data = bytes(frame)
    header, body = dialect.decode_response(data, api_key=api_key, api_version=api_version)
    header_version = dialect.api(api_key, api_version).response_header_version(api_version)
    return _frame_fields(data, header, header_version, body, api_version)


def _frame_fields(
    data: bytes, header: Message, header_version: int, body: Message, version: int
) -> list[FrameField]:
    _, body_at = type(header).decode_from(data, header_version, SIZE_LENGTH)
    size = FrameField(0, SIZE_LENGTH, "size", "int32", len(data) - SIZE_LENGTH, True)
    return [
        size,
        *_message_fields("header", header, header_version, data[:body_at], SIZE_LENGTH),
        *_message_fields("body", body, version, data, body_at),
    ]


def _message_fields(
    name: str, message: Message, version: int, data: bytes, start: int
) -> Iterator[FrameField]:
    for span in reference.fields(schema_of(type(message)), version, data[start:]):
        path = f"{span.path or name} ({span.type})" if span.type in PARTS else span.path
        yield FrameField(start + span.offset, span.length, path, span.type, span.value, span.leaf)
