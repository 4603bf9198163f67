"""Which partition of a topic a KRaft controller's hash table iterates first.

``ReplicationControlManager.createPartitions`` gives new partitions as many replicas as that one
has. The table is ``org.apache.kafka.timeline.TimelineHashMap``: slots by the upper bits of a
Fibonacci hash, twice as many whenever it is three quarters full, and what shares a slot is
iterated from the last that was added. Partitions are added by number, and none is ever removed.
"""

from __future__ import annotations

from typing import Final

__all__ = ["first_iterated"]

_FIBONACCI: Final = 0x9E3779B97F4A7C15
_SMALLEST: Final = 2
_LOAD: Final = 0.75


def first_iterated(partitions: int) -> int:
    """The number of that partition, of a topic that has so many."""
    slots = _SMALLEST
    while partitions * _LOAD > slots:
        slots *= 2
    shift = 65 - slots.bit_length()
    return max(
        index
        for index in range(partitions)
        if (index * _FIBONACCI & 0xFFFF_FFFF_FFFF_FFFF) >> shift == 0
    )
