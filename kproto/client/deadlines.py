"""How long a call goes on, and how long it pauses between attempts. Time is the event loop's."""

from __future__ import annotations

import asyncio
from typing import Final

__all__ = ["Backoff", "Deadline"]

_GRACE: Final = 1.0
_SHARE: Final = 0.1
"""An answer may be late by this share of the time there was, and by ``_GRACE`` seconds at most: a
broker that gives up in time still has to say so."""


class Deadline:
    """``timeout_ms`` from now on."""

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._loop = asyncio.get_running_loop()
        self._at = self._loop.time() + timeout_ms / 1000

    @property
    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._at - self._loop.time())

    @property
    def remaining_ms(self) -> int:
        """Milliseconds left for a broker to work, at least one."""
        return max(1, round(self.remaining * 1000))

    @property
    def for_an_answer(self) -> float:
        """Seconds to wait for an answer to what is sent now."""
        return self.remaining + min(_GRACE, _SHARE * self.timeout_ms / 1000)


class Backoff:
    """Pauses that double, up to a bound."""

    def __init__(self, first_ms: int, longest_ms: int) -> None:
        self._next_ms = first_ms
        self._longest_ms = longest_ms

    def next(self) -> float:
        """Seconds."""
        pause = min(self._next_ms, self._longest_ms)
        self._next_ms = pause * 2
        return pause / 1000
