"""Batches put together by hand, and bytes that were batches before something happened to them."""

import struct
import zlib

from kproto.records import Compression, Record, build_batch
from kproto.records.compression import compress
from kproto.records.crc import crc32c
from kproto.records.record_batch import HEADER_SIZE
from kproto.records.varints import write

__all__ = ["PLAIN", "batch_of", "message", "record_of", "with_right_checksums", "wrapper"]


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


def batch_of(body: bytes, count: int = 1, attributes: int = 0, **fields: int) -> bytes:
    """A batch of magic 2 around ``body``, its checksum right."""
    data = bytearray(build_batch([Record(timestamp=0)])[:HEADER_SIZE] + body)
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">h", data, 21, attributes)
    struct.pack_into(">i", data, 57, count)
    struct.pack_into(">q", data, 0, fields.get("base_offset", 0))
    struct.pack_into(">i", data, 23, fields.get("last_offset_delta", 0))
    return with_right_checksums(data)


def record_of(body: bytes) -> bytes:
    return write(len(body)) + body


PLAIN = b"\x00\x00\x00\x01\x01\x00"
"""A record's body: attributes, two deltas of 0, null, null, no headers."""


def wrapper(inner: bytes, *, magic: int = 1, offset: int = 0, attributes: int = 1) -> bytes:
    """A message around compressed ``inner``, its checksum right."""
    value = compress(Compression(attributes & 7), inner, magic=magic)
    head = struct.pack(">bb", magic, attributes) + (struct.pack(">q", 99) if magic else b"")
    body = bytes(4) + head + struct.pack(">ii", -1, len(value)) + value
    return with_right_checksums(struct.pack(">qi", offset, len(body)) + body)


def message(value: bytes, *, magic: int = 1, offset: int = 0, timestamp: int = 7) -> bytes:
    return build_batch([Record(offset, timestamp, None, value)], magic=magic)
