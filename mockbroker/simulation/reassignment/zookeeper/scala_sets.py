"""The iteration order of Scala's immutable sets of ints.

Kafka prints such sets in error texts and, before 2.4, writes replicas in their order. Sets of up to
four elements keep the insertion order; larger ones are hash tries of 32 branches a level.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["LARGEST_PLAIN_SET", "in_scala_2_12", "in_scala_2_13"]

LARGEST_PLAIN_SET: Final = 4
_LEVEL_BITS: Final = 5


def in_scala_2_12(ids: Iterable[int]) -> tuple[int, ...]:
    """``HashTrieSet``: depth first, branch by branch."""
    return _ordered(ids, leaves_first=False)


def in_scala_2_13(ids: Iterable[int]) -> tuple[int, ...]:
    """``BitmapIndexedSetNode``: the elements of a node precede those of the nodes below it."""
    return _ordered(ids, leaves_first=True)


def _ordered(ids: Iterable[int], *, leaves_first: bool) -> tuple[int, ...]:
    distinct = tuple(dict.fromkeys(ids))
    if len(distinct) <= LARGEST_PLAIN_SET:
        return distinct
    return tuple(_walk(distinct, 0, leaves_first))


def _walk(ids: Iterable[int], shift: int, leaves_first: bool) -> list[int]:
    branches: dict[int, list[int]] = {}
    for each in ids:
        branches.setdefault(_improved(each) >> shift & 31, []).append(each)
    ordered = [branches[key] for key in sorted(branches)]
    if leaves_first:
        ordered.sort(key=lambda branch: len(branch) > 1)
    return [
        each
        for branch in ordered
        for each in (
            branch if len(branch) == 1 else _walk(branch, shift + _LEVEL_BITS, leaves_first)
        )
    ]


def _improved(value: int) -> int:
    """Scala's improvement of the hash code; an int is its own hash code."""
    value = (value + ~(value << 9)) & 0xFFFFFFFF
    value ^= value >> 14
    value = (value + (value << 4)) & 0xFFFFFFFF
    return value ^ value >> 10
