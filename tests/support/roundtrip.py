"""The one round trip that every message test uses: whole, cut short, with more after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kproto.errors import DecodeError

__all__ = ["assert_roundtrip", "cuts"]


def assert_roundtrip(
    value: Any,
    *,
    encode: Callable[[Any], bytes],
    decode: Callable[[bytes], Any],
    data: bytes | None = None,
    most_cuts: int = 300,
) -> bytes:
    """Check that ``value`` survives, and that nothing but its own bytes is taken for it.

    Encoding gives ``data`` where that is passed; decoding gives ``value`` back, which encodes to
    the same bytes. Every proper prefix raises DecodeError at an offset within it (of a body
    longer than ``most_cuts``, evenly spread prefixes, the first and the last among them), and so
    does a byte more, at the end of the message. Returns the bytes.
    """
    encoded = encode(value)
    if data is not None:
        assert encoded.hex() == data.hex()
    decoded = decode(encoded)
    assert decoded == value
    assert encode(decoded) == encoded
    for cut in cuts(len(encoded), most_cuts):
        with pytest.raises(DecodeError) as cut_short:
            decode(encoded[:cut])
        assert 0 <= cut_short.value.offset <= cut
    with pytest.raises(DecodeError) as trailing:
        decode(encoded + b"\0")
    assert (trailing.value.offset, trailing.value.path) == (len(encoded), "")
    return encoded


def cuts(length: int, most: int) -> list[int]:
    """At most ``most`` lengths of proper prefixes, both ends included."""
    if length <= most:
        return list(range(length))
    return sorted({index * (length - 1) // (most - 1) for index in range(most)})
