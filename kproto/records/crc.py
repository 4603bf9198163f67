"""The two checksums: CRC-32C of record batches, CRC-32 of messages of magic 0 and 1.

CRC-32C is the native engine's. Without the engine it is google-crc32c's if that is installed, and
otherwise a table's, which takes a thousand times as long.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from functools import cache

from kproto import extension
from kproto.codec.message import Buffer

__all__ = ["crc32", "crc32c", "crc32c_pure"]

POLYNOMIAL = 0x82F63B78
"""The Castagnoli polynomial with its bits reversed."""

crc32 = zlib.crc32


def crc32c(data: Buffer, start: int = 0, end: int | None = None) -> int:
    """Return the CRC-32C (RFC 3720, B.4) of ``data[start:end]``, an unsigned 32-bit number."""
    end = len(data) if end is None else end
    if extension.in_use is not None:
        checksum: int = extension.in_use.crc32c(data, start, end)
        return checksum
    return _library()(bytes(data[start:end]))


@cache
def _library() -> Callable[[bytes], int]:
    try:
        found: Callable[[bytes], int] = importlib.import_module("google_crc32c").value
    except ImportError:
        return crc32c_pure
    return found


def crc32c_pure(data: bytes) -> int:
    """Return the CRC-32C, computed one byte at a time."""
    table = _table()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


@cache
def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ POLYNOMIAL if value & 1 else value >> 1
        table.append(value)
    return table
