"""Bytes that were batches before something happened to them."""

from __future__ import annotations

import struct
import zlib

from kproto.records.crc import crc32c

__all__ = ["with_right_checksums"]


def with_right_checksums(data: bytes | bytearray) -> bytes:
    """The same bytes with the checksum of each batch that can be found made right.

    Without it no mutation would get past the checksum. Wrapped messages keep theirs.
    """
    out = bytearray(data)
    at = 0
    while len(out) - at >= 26:
        size = struct.unpack_from(">i", out, at + 8)[0]
        end = at + 12 + size
        if size < 14 or end > len(out):
            break
        if out[at + 16] == 2 and size >= 49:
            struct.pack_into(">I", out, at + 17, crc32c(bytes(out[at + 21 : end])))
        elif out[at + 16] < 2:
            struct.pack_into(">I", out, at + 12, zlib.crc32(out[at + 16 : end]))
        at = end
    return bytes(out)
