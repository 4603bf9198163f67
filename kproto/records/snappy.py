"""Snappy as Kafka uses it: blocks in the frame of xerial's snappy-java, or one bare block.

Java writes the frame and reads either; some clients write the bare block. cramjam handles the
blocks. Errors raise ``UndecodableError``. This module does not know batches.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from kproto.records.undecodable import UndecodableError, too_large

__all__ = ["compress", "decompress", "one_block"]

MAGIC: Final = b"\x82SNAPPY\x00"
VERSIONS: Final = struct.pack(">ii", 1, 1)
"""The frame's version, and the oldest version that can read it."""
HEADER: Final = MAGIC + VERSIONS
BLOCK: Final = 32 * 1024
"""Bytes in a block before compression, the default of snappy-java."""

WIDEST: Final = 22
"""The growth of a block is below this: its densest element makes 64 bytes of 3."""


def compress(library: Any, data: bytes) -> bytes:
    """Compress ``data`` into xerial's frame."""
    parts = [HEADER]
    for at in range(0, len(data), BLOCK):
        block = bytes(library.snappy.compress_raw(data[at : at + BLOCK]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def decompress(library: Any, data: bytes, limit: int) -> bytes:
    """Decompress either form to at most ``limit`` bytes."""
    if not data.startswith(MAGIC):
        return _block(library, data, limit, limit)
    parts = []
    left = limit
    at = 0
    while at < len(data):
        # Frames may follow one another. The first bytes distinguish a header from a size.
        if data.startswith(MAGIC, at):
            if len(data) - at < len(HEADER):
                raise UndecodableError("snappy frame is cut off")
            at += len(HEADER)
            continue
        size = int.from_bytes(data[at : at + 4], "big")
        at += 4
        if at + size > len(data):
            raise UndecodableError("snappy frame is cut off")
        part = _block(library, data[at : at + size], left, limit)
        left -= len(part)
        parts.append(part)
        at += size
    return b"".join(parts)


def one_block(library: Any, limit: int, data: bytes) -> bytes | None:
    """Return the content of the only block of either form; None if there are several blocks, more
    than ``limit`` bytes, or an error."""
    if data.startswith(MAGIC):
        if int.from_bytes(data[_FIRST:_BEHIND], "big") != len(data) - _BEHIND:
            return None
        data = data[_BEHIND:]
    try:
        return _block(library, data, limit, limit)
    except UndecodableError:
        return None


_FIRST: Final = len(HEADER)
_BEHIND: Final = _FIRST + 4


def _block(library: Any, block: bytes, left: int, limit: int) -> bytes:
    """Decompress one block. Its result's size is known, and bounded, before decompression."""
    try:
        length = library.snappy.decompress_raw_len(block)
        if length > left:
            raise too_large(limit)
        if length > len(block) * WIDEST:
            raise UndecodableError(f"snappy block of {len(block)} bytes cannot make {length}")
        return bytes(library.snappy.decompress_raw(block))
    except library.DecompressionError as error:
        raise UndecodableError(f"snappy: {error}") from None
