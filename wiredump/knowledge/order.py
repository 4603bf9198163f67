"""Exchanges in the order of their requests, out of the order in which they become known: a slow
answer comes after many quick ones, and what has none comes last."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

from wiredump.knowledge.heard import Heard

__all__ = ["LONGEST_NS", "MOST_WEIGHT", "InOrder"]

LONGEST_NS: Final = 120_000_000_000
"""How long an exchange may take and keep its place."""

MOST_WEIGHT: Final = 1_000_000
"""Of all that wait; about 100 bytes each."""


class InOrder:
    """Give it exchanges as they come; take them in the order of ``Heard.order``.

    Exact as long as each comes no later than ``longest_ns`` after its request, by the clock of
    those that came before, and what waits stays below ``most_weight``. What comes later than that
    is handed out at once; ``late`` counts it.
    """

    def __init__(self, longest_ns: int = LONGEST_NS, most_weight: int = MOST_WEIGHT) -> None:
        self.late = 0
        self._longest_ns = longest_ns
        self._most_weight = most_weight
        self._waiting: list[tuple[tuple[int, int, int], int, Heard]] = []
        self._weight = 0
        self._now_ns = 0
        self._last: tuple[int, int, int] | None = None

    def add(self, heard: Heard) -> Iterator[Heard]:
        """All whose turn it is now."""
        if self._last is not None and heard.order < self._last:
            self.late += 1
            yield heard
            return
        weight = heard.weight
        heappush(self._waiting, (heard.order, weight, heard))
        self._weight += weight
        self._now_ns = max(self._now_ns, heard.completed_ns)
        while self._waiting and (
            self._waiting[0][0][0] < self._now_ns - self._longest_ns
            or self._weight > self._most_weight
        ):
            yield self._pop()

    def end(self) -> Iterator[Heard]:
        """The rest. What is added after that begins anew, and may be of any time."""
        while self._waiting:
            yield self._pop()
        self._now_ns = 0
        self._last = None

    def _pop(self) -> Heard:
        self._last, weight, heard = heappop(self._waiting)
        self._weight -= weight
        return heard
