"""Which partition a record belongs to: that of its key, as Kafka's producers choose it.

Kafka's default partitioner takes the positive murmur2 hash of the key, modulo the number of
partitions (``BuiltInPartitioner.partitionForKey``).
"""

from __future__ import annotations

from typing import Final

__all__ = ["murmur2", "partition_of_key"]

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_UINT32: Final = 0xFFFFFFFF
_POSITIVE: Final = 0x7FFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit murmur2 hash of ``data``, unsigned."""
    whole = len(data) & ~3
    value = _SEED ^ len(data)
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _UINT32
        k = (k ^ k >> 24) * _M & _UINT32
        value = value * _M & _UINT32 ^ k
    if len(data) > whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _UINT32
    value = (value ^ value >> 13) * _M & _UINT32
    return value ^ value >> 15


def partition_of_key(key: bytes, partitions: int) -> int:
    """Return the index of the partition, of ``partitions``, to which this key belongs."""
    return (murmur2(key) & _POSITIVE) % partitions
