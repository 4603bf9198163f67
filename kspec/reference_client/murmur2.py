"""The hash by which Kafka's own producer chooses the partition of a key: MurmurHash2 with a fixed
seed."""

from __future__ import annotations

from typing import Final

__all__ = ["murmur2"]

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_BITS: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return 32 bits, unsigned."""
    whole = len(data) & ~3
    found = _SEED ^ len(data)
    for at in range(0, whole, 4):
        part = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _BITS
        part ^= part >> 24
        part = part * _MULTIPLIER & _BITS
        found = found * _MULTIPLIER & _BITS ^ part
    if len(data) > whole:
        found ^= int.from_bytes(data[whole:], "little")
        found = found * _MULTIPLIER & _BITS
    found ^= found >> 13
    found = found * _MULTIPLIER & _BITS
    return found ^ found >> 15
