"""Measure the longest pause of an event loop while other code runs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

__all__ = ["LoopPauses", "measured_pauses"]

_EVERY_SECONDS = 0.005


class LoopPauses:
    """``longest`` is in seconds, without the sleep between two measurements."""

    longest = 0.0

    async def watch(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(_EVERY_SECONDS)
            self.longest = max(self.longest, time.monotonic() - before - _EVERY_SECONDS)


@contextlib.asynccontextmanager
async def measured_pauses() -> AsyncIterator[LoopPauses]:
    """Measure the running loop while the body runs."""
    pauses = LoopPauses()
    watching = asyncio.create_task(pauses.watch())
    try:
        yield pauses
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
