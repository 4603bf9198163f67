"""Compressed bytes in, what they hold out, a piece at a time. No files; knows gzip, zstd, xz, bzip2
and lz4.

gzip, xz and bzip2 are the standard library's; zstd and lz4 come with the extra ``records``. Any
number of members, frames or streams may follow each other. No piece is larger than ``PIECE``,
whatever a file pretends to hold; zstd windows end at 128 MiB, and xz may not take more memory than
that. A file that holds more than its limit is not read on (``LimitReached``). Of damaged gzip and
zstd everything in front of the damage is read; of the others the last piece before it may be lost.
"""

from __future__ import annotations

import bz2
import importlib
import lzma
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from kproto.errors import MissingExtraError
from wiredump.readers.zstd_blocks import BlockEnds

__all__ = [
    "MOST_ALWAYS", "MOST_TIMES", "PIECE", "CannotInflate", "Inflater", "LimitReached",
    "inflater_for",
]  # fmt: skip

PIECE: Final = 1 << 20

MOST_ALWAYS: Final = 1 << 30
MOST_TIMES: Final = 250
"""The default limit of what a file may hold: ``MOST_ALWAYS`` bytes, or ``MOST_TIMES`` its
compressed bytes if that is more. Captures are compressed to a third or a tenth; one that only has
zeros in its packets, to less than a hundredth."""

_SLICE: Final = 32 << 10
"""Input is processed in slices: the rest behind the end of a member or frame is copied, so many
small members in one long input would cost the square of their number."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_XZ_MAGIC: Final = b"\xfd7zXZ\0"
_BZIP2_MAGIC: Final = b"BZh"
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_GZIP_WBITS: Final = 31
_XZ_MEMORY: Final = 128 << 20
_LARGEST_WINDOW: Final = 1 << 27


class CannotInflate(Exception):
    """The compressed bytes are invalid."""


class LimitReached(CannotInflate):
    """There are more decompressed bytes than the limit allows."""


def inflater_for(head: bytes, most: int | None = None) -> Inflater | None:
    """Return the inflater for a file that begins with ``head`` (4 bytes suffice), or None if it is
    not compressed. ``most`` is its limit of decompressed bytes, if not the default one. Raises
    MissingExtraError if the library is not installed."""
    for magic, made in _INFLATERS.items():
        if head.startswith(magic[:4]):
            return made(most)
    return None


class Inflater:
    """``feed`` compressed bytes, and take every piece that it yields before the next ``feed``.

    ``unfinished`` is whether the bytes so far end inside a member or frame.
    """

    name = ""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._taken = self._given = self._done = 0
        self._part: Any = None
        self._left = b""

    @property
    def taken(self) -> int:
        """The compressed bytes before those that could not be inflated."""
        return self._done

    @property
    def unfinished(self) -> bool:
        return self._part is not None or bool(self._left)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what can be inflated. Raises CannotInflate for invalid bytes, and LimitReached."""
        for start in range(0, len(data), _SLICE):
            given = data[start : start + _SLICE]
            self._taken += len(given)
            for cut in self._cut(given):
                for piece in self._feed(cut):
                    yield from self._within_limit(piece)
                self._done += len(cut)

    def _within_limit(self, piece: bytes) -> Iterator[bytes]:
        most = self._most
        if most is None:
            most = max(MOST_ALWAYS, MOST_TIMES * self._taken)
        room = most - self._given
        self._given += len(piece)
        if len(piece) <= room:
            yield piece
            return
        if room > 0:
            yield piece[:room]
        raise LimitReached(
            f"{self.name}: {self._taken:,} bytes decompress to more than {most:,}; "
            "--max-decompressed allows more"
        )

    def _feed(self, data: bytes) -> Iterator[bytes]:
        data = self._left + data if self._left else data
        self._left = b""
        while data or (self._part is not None and not self._wants_input()):
            if self._part is None:
                data = self._between_parts(data)
                if not data:
                    return
                self._part = self._new_part()
            piece = self._inflate(data)
            data = self._unread()
            if self._part.eof:
                data = self._part.unused_data or b""
                self._part = None
            if piece:
                yield piece

    def _between_parts(self, data: bytes) -> bytes:
        """Check that another part begins. Zeros may pad the end (tapes and some writers do)."""
        data = data.lstrip(b"\0")
        magics = self._magics()
        if any(data.startswith(magic) for magic in magics):
            return data
        if data and len(data) < 4 and any(magic.startswith(data) for magic in magics):
            self._left = data
        elif data:
            raise CannotInflate(f"{self.name}: what follows the end is not {self.name}")
        return b""

    def _cut(self, data: bytes) -> Iterator[bytes]:
        """Split the input into the pieces that the library is given."""
        yield data

    def _magics(self) -> tuple[bytes, ...]:
        raise NotImplementedError

    def _new_part(self) -> Any:
        raise NotImplementedError

    def _inflate(self, data: bytes) -> bytes:
        raise NotImplementedError

    def _unread(self) -> bytes:
        """Return the input that the last ``_inflate`` did not take, if its part has not ended."""
        raise NotImplementedError

    def _wants_input(self) -> bool:
        raise NotImplementedError


