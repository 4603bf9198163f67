"""State by key, bounded: what was not used for longest goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

__all__ = ["Recent"]

KeyT = TypeVar("KeyT", bound=Hashable)
StateT = TypeVar("StateT")


class Recent(Generic[KeyT, StateT]):
    """``take`` a key's state, which ``new`` makes if there is none, change it, then ``keep`` it
    with its weight. ``keep`` returns the states that had to go, since the total exceeded
    ``most``."""

    def __init__(self, most: int, new: Callable[[], StateT]) -> None:
        self._most = most
        self._new = new
        self._states: OrderedDict[KeyT, tuple[StateT, int]] = OrderedDict()
        self._weight = 0

    def take(self, key: KeyT) -> StateT:
        """Return the state of a key, and forget it until ``keep``."""
        state, weight = self._states.pop(key, (None, 0))
        self._weight -= weight
        return self._new() if state is None else state

    def keep(self, key: KeyT, state: StateT, weight: int) -> Iterator[tuple[KeyT, StateT]]:
        """Remember a state; returns those that had to go."""
        self._states[key] = state, weight
        self._weight += weight
        while self._weight > self._most and len(self._states) > 1:
            yield self._first()

    def end(self) -> Iterator[tuple[KeyT, StateT]]:
        """Return all states, oldest use first, and forget them."""
        while self._states:
            yield self._first()

    def _first(self) -> tuple[KeyT, StateT]:
        key, (state, weight) = self._states.popitem(last=False)
        self._weight -= weight
        return key, state
