"""When the simulated clock follows the real one: wake up in time for what is due on it.

Knows an event loop and how to move the clock; not what is due, nor who waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Alarm"]


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
