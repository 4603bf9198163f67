"""The order in which a hash table of Scala's 2.12 iterates small numbers.

Brokers keep the filters of DeleteAcls by their places in a mutable ``HashMap``, and its order
decides on rules that several of them match.
"""

from __future__ import annotations

from typing import Final

__all__ = ["hashed_places"]

_FACTOR: Final = 0x9E3775CD
_WORD: Final = 0xFFFFFFFF
_SIZE: Final = 16
_SEED: Final = 4
"""The number of ones in the first size less one; the table keeps it as it grows."""


def hashed_places(count: int) -> list[int]:
    """The numbers below ``count`` in the order of the table: buckets backwards, and of one bucket
    the number that was added last."""
    size = _SIZE
    while count > size * 3 // 4:
        size *= 2
    return sorted(range(count), key=lambda place: (-_bucket(place, size), -place))


def _bucket(number: int, size: int) -> int:
    bits = size.bit_length() - 1
    mixed = _mixed(number)
    turned = (mixed >> _SEED) | (mixed << (32 - _SEED)) & _WORD
    return turned >> (32 - bits)


def _mixed(number: int) -> int:
    """As ``scala.util.hashing.byteswap32``."""
    product = number * _FACTOR & _WORD
    swapped = int.from_bytes(product.to_bytes(4, "little"), "big")
    return swapped * _FACTOR & _WORD
