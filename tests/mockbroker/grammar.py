"""The types of a proposal's grammar in bytes, by hand: a codec would agree with itself."""

from collections.abc import Sequence
from struct import pack

__all__ = ["array", "frame", "text"]


def text(value: str | None) -> bytes:
    return pack(">h", -1) if value is None else pack(">h", len(value)) + value.encode()


def array(items: Sequence[bytes] | None) -> bytes:
    return pack(">i", -1) if items is None else pack(">i", len(items)) + b"".join(items)


def frame(content: bytes) -> bytes:
    return pack(">i", len(content)) + content
