"""Split captures between processes that read the same ones. Each process reads every packet. It
takes either whole connections, those of some pairs of ends, or some exchanges of every connection.

Finding and pairing frames in the extension costs a tenth of making all tables of them, so every
process can do that for all connections. Then a single connection is shared, too, and the shares are
of equal size whatever the connections are. Python needs much longer for it, and TLS is decrypted
there; so with TLS secrets, or without the extension, connections are not divided.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

__all__ = ["Share"]

_START: Final = 0x811C9DC5
_PRIME: Final = 0x01000193
_SPREAD: Final = 0x9E3779B1
_MASK: Final = 0xFFFFFFFF

_RANGE_BITS: Final = 12
"""Exchanges whose requests begin in the same 4 KiB of a stream belong to the same share."""


class Share(NamedTuple):
    """Share ``number`` of ``of``, counted from 0. With ``divided`` it reads every connection, but
    takes only ``exchanges`` in some ranges of each. The first share also reports what belongs to no
    connection, or, with ``divided``, to no exchange."""

    number: int
    of: int
    divided: bool = False

    @property
    def is_first(self) -> bool:
        return self.number == 0

    @property
    def reports_connections(self) -> bool:
        """Whether the share reports the connections that it reads, and their bytes."""
        return self.is_first or not self.divided

    def has(self, flow: bytes) -> bool:
        """Whether the share reads a flow (``Segment.flow``); both directions belong to the same
        share."""
        return self.divided or _spread(flow) % self.of == self.number

    def has_exchange(self, connection: int, offset: int) -> bool:
        """Whether the share has an exchange of a connection that it reads: by the connection's id
        and the offset of the request, or of a response without one. The extension computes the same
        (wiredump/native/exchanges.c)."""
        if not self.divided:
            return True
        spread = (connection + (offset >> _RANGE_BITS)) * _SPREAD & _MASK
        return spread * self.of >> 32 == self.number


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
