"""The two checksums: CRC-32C of record batches, CRC-32 of messages of magic 0 and 1.

CRC-32C uses google-crc32c (extra ``records``) if it is installed, and otherwise a table, which is
about a hundred times slower.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from functools import cache

__all__ = ["crc32", "crc32c", "crc32c_pure"]

POLYNOMIAL = 0x82F63B78
"""The Castagnoli polynomial with its bits reversed."""

crc32 = zlib.crc32


@cache
def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ POLYNOMIAL if value & 1 else value >> 1
        table.append(value)
    return table


def crc32c_pure(data: bytes) -> int:
    """Return the CRC-32C (RFC 3720, B.4), computed one byte at a time."""
    table = _table()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _fastest() -> Callable[[bytes], int]:
    try:
        found: Callable[[bytes], int] = importlib.import_module("google_crc32c").value
    except ImportError:
        return crc32c_pure
    return found


crc32c = _fastest()
"""CRC-32C of ``bytes``, an unsigned 32-bit number."""
