"""The partition of a topic that the hash table of a KRaft controller iterates first.

``ReplicationControlManager.createPartitions`` gives new partitions the replication factor of that
one. The table is ``org.apache.kafka.timeline.TimelineHashMap``: slots are chosen by the upper bits
of a Fibonacci hash, their number doubles when three quarters are full, and entries of one slot are
iterated from the last one added. Partitions are added in order and never removed.
"""

from __future__ import annotations

from typing import Final

__all__ = ["first_iterated"]

_FIBONACCI: Final = 0x9E3779B97F4A7C15
_SMALLEST: Final = 2
_LOAD: Final = 0.75


def first_iterated(partitions: int) -> int:
    """Return the index of that partition in a topic with this many partitions."""
    slots = _SMALLEST
    while partitions * _LOAD > slots:
        slots *= 2
    shift = 65 - slots.bit_length()
    return max(
        index
        for index in range(partitions)
        if (index * _FIBONACCI & 0xFFFF_FFFF_FFFF_FFFF) >> shift == 0
    )
