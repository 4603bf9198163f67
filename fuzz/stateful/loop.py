"""An event loop whose time passes only when told to, so that nothing waits and nothing flakes.

The mock's connections need a loop for answers that come later: elections in a queue, faults with a
delay. Here those delays are virtual, and all that can happen now has happened when ``settle``
returns.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

__all__ = ["VirtualLoop"]

_TURNS: Final = 30
"""Rounds of the loop in one ``settle``: more than the longest chain of callbacks there is, which is
a burst of requests that each meet a fault."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """``failures`` are exceptions that callbacks and tasks left behind."""

    def __init__(self) -> None:
        self._seconds = 0.0
        super().__init__()
        self.failures: list[str] = []
        self.set_exception_handler(self._failed)

    def time(self) -> float:
        return self._seconds

    def settle(self) -> None:
        """Do all that can be done now."""
        self.run_until_complete(_turns())

    def pass_time(self, milliseconds: int) -> None:
        """Timers that are due by then fire, in order, and what they lead to happens."""
        self._seconds += milliseconds / 1000
        self.settle()

    def shut(self) -> None:
        """End what is still waiting, and close."""
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
