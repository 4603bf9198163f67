"""Decode truncated or damaged frames as far as possible.

Nothing here raises because of a frame's bytes. The error of a frame is what
``Dialect.decode_request`` or ``decode_response`` would raise for its fields and, if all of those
can be read, for its size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kproto.codec.message import Buffer, Message
from kproto.codec.partial import PartialBody, decode_partly
from kproto.codec.registry import trailing_bytes
from kproto.dialects import Dialect
from kproto.errors import DecodeError, KprotoError
from kproto.framing import SIZE_LENGTH
from kproto.messages.request_header import RequestHeader
from kproto.messages.response_header import ResponseHeader

__all__ = [
    "FrameLayout",
    "PartialBody",
    "PartialFrame",
    "decode_partly",
    "end_of",
    "request_layout",
    "request_partly",
    "response_layout",
    "response_partly",
    "size_error",
    "whole_size",
]


class PartialFrame(NamedTuple):
    """``header`` and ``body`` are JSON values, or None if nothing could be decoded: the header is
    truncated, or the dialect lacks the api key or version. ``error`` is None for a whole frame; a
    DecodeError's offset counts from the first byte of the frame's size."""

    header: dict[str, Any] | None
    body: dict[str, Any] | None
    error: KprotoError | None


class FrameLayout(NamedTuple):
    """The classes of a frame's header and body, and their versions."""

    header: type[Message]
    header_version: int
    body: type[Message]
    version: int


def request_layout(dialect: Dialect, frame: Buffer) -> FrameLayout:
    """Return the layout for the api key and version in the frame. Raises DecodeError if the frame
    ends before them, and UnsupportedFrameError if the dialect lacks them."""
    api, version = dialect.api_of_request(frame)
    return FrameLayout(RequestHeader, api.request_header_version(version), api.request, version)


def response_layout(dialect: Dialect, *, api_key: int, api_version: int) -> FrameLayout:
    """Return the layout of a response. Raises UnsupportedVersionError if the dialect lacks the api
    key or version."""
    api = dialect.api(api_key, api_version)
    header_version = api.response_header_version(api_version)
    return FrameLayout(ResponseHeader, header_version, api.response, api_version)


def request_partly(dialect: Dialect, frame: Buffer) -> PartialFrame:
    """Decode one request frame as far as possible."""
    data = bytes(frame)
    if len(data) < SIZE_LENGTH:
        return PartialFrame(None, None, size_error(data))
    try:
        return _partly(data, request_layout(dialect, data))
    except KprotoError as error:
        return PartialFrame(None, None, error)


def response_partly(
    dialect: Dialect, frame: Buffer, *, api_key: int, api_version: int
) -> PartialFrame:
    """Decode one response frame at the given version as far as possible."""
    data = bytes(frame)
    if len(data) < SIZE_LENGTH:
        return PartialFrame(None, None, size_error(data))
    try:
        layout = response_layout(dialect, api_key=api_key, api_version=api_version)
        return _partly(data, layout)
    except KprotoError as error:
        return PartialFrame(None, None, error)


def end_of(data: bytes) -> int:
    """Return where the frame at the start of ``data`` ends by its size, or where the data ends."""
    return min(len(data), whole_size(data))


def whole_size(data: bytes) -> int:
    """Return the length that the frame at the start of ``data`` has according to its size."""
    size = int.from_bytes(data[:SIZE_LENGTH], "big", signed=True)
    return SIZE_LENGTH + size if size >= 0 else len(data)


def size_error(data: bytes) -> DecodeError | None:
    """Return the error of a frame's size, in the decoder's words."""
    if len(data) < SIZE_LENGTH:
        return DecodeError("ends before the size", offset=0, path="size")
    size = int.from_bytes(data[:SIZE_LENGTH], "big", signed=True)
    there = len(data) - SIZE_LENGTH
    if size == there:
        return None
    return DecodeError(f"size is {size} bytes, but {there} follow", offset=0, path="size")


def _partly(data: bytes, layout: FrameLayout) -> PartialFrame:
    wrong_size, size = size_error(data), whole_size(data)
    data = data[: end_of(data)]
    try:
        header, at = layout.header.decode_from(data, layout.header_version, SIZE_LENGTH)
    except DecodeError as error:
        part = decode_partly(layout.header, data, layout.header_version, SIZE_LENGTH)
        return PartialFrame(part.value, None, error)
    known = header.to_json_value(layout.header_version)
    try:
        body, end = layout.body.decode_from(data, layout.version, at)
    except DecodeError:
        part = decode_partly(layout.body, data, layout.version, at, size=size)
        return PartialFrame(known, part.value, part.error)
    problem = wrong_size if end == len(data) else trailing_bytes(data, end)
    return PartialFrame(known, body.to_json_value(layout.version), problem)
