"""The header checksum of an LZ4 frame, which is wrong in Kafka's messages of magic 0 (KIP-57).

Kafka before 0.10 included the frame's magic number in the checksum. Magic 0 keeps that error: such
frames are written with the wrong checksum and read with any. LZ4 libraries require the correct one,
so it is inserted before decompression and replaced after compression.
"""

from __future__ import annotations

from typing import Final

from kproto.records.undecodable import UndecodableError

__all__ = ["broken", "repaired", "xxh32"]

MAGIC: Final = b"\x04\x22\x4d\x18"
FLAGS: Final = 4
CONTENT_SIZE: Final = 0x08
DICTIONARY: Final = 0x01

PRIME_2, PRIME_3, PRIME_4, PRIME_5 = 2246822519, 3266489917, 668265263, 374761393
PRIME_1 = 2654435761
MASK = 0xFFFFFFFF


def xxh32(data: bytes) -> int:
    """Return xxHash32 with seed 0 of fewer than 16 bytes; no header is longer."""
    assert len(data) < 16
    value = PRIME_5 + len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        value += int.from_bytes(data[at : at + 4], "little") * PRIME_3
        value = _rotated(value & MASK, 17) * PRIME_4
    for byte in data[whole:]:
        value += byte * PRIME_5
        value = _rotated(value & MASK, 11) * PRIME_1
    value &= MASK
    value = (value ^ value >> 15) * PRIME_2 & MASK
    value = (value ^ value >> 13) * PRIME_3 & MASK
    return value ^ value >> 16


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 32 - by) & MASK


def _checksum_at(frame: bytes) -> int:
    """Return the position of the frame's header checksum. Raises UndecodableError if the frame ends
    before it."""
    if not frame.startswith(MAGIC):
        raise UndecodableError("not an LZ4 frame")
    flags = frame[FLAGS] if len(frame) > FLAGS else 0
    at = FLAGS + 2 + (8 if flags & CONTENT_SIZE else 0) + (4 if flags & DICTIONARY else 0)
    if at >= len(frame):
        raise UndecodableError("LZ4 frame is cut off")
    return at


def _with_checksum(frame: bytes, at: int, covered: bytes) -> bytes:
    return frame[:at] + bytes((xxh32(covered) >> 8 & 0xFF,)) + frame[at + 1 :]


def repaired(frame: bytes) -> bytes:
    """Return the frame with the checksum that LZ4 specifies."""
    at = _checksum_at(frame)
    return _with_checksum(frame, at, frame[FLAGS:at])


def broken(frame: bytes) -> bytes:
    """Return the frame with the checksum that Kafka writes at magic 0."""
    at = _checksum_at(frame)
    return _with_checksum(frame, at, frame[:at])
