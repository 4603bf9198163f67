"""Where bytes stand in the buffer that a caller passed, so that an error can say it.

Records of a compressed batch stand nowhere in that buffer: their errors point at the compressed
bytes, and the text adds the byte they were found at once decompressed.
"""

from __future__ import annotations

from typing import NamedTuple

from kproto.errors import DecodeError
from kproto.records import varints
from kproto.records.compression import decompress
from kproto.records.model import Compression
from kproto.records.undecodable import Undecodable

__all__ = ["Window", "unpacked"]


class Window(NamedTuple):
    """Bytes ``at`` to ``end`` of ``data``, which are what ``path`` names."""

    data: bytes
    at: int
    end: int
    path: str
    origin: int | None = None
    """Of decompressed data: where the compressed bytes begin in the caller's buffer."""

    def error(self, problem: str, at: int, field: str = "") -> DecodeError:
        """A DecodeError about ``field``, which begins at ``at`` of ``data``."""
        path = f"{self.path}.{field}" if field else self.path
        if self.origin is None:
            return DecodeError(problem, offset=at, path=path)
        return DecodeError(f"{problem}, {at} bytes in", offset=self.origin, path=path)

    def part(self, at: int, end: int, path: str) -> Window:
        """A stretch of it with a path of its own below this one's."""
        return self._replace(at=at, end=end, path=f"{self.path}.{path}")

    def varint(self, at: int, bits: int, field: str) -> tuple[int, int]:
        """The zigzag varint at ``at``, and where it ends."""
        try:
            return varints.read(self.data, at, self.end, bits)
        except varints.VarintError as problem:
            raise self.error(str(problem), at, field) from None


def unpacked(window: Window, codec: Compression, magic: int, limit: int, field: str) -> Window:
    """What the compressed bytes of ``window`` hold, with the same path."""
    packed = window.data[window.at : window.end]
    try:
        data = decompress(codec, packed, magic=magic, limit=limit)
    except Undecodable as problem:
        raise window.error(str(problem), window.at, field) from None
    return Window(data, 0, len(data), window.path, window.at)
