"""The round trip that every message test uses: whole, cut short, and with trailing bytes."""

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
    """Check that ``value`` survives a round trip, and that no other bytes decode to it.

    Encoding gives ``data``, if passed; decoding gives ``value``, which encodes to the same bytes.
    Every proper prefix raises DecodeError at an offset within it (for a body longer than
    ``most_cuts``: evenly spread prefixes, the first and the last included). A trailing byte raises
    DecodeError at the end of the message. Returns the bytes.
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
