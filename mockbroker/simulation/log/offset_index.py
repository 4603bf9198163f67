"""The offset index of a segment, which brokers keep to find positions without reading batches.

Here it is derived from the batches when it is first asked for, and goes on with the segment.
A log whose batches are cut or replaced discards it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

from mockbroker.simulation.log.batches.batch_storage import BatchStorage

__all__ = ["OffsetIndex"]


class OffsetIndex:
    """The index of the batches from ``position`` on. It has an entry for a batch, with its last
    offset, when more than ``interval`` bytes lie between it and the entry before."""

    def __init__(self, position: int, interval: int) -> None:
        self.interval = interval
        self._positions = array("q")
        self._last_offsets = array("q")
        self._read_to = position
        self._since = 0

    def read_until(self, end_offset: int, storage: BatchStorage) -> None:
        """Add the entries of the batches that begin before this offset and were not read yet."""
        for index in range(storage.index_at(self._read_to), len(storage)):
            if storage.base_offset(index) >= end_offset:
                return
            position = storage.position(index)
            if self._since > self.interval:
                self._positions.append(position)
                self._last_offsets.append(storage.header(index).last_offset)
                self._since = 0
            self._read_to = storage.position(index + 1)
            self._since += self._read_to - position

    def last_offset_at(self, position: int) -> int | None:
        """Return the last offset of the first entry at or behind this position; None without
        one."""
        place = bisect_left(self._positions, position)
        return self._last_offsets[place] if place < len(self._last_offsets) else None
