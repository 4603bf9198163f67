"""An event loop with a virtual clock, so that tests neither wait nor flake.

The mock's connections need a loop for delayed answers: queued elections and faults with a delay.
Here those delays are virtual, and when ``settle`` returns, everything that can happen now has
happened.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

__all__ = ["VirtualLoop"]

_TURNS: Final = 30
"""Limit of loop iterations in one ``settle``: more than the longest chain of callbacks, which is a
burst of requests that each meet a fault."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """``failures`` lists unhandled exceptions of callbacks and tasks."""

    def __init__(self) -> None:
        self._seconds = 0.0
        super().__init__()
        self.failures: list[str] = []
        self.set_exception_handler(self._failed)

    def time(self) -> float:
        return self._seconds

    def settle(self) -> None:
        """Run everything that is ready."""
        self.run_until_complete(_turns())

    def pass_time(self, milliseconds: int) -> None:
        """Advance the clock. Timers fire in order, each with its consequences."""
        self._seconds += milliseconds / 1000
        self.settle()

    def shut(self) -> None:
        """Cancel what is still waiting, and close."""
        left = asyncio.all_tasks(self)
        for task in left:
            task.cancel()
        self.settle()
        self.close()

    def _failed(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")


async def _turns() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
