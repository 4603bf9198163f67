"""Waiting on the event loop, for those who must not know one.

The simulated clock, where it follows the real one, is woken up in time for what is due on it; a
handler waits to be called back. Neither what is due nor what is waited for is known here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

__all__ = ["Alarm", "called_back", "sleep", "wall_ms"]

_EPOCH_AT_START_MS = (time.time_ns() - time.monotonic_ns()) // 1_000_000


class Alarm:
    """``ring`` is called once, at the time set last; ``loop`` says where, None for not at all."""

    def __init__(
        self, loop: Callable[[], asyncio.AbstractEventLoop | None], ring: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None

    def set(self, milliseconds: int | None) -> None:
        """Ring in so many from now, and not when it was set to before; None: never."""
        self.cancel()
        loop = self._loop()
        if milliseconds is not None and loop is not None:
            self._timer = loop.call_later(max(milliseconds, 0) / 1000, self._ring)

    def cancel(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()


def wall_ms() -> int:
    """Real time that never goes back, in milliseconds since the Unix epoch."""
    return _EPOCH_AT_START_MS + time.monotonic_ns() // 1_000_000


async def sleep(seconds: float) -> None:
    """Let the time pass, the cluster's clock meanwhile untouched."""
    await asyncio.sleep(seconds)


async def called_back(ask: Callable[[Callable[[], None]], None]) -> None:
    """Wait until what was given to ``ask`` is called, by this thread; the first time counts."""
    done = asyncio.get_running_loop().create_future()
    ask(lambda: None if done.done() else done.set_result(None))
    await done
