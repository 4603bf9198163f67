"""Both event loops that servers run on: asyncio's own, and uvloop where it is installed."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from tests.support.toolchain import require_module

__all__ = ["LOOPS", "run_on"]

LOOPS: Final = ("asyncio", "uvloop")

T = TypeVar("T")


def run_on(loop: str, main: Coroutine[Any, Any, T]) -> T:
    """Run this on a new event loop of that kind; skip without uvloop."""
    if loop == "asyncio":
        return asyncio.run(main)
    uvloop: Any = require_module("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
