"""The order in which Java's ``HashMap`` iterates keys, where a client can see it."""

from __future__ import annotations

import codecs
import uuid
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, TypeVar

__all__ = ["hash_order", "hash_order_of_numbers", "hash_order_of_uuids", "java_hash"]

KeyT = TypeVar("KeyT")

_FEWEST: Final = 16
_LOAD: Final = 0.75
_UTF_16: Final = codecs.lookup("utf-16-be")
"""Here, because the first use of a codec by its name opens a file."""


@lru_cache(4096)
def java_hash(text: str) -> int:
    """Java's ``String.hashCode``: a signed 32-bit number, computed over UTF-16 code units."""
    units, _ = _UTF_16.encode(text, "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def hash_order(keys: Iterable[str], capacity: int = _FEWEST) -> list[str]:
    """Return distinct texts, given in the order of their insertion, in the order of iteration.
    ``capacity`` is that with which the map begins."""
    return _in_order(keys, java_hash, capacity)


def hash_order_of_numbers(keys: Iterable[int]) -> list[int]:
    """As ``hash_order``, for 32-bit numbers, whose hash they are."""
    return _in_order(keys, lambda key: key)


def hash_order_of_uuids(keys: Iterable[uuid.UUID]) -> list[uuid.UUID]:
    """As ``hash_order``, for Kafka's ``Uuid``."""
    return _in_order(keys, _uuid_hash)


def _uuid_hash(key: uuid.UUID) -> int:
    halves = key.int >> 64 ^ key.int & (1 << 64) - 1
    return halves >> 32 ^ halves & 0xFFFFFFFF


def _in_order(
    keys: Iterable[KeyT], hash_of: Callable[[KeyT], int], capacity: int = _FEWEST
) -> list[KeyT]:
    found = list(dict.fromkeys(keys))
    slots = 1 << (capacity - 1).bit_length()
    while len(found) > slots * _LOAD:
        slots *= 2

    def slot(key: KeyT) -> int:
        value = hash_of(key) & 0xFFFFFFFF
        return (value ^ value >> 16) & slots - 1

    return sorted(found, key=slot)
