"""Positions in the buffer that a caller passed, for errors.

Records of a compressed batch have no position in that buffer. Their errors point at the compressed
bytes, and the text adds the position in the decompressed data.
"""

from __future__ import annotations

from typing import NamedTuple

from kproto.errors import DecodeError
from kproto.records import varints
from kproto.records.compression import decompress
from kproto.records.model import Compression
from kproto.records.undecodable import UndecodableError

__all__ = ["Window", "unpacked"]


class Window(NamedTuple):
    """The bytes ``at`` to ``end`` of ``data``, which ``path`` names."""

    data: bytes
    at: int
    end: int
    path: str
    origin: int | None = None
    """For decompressed data: the offset of the compressed bytes in the caller's buffer."""

    def error(self, problem: str, at: int, field: str = "") -> DecodeError:
        """Return a DecodeError about ``field``, which begins at ``at`` of ``data``."""
        path = f"{self.path}.{field}" if field else self.path
        if self.origin is None:
            return DecodeError(problem, offset=at, path=path)
        return DecodeError(f"{problem}, {at} bytes in", offset=self.origin, path=path)

    def part(self, at: int, end: int, path: str) -> Window:
        """Return a part of this window, with a path below this one's."""
        return self._replace(at=at, end=end, path=f"{self.path}.{path}")

    def varint(self, at: int, bits: int, field: str) -> tuple[int, int]:
        """Return the zigzag varint at ``at`` and the offset after it."""
        try:
            return varints.read(self.data, at, self.end, bits)
        except varints.VarintError as problem:
            raise self.error(str(problem), at, field) from None


def unpacked(window: Window, codec: Compression, magic: int, limit: int, field: str) -> Window:
    """Return the decompressed content of ``window``, with the same path."""
    packed = window.data[window.at : window.end]
    try:
        data = decompress(codec, packed, magic=magic, limit=limit)
    except UndecodableError as problem:
        raise window.error(str(problem), window.at, field) from None
    return Window(data, 0, len(data), window.path, window.at)
