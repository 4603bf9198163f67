"""What the codecs raise: they do not know where in a buffer their bytes came from."""

from __future__ import annotations

__all__ = ["Undecodable", "too_large"]


class Undecodable(ValueError):
    """Compressed bytes that are not; the text says why. The reader makes a DecodeError of it."""


def too_large(limit: int) -> Undecodable:
    return Undecodable(f"decompresses to more than {limit} bytes")
