"""Zstandard frames, decompressed within a limit by the zstandard library. Does not know batches.

The library decompresses either a whole frame at once or a stream in parts. Neither reports where a
frame ends, so that is read from the headers of its blocks (RFC 8878, 3.1.1).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

__all__ = ["Frame", "frame_at_once"]

LARGEST_WINDOW: Final = 1 << 27
"""The largest window that is read: no compression level uses more."""

_SKIPPABLE: Final = b"\x2a\x4d\x18"
_RLE: Final = 1


class _Extent(NamedTuple):
    """``content_size`` is -1 if the header has none. ``end`` is larger than the size of the data if
    the frame is cut off or invalid."""

    content_size: int
    end: int


def _extent(library: Any, data: bytes) -> _Extent:
    if data[1:4] == _SKIPPABLE and data[0] >> 4 == 5:
        return _Extent(0, 8 + int.from_bytes(data[4:8], "little"))
    try:
        header = library.get_frame_parameters(data)
        at = library.frame_header_size(data)
    except library.ZstdError:
        return _Extent(0, len(data) + 1)
    while at + 3 <= len(data):
        block = int.from_bytes(data[at : at + 3], "little")
        is_last, kind, size = block & 1, block >> 1 & 3, block >> 3
        at += 3 + (1 if kind == _RLE else size)
        if is_last:
            unknown = header.content_size == library.CONTENTSIZE_UNKNOWN
            return _Extent(-1 if unknown else header.content_size, at + 4 * header.has_checksum)
    return _Extent(0, len(data) + 1)


def frame_at_once(library: Any, limit: int) -> Callable[[bytes], bytes | None]:
    """Return a function that returns the content of the only frame; None if there are several
    frames, more than ``limit`` bytes, none or an error.

    A thread keeps its context: making one takes several times as long as a small frame.
    """
    contexts = threading.local()

    def content(data: bytes) -> bytes | None:
        size, end = _extent(library, data)
        if end != len(data) or not size or size > limit:
            return None
        try:
            context = contexts.context
        except AttributeError:
            context = contexts.context = _context(library)
        try:
            # The limit applies where the header has no size.
            made: bytes = context.decompress(data, limit)
        except library.ZstdError:
            return None
        return made

    return content


def _context(library: Any) -> Any:
    return library.ZstdDecompressor(max_window_size=LARGEST_WINDOW)


class Frame:
    """Decompresses one frame in parts, in the manner of ``zlib.decompressobj``: ``unused_data`` is
    what follows the frame, ``eof`` whether all of it has been returned."""

    def __init__(self, library: Any) -> None:
        self.unused_data = b""
        self.eof = False
        self._library = library
        self._reader: Any = None
        self._is_whole = False

    def decompress(self, data: bytes, most: int) -> bytes:
        """Return the next ``most`` bytes, or those that are left. The first call takes all the
        data. Raises the library's ZstdError."""
        if self._reader is None:
            end = _extent(self._library, data).end
            self._is_whole = end <= len(data)
            self.unused_data = data[end:]
            self._reader = _context(self._library).stream_reader(data[:end])
        part: bytes = self._reader.read(most)
        self.eof = self._is_whole and len(part) < most
        return part
