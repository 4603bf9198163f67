"""The order in which Java's ``HashMap`` iterates texts, where a client can see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["hash_order", "java_hash"]

_FEWEST: Final = 16
_LOAD: Final = 0.75


def java_hash(text: str) -> int:
    """Java's ``String.hashCode``: a signed 32-bit number, computed over UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def hash_order(keys: Iterable[str]) -> list[str]:
    """Return distinct keys, given in the order of their insertion, in the order of iteration."""
    found = list(dict.fromkeys(keys))
    slots = _FEWEST
    while len(found) > slots * _LOAD:
        slots *= 2

    def slot(key: str) -> int:
        value = java_hash(key) & 0xFFFFFFFF
        return (value ^ value >> 16) & slots - 1

    return sorted(found, key=slot)
