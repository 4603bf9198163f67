"""Random choices from a seed, the same on every machine and Python version.

Python only guarantees that ``random()`` stays the same for a seed; the other methods of ``Random``
have changed before. Everything here is derived from it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final, TypeVar

__all__ = ["SEED_BITS", "Draws", "seed_from"]

SEED_BITS: Final = 48
"""Size of a seed, small enough for any JSON reader."""

T = TypeVar("T")


class Draws:
    """A stream of choices."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, end: int) -> int:
        """Return a number from 0 to ``end - 1``, all equally likely."""
        return min(int(self._random.random() * end), end - 1)

    def between(self, lowest: int, highest: int) -> int:
        return lowest + self.below(highest - lowest + 1)

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def one(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        left, out = list(items), []
        while left:
            out.append(left.pop(self.below(len(left))))
        return out

    def data(self, length: int) -> bytes:
        return bytes(self.below(256) for _ in range(length))


def seed_from(rng: random.Random) -> int:
    """Return the next seed of a caller's stream."""
    return min(int(rng.random() * (1 << SEED_BITS)), (1 << SEED_BITS) - 1)
