"""Split the connections between processes that read the same captures. Each process reads every
packet, and takes the connections of some pairs of ends. Knows flows, but not their contents."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

__all__ = ["Share"]

_START: Final = 0x811C9DC5
_PRIME: Final = 0x01000193
_SPREAD: Final = 0x9E3779B1
_MASK: Final = 0xFFFFFFFF


class Share(NamedTuple):
    """Share ``number`` of ``of``, counted from 0. The first one also reports what belongs to no
    connection."""

    number: int
    of: int

    @property
    def is_first(self) -> bool:
        return self.number == 0

    def has(self, flow: bytes) -> bool:
        """Whether the share has a flow (``Segment.flow``); both directions belong to the same
        share."""
        return _spread(flow) % self.of == self.number


@lru_cache(maxsize=4096)
def _spread(flow: bytes) -> int:
    """Return a number that is equal for both directions. The extension computes the same
    (wiredump/native/reading.c)."""
    address = (len(flow) - 4) // 2
    source = flow[:address] + flow[-4:-2]
    destination = flow[address : 2 * address] + flow[-2:]
    return ((_hash(source) + _hash(destination)) * _SPREAD & _MASK) >> 16


def _hash(end: bytes) -> int:
    found = _START
    for byte in end:
        found = (found ^ byte) * _PRIME & _MASK
    return found
