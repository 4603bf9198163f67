"""Strict decoding of answers: by both engines, and back to the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec

from kproto.codec.message import Message
from kproto.codec.registry import generated_decoder, generated_encoder
from kproto.dialects import Dialect
from kproto.messages.response_header import ResponseHeader

__all__ = ["correlation_id_of", "error_codes", "read_strictly"]

_SIZE_BYTES = 4


@cache
def _generated(cls: type[Message], version: int) -> tuple[Callable[..., Any], Callable[..., bytes]]:
    return generated_decoder(cls, version), generated_encoder(cls, version)


def correlation_id_of(frame: bytes) -> int:
    """Return the correlation id of a frame, size included."""
    return int.from_bytes(frame[4:8], "big", signed=True)


def read_strictly(codec: Dialect, frame: bytes, api_key: int, version: int) -> Message:
    """Return the body of a response frame.

    Raises AssertionError or DecodeError if it does not match the schema of its version, if the
    engines (generated Python and the one in use) decode it differently, or if one of them does not
    encode the same bytes again.
    """
    api = codec.api(api_key, version)
    header_version = api.response_header_version(version)
    header, at = ResponseHeader.decode_from(frame, header_version, _SIZE_BYTES)
    assert header.encode(header_version) == frame[_SIZE_BYTES:at], "the header's bytes"
    assert int.from_bytes(frame[:_SIZE_BYTES], "big") == len(frame) - _SIZE_BYTES, "its size"
    data = frame[at:]
    body = api.response.decode(data, version)
    decode, encode = _generated(api.response, version)
    again = decode(data)
    assert body == again, f"{api.name} v{version}: the engines differ: {body} and {again}"
    assert body.encode(version) == data == encode(again), f"{api.name} v{version}: other bytes"
    return body


def error_codes(thing: Any) -> Iterator[int]:
    """Yield every ``error_code`` of a message at any level."""
    if isinstance(thing, msgspec.Struct):
        for name in thing.__struct_fields__:
            value = getattr(thing, name)
            if name == "error_code":
                yield value
            elif isinstance(value, msgspec.Struct | list):
                yield from error_codes(value)
    elif isinstance(thing, list):
        for each in thing:
            yield from error_codes(each)
