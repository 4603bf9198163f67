"""Measure the longest pause of an event loop while other code runs, beside that of a thread.

A loaded machine stops both alike. Only a call that blocks the loop makes its pauses much longer.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator

__all__ = ["LoopPauses", "measured_pauses"]

_EVERY_SECONDS = 0.005


class LoopPauses:
    """``of_loop`` and ``of_thread`` are in seconds, without the sleep between measurements."""

    of_loop = 0.0
    of_thread = 0.0

    @property
    def blocked(self) -> float:
        """How much longer the loop paused than the machine's load explains, in seconds."""
        return self.of_loop - 3 * self.of_thread

    async def watch_loop(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(_EVERY_SECONDS)
            self.of_loop = max(self.of_loop, time.monotonic() - before - _EVERY_SECONDS)

    def watch_thread(self, ended: threading.Event) -> None:
        while not ended.is_set():
            before = time.monotonic()
            time.sleep(_EVERY_SECONDS)
            self.of_thread = max(self.of_thread, time.monotonic() - before - _EVERY_SECONDS)


@contextlib.asynccontextmanager
async def measured_pauses() -> AsyncIterator[LoopPauses]:
    """Measure the running loop while the body runs."""
    pauses, ended = LoopPauses(), threading.Event()
    thread = threading.Thread(target=pauses.watch_thread, args=(ended,))
    thread.start()
    watching = asyncio.create_task(pauses.watch_loop())
    try:
        yield pauses
    finally:
        ended.set()
        thread.join()
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
