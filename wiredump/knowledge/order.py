"""Sort exchanges by their requests. They become known in another order: a slow response comes after
many quick ones, and a request without a response comes last."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

from wiredump.knowledge.excerpts import Excerpt

__all__ = ["LONGEST_NS", "MOST_WEIGHT", "InOrder"]

LONGEST_NS: Final = 120_000_000_000
"""How long an exchange may take and still be sorted."""

MOST_WEIGHT: Final = 1_000_000
"""The most weight that may wait, at about 100 bytes each."""


class InOrder:
    """Takes exchanges as they come, and returns them in the order of ``Excerpt.order``.

    The order is exact as long as each exchange comes no later than ``longest_ns`` after its
    request, by the clock of earlier ones, and what waits stays below ``most_weight``. A later
    exchange is returned at once; ``late`` counts these.
    """

    def __init__(self, longest_ns: int = LONGEST_NS, most_weight: int = MOST_WEIGHT) -> None:
        self.late = 0
        self._longest_ns = longest_ns
        self._most_weight = most_weight
        self._waiting: list[tuple[tuple[int, int, int], int, Excerpt]] = []
        self._weight = 0
        self._now_ns = 0
        self._last: tuple[int, int, int] | None = None

    def add(self, excerpt: Excerpt) -> Iterator[Excerpt]:
        """Add an exchange; returns all that can be returned now."""
        order = excerpt.order
        if self._last is not None and order < self._last:
            self.late += 1
            yield excerpt
            return
        weight = excerpt.weight
        heappush(self._waiting, (order, weight, excerpt))
        self._weight += weight
        self._now_ns = max(self._now_ns, excerpt.completed_ns)
        while self._waiting and (
            self._waiting[0][0][0] < self._now_ns - self._longest_ns
            or self._weight > self._most_weight
        ):
            yield self._pop()

    def end(self) -> Iterator[Excerpt]:
        """Return the rest. Exchanges added afterwards may have any time."""
        while self._waiting:
            yield self._pop()
        self._now_ns = 0
        self._last = None

    def _pop(self) -> Excerpt:
        self._last, weight, excerpt = heappop(self._waiting)
        self._weight -= weight
        return excerpt
