"""Map the bytes of a frame to fields, using the spans of the reference codec.

The reference codec is slow, so this is for display: ``kproto decode --bytes``, the demo, hex views.
A frame that does not decode raises DecodeError as decoding would; ``request_fields_partly`` and
``response_fields_partly`` return the fields up to the error instead.
"""

from __future__ import annotations

import base64
import importlib
import math
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kproto.codec.message import Buffer
from kproto.codec.registry import schema_of
from kproto.dialects import Dialect
from kproto.errors import DecodeError, KprotoError
from kproto.partial import (
    FrameLayout,
    end_of,
    request_layout,
    response_layout,
    size_error,
    whole_size,
)

if TYPE_CHECKING:
    from kproto.reference import FieldSpan

__all__ = [
    "FrameField",
    "PartialFields",
    "plain_value",
    "preload",
    "request_fields",
    "request_fields_partly",
    "response_fields",
    "response_fields_partly",
]

SIZE_LENGTH: Final = 4

PARTS: Final = frozenset({"count", "presence", "tagged fields", "tag count", "tag"})
"""Types of spans that are part of a field (or struct) which has a row of its own and the same
path."""


class FrameField(NamedTuple):
    """A run of bytes. ``offset`` counts from the first byte of the frame's size. ``path`` is that
    of DecodeError, followed by ``(count)`` and the like for parts of a field. Leaves are
    contiguous; the other rows are the structs and arrays that contain them."""

    offset: int
    length: int
    path: str
    type: str
    value: Any
    leaf: bool


class PartialFields(NamedTuple):
    """The rows of what could be read. Because of ``error``, bytes from ``end`` on are in no row."""

    rows: list[FrameField]
    end: int
    error: KprotoError | None


def request_fields(dialect: Dialect, frame: Buffer) -> list[FrameField]:
    """Return every field of a whole request frame: size, header and body."""
    data = bytes(frame)
    dialect.decode_request(data)
    return _frame_fields(data, request_layout(dialect, data)).rows


def response_fields(
    dialect: Dialect, frame: Buffer, *, api_key: int, api_version: int
) -> list[FrameField]:
    """Return every field of a whole response frame: size, header and body."""
    data = bytes(frame)
    dialect.decode_response(data, api_key=api_key, api_version=api_version)
    layout = response_layout(dialect, api_key=api_key, api_version=api_version)
    return _frame_fields(data, layout).rows


def request_fields_partly(dialect: Dialect, frame: Buffer) -> PartialFields:
    """Return the fields of a request frame up to its end or the first error. Raises nothing."""
    data = bytes(frame)
    try:
        return _frame_fields(data, request_layout(dialect, data))
    except KprotoError as error:
        return _only_size(data, error)


def response_fields_partly(
    dialect: Dialect, frame: Buffer, *, api_key: int, api_version: int
) -> PartialFields:
    """Return the fields of a response frame up to its end or the first error. Raises nothing."""
    data = bytes(frame)
    try:
        layout = response_layout(dialect, api_key=api_key, api_version=api_version)
        return _frame_fields(data, layout)
    except KprotoError as error:
        return _only_size(data, error)


def _only_size(data: bytes, error: KprotoError | None) -> PartialFields:
    if len(data) < SIZE_LENGTH:
        return PartialFields([], 0, size_error(data))
    size = int.from_bytes(data[:SIZE_LENGTH], "big", signed=True)
    row = FrameField(0, SIZE_LENGTH, "size", "int32", size, True)
    return PartialFields([row], SIZE_LENGTH, error)


def preload() -> None:
    """Import what the other functions import at their first use: construct, which takes 15 ms."""
    importlib.import_module("kproto.reference")


def _frame_fields(data: bytes, layout: FrameLayout) -> PartialFields:
    # Here: see ``preload``. A mock cluster needs it only for its control port and some faults.
    from kproto import reference

    rows, at, _ = _only_size(data, None)
    if not rows:
        return PartialFields(rows, at, size_error(data))
    inside, size = data[: end_of(data)], whole_size(data)
    try:
        _, at = layout.header.decode_from(inside, layout.header_version, SIZE_LENGTH)
        header, error = inside[:at], None
    except DecodeError as found:
        header, error = inside, found
    spans, _ = reference.fields_partly(
        schema_of(layout.header), layout.header_version, header[SIZE_LENGTH:]
    )
    rows += _rows("header", spans, SIZE_LENGTH)
    if error is not None:
        return PartialFields(rows, error.offset, error)
    spans, short = reference.fields_partly(
        schema_of(layout.body), layout.version, inside[at:], size=size - at
    )
    rows += _rows("body", spans, at)
    if short is not None:
        error = DecodeError(short.problem, offset=at + short.offset, path=short.path)
        return PartialFields(rows, error.offset, error)
    return PartialFields(rows, len(inside), size_error(data))


def _rows(name: str, spans: list[FieldSpan], start: int) -> Iterator[FrameField]:
    for span in spans:
        path = f"{span.path or name} ({span.type})" if span.type in PARTS else span.path
        yield FrameField(start + span.offset, span.length, path, span.type, span.value, span.leaf)


def plain_value(value: Any) -> Any:
    """Return a value as the body's JSON writes it, uuid and bytes included."""
    if isinstance(value, uuid.UUID):
        return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, dict):
        return None  # a struct: its fields have rows of their own
    if isinstance(value, list | tuple):
        return (
            None if value and isinstance(value[0], dict) else [plain_value(item) for item in value]
        )
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
