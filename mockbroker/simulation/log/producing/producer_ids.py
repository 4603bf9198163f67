"""Producer ids: each broker hands out blocks of them, as brokers get them from the controller."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

__all__ = ["BLOCK_SIZE", "ProducerIds"]

BLOCK_SIZE: Final = 1000


class ProducerIds:
    """The first block of a broker begins at 1000 x its id, so that ids are equal in each run. Later
    blocks follow those of all brokers that are registered."""

    def __init__(self, broker_ids: Callable[[], Collection[int]]) -> None:
        self._broker_ids = broker_ids
        self._next: dict[int, int] = {}
        self._blocks: set[int] = set()

    def next_id(self, broker_id: int) -> int:
        """Return an id that no producer has yet."""
        found = self._next.get(broker_id)
        if found is None or found % BLOCK_SIZE == 0:
            found = self._new_block(broker_id)
        self._next[broker_id] = found + 1
        return found

    def _new_block(self, broker_id: int) -> int:
        block = broker_id
        if block in self._blocks:
            block = max(*self._broker_ids(), *self._blocks) + 1
        self._blocks.add(block)
        return block * BLOCK_SIZE
