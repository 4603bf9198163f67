"""Find the ends of blocks in zstd frames (RFC 8878, 3.1.1). Nothing is decompressed here.

After an error, the library does not return what it had decompressed. Given at most one block per
call, it has returned every block before the damaged one, however the file was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

__all__ = ["BlockEnds"]

_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
_DICTIONARY_ID_BYTES: Final = (0, 1, 2, 4)
_RLE, _RESERVED = 1, 3


class BlockEnds:
    """Cuts the bytes of a file behind each frame's header and each block. Behind bytes that cannot
    be a frame or a block, nothing is cut any more: the library will reject them with a reason."""

    def __init__(self) -> None:
        self._header = b""
        self._wanted = 4  # bytes of the header, as far as they are known
        self._read: Callable[[], bool] = self._magic
        self._passing = 0  # bytes of the block after its header
        self._has_checksum = False

    def cut(self, data: bytes) -> Iterator[bytes]:
        """Yield ``data`` in pieces; each piece but the last ends a frame's header or a block."""
        start = at = 0
        while at < len(data):
            if self._passing:
                step = min(self._passing, len(data) - at)
                self._passing -= step
                at += step
                if self._passing:
                    break
                yield data[start:at]
                start = at
                continue
            if not self._wanted:
                break
            taken = data[at : at + self._wanted - len(self._header)]
            self._header += taken
            at += len(taken)
            if len(self._header) == self._wanted:
                header_ends = self._read()
                if header_ends:
                    yield data[start:at]
                    start = at
        if start < len(data):
            yield data[start:]

    # Each takes a header of the requested length, and returns whether a piece ends with it.

    def _magic(self) -> bool:
        if self._header == _MAGIC:
            self._wanted, self._read = 5, self._descriptor
        elif self._header[1:] == b"\x2a\x4d\x18" and self._header[0] >> 4 == 5:
            self._wanted, self._read = 8, self._skippable
        elif self._header[:1] == b"\0":  # padding, which is skipped a byte at a time
            self._header = self._header[1:]
        else:
            self._wanted = 0
        return False

    def _skippable(self) -> bool:
        self._passing = int.from_bytes(self._header[4:], "little")
        self._next(4, self._magic)
        return not self._passing

    def _descriptor(self) -> bool:
        descriptor = self._header[4]
        is_single = descriptor >> 5 & 1
        self._has_checksum = bool(descriptor & 4)
        content_size = _CONTENT_SIZE_BYTES[descriptor >> 6] or is_single
        self._wanted += (1 - is_single) + _DICTIONARY_ID_BYTES[descriptor & 3] + content_size
        self._read = self._frame
        return False

    def _frame(self) -> bool:
        self._next(3, self._block)
        return True

    def _block(self) -> bool:
        header = int.from_bytes(self._header, "little")
        is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == _RESERVED:
            self._wanted = 0
            return False
        self._passing = 1 if kind == _RLE else size
        if is_last and self._has_checksum:
            self._next(4, self._checksum)
        elif is_last:
            self._next(4, self._magic)
        else:
            self._next(3, self._block)
        return not self._passing

    def _checksum(self) -> bool:
        self._next(4, self._magic)
        return True

    def _next(self, wanted: int, read: Callable[[], bool]) -> None:
        self._header, self._wanted, self._read = b"", wanted, read
