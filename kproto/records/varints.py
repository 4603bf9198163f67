"""Zigzag varints (KIP-98): the encoding of lengths and deltas in a record of magic 2.

Each byte holds seven bits of ``n << 1 ^ n >> 63``, lowest first, so that numbers close to 0 are
short whatever their sign.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ONE_BYTE",
    "SMALL",
    "VARINT_BITS",
    "VARLONG_BITS",
    "VarintError",
    "read",
    "wrapped",
    "write",
]

VARINT_BITS: Final = 32
VARLONG_BITS: Final = 64

ONE_BYTE: Final = tuple(byte >> 1 ^ -(byte & 1) for byte in range(128))
"""The number that each single byte encodes."""


class VarintError(ValueError):
    """Not a varint; the text says why. Never leaves this package."""


def read(data: bytes, at: int, end: int, bits: int) -> tuple[int, int]:
    """Return the number at ``at`` and the offset after it. Raises VarintError beyond ``end`` or
    ``bits``.

    Like Java, this accepts a number that is longer than necessary. Unlike Java, it refuses more
    bytes than ``bits`` can need and bits that do not fit.
    """
    value = shift = 0
    while True:
        if at >= end:
            raise VarintError("varint is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift >= bits:
            raise VarintError(f"varint is longer than {-(-bits // 7)} bytes")
    if value >> bits:
        raise VarintError(f"varint has more than {bits} bits")
    return value >> 1 ^ -(value & 1), at


def wrapped(number: int) -> int:
    """Return ``number`` as an int64 that overflowed, as Java's sums and differences of timestamps
    do."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def write(number: int) -> bytes:
    """Encode ``number``, of any size, as a varint."""
    value = number << 1 if number >= 0 else ~number << 1 | 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


SMALL: Final = tuple(write(number) for number in range(2048))
"""The varints of 0 to 2047, which most lengths and deltas are."""