class _Gzip(Inflater):
    name = "gzip"

    def _magics(self) -> tuple[bytes, ...]:
        return (_GZIP_MAGIC,)

    def _new_part(self) -> Any:
        return zlib.decompressobj(_GZIP_WBITS)

    def _inflate(self, data: bytes) -> bytes:
        if self._error:
            raise CannotInflate(self._error)
        before = self._part.copy()
        try:
            piece: bytes = self._part.decompress(data, PIECE)
        except zlib.error as error:
            # The bytes before the damage in this slice were lost with it: inflate the slice again,
            # byte by byte.
            self._error = f"gzip: {error}"
            self._part = before
            piece = self._inflate_bytewise(data)
        self._full = len(piece) == PIECE or bool(self._error)
        return piece

    def _inflate_bytewise(self, data: bytes) -> bytes:
        """Inflate everything up to the first invalid byte."""
        pieces = []
        try:
            for at in range(len(data)):
                pieces.append(self._part.decompress(data[at : at + 1]))
        except zlib.error:
            pass
        return b"".join(pieces)

    def _unread(self) -> bytes:
        tail: bytes = self._part.unconsumed_tail
        return tail

    def _wants_input(self) -> bool:
        # A full piece with all input taken: zlib may have more output.
        return not self._full

    _full = False
    _error = ""


class _Library(Inflater):
    """Wraps a library's own decompressor. ``errors`` are the exceptions that it raises."""

    magic = b""
    errors: tuple[type[Exception], ...] = ()

    def _magics(self) -> tuple[bytes, ...]:
        return (self.magic,)

    def _inflate(self, data: bytes) -> bytes:
        try:
            piece: bytes = self._part.decompress(data, PIECE)
        except self.errors as error:
            raise CannotInflate(f"{self.name}: {error}") from None
        return piece

    def _unread(self) -> bytes:
        # The decompressor keeps the input that it has not processed.
        return b""

    def _wants_input(self) -> bool:
        wants: bool = self._part.needs_input
        return wants


class _Zstd(Inflater):
    """Of a damaged frame, every block before the damage is read. A piece is at most a block, which
    has 128 KiB or less."""

    name = "zstd"

    def __init__(self, most: int | None = None) -> None:
        super().__init__(most)
        self._ends = BlockEnds()

    def _cut(self, data: bytes) -> Iterator[bytes]:
        return self._ends.cut(data)

    def _magics(self) -> tuple[bytes, ...]:
        # Skippable frames, whose lowest four bits are free, may come between the others.
        return (_ZSTD_MAGIC, *(bytes((0x50 | low, 0x2A, 0x4D, 0x18)) for low in range(16)))

    def _new_part(self) -> Any:
        library = _zstd_library()
        return library.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).decompressobj()

    def _inflate(self, data: bytes) -> bytes:
        try:
            piece: bytes = self._part.decompress(data)
        except _zstd_library().ZstdError as error:
            raise CannotInflate(f"zstd: {error}") from None
        return piece

    def _unread(self) -> bytes:
        return b""

    def _wants_input(self) -> bool:
        return True


@cache
def _zstd_library() -> Any:
    try:
        return importlib.import_module("zstandard")
    except ImportError:
        raise MissingExtraError("zstd needs zstandard", extra="records") from None


class _Xz(_Library):
    name, magic, errors = "xz", _XZ_MAGIC, (lzma.LZMAError, EOFError)

    def _new_part(self) -> Any:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


class _Bzip2(_Library):
    name, magic, errors = "bzip2", _BZIP2_MAGIC, (OSError, EOFError, ValueError)

    def _new_part(self) -> Any:
        return bz2.BZ2Decompressor()


class _Lz4(_Library):
    name, magic, errors = "lz4", _LZ4_MAGIC, (RuntimeError, EOFError)

    def _new_part(self) -> Any:
        try:
            library: Any = importlib.import_module("lz4.frame")
        except ImportError:
            raise MissingExtraError("lz4 needs lz4", extra="records") from None
        return library.LZ4FrameDecompressor()


_INFLATERS: Final[dict[bytes, Callable[[int | None], Inflater]]] = {
    _GZIP_MAGIC: _Gzip,
    _ZSTD_MAGIC: _Zstd,
    _XZ_MAGIC: _Xz,
    _BZIP2_MAGIC: _Bzip2,
    _LZ4_MAGIC: _Lz4,
}
