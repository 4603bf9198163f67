"""The error of the codecs, which do not know the position of their bytes in a buffer."""

from __future__ import annotations

__all__ = ["UndecodableError", "too_large"]


class UndecodableError(ValueError):
    """Invalid compressed bytes; the text says why. The reader turns it into a DecodeError."""


def too_large(limit: int) -> UndecodableError:
    return UndecodableError(f"decompresses to more than {limit} bytes")
