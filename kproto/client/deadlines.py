"""Deadlines of calls and pauses between attempts, in the event loop's time."""

from __future__ import annotations

import asyncio
from typing import Final

__all__ = ["Backoff", "Deadline"]

_GRACE: Final = 1.0
_SHARE: Final = 0.1
"""The share of the time-out by which a response may be late, at most ``_GRACE`` seconds: a broker
that reports a time-out needs time to do so."""


class Deadline:
    """``timeout_ms`` from now on."""

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._loop = asyncio.get_running_loop()
        self._at = self._loop.time() + timeout_ms / 1000

    @property
    def remaining(self) -> float:
        """Return the remaining seconds, at least 0."""
        return max(0.0, self._at - self._loop.time())

    @property
    def remaining_ms(self) -> int:
        """Return the remaining milliseconds for the broker's work, at least one."""
        return max(1, round(self.remaining * 1000))

    @property
    def response_timeout(self) -> float:
        """Return the seconds to wait for the response to a request sent now."""
        return self.remaining + min(_GRACE, _SHARE * self.timeout_ms / 1000)


class Backoff:
    """Pauses that double up to a bound."""

    def __init__(self, first_ms: int, longest_ms: int) -> None:
        self._next_ms = first_ms
        self._longest_ms = longest_ms

    def next(self) -> float:
        """Return the next pause in seconds."""
        pause = min(self._next_ms, self._longest_ms)
        self._next_ms = pause * 2
        return pause / 1000
