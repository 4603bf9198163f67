"""Wait for another process, or for a client that blocks."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

__all__ = ["SECONDS", "in_thread", "until"]

T = TypeVar("T")

SECONDS: Final = 60.0
"""How long a wait may take."""


async def in_thread(work: Callable[[], T]) -> T:
    """The result of a function that blocks, which runs in a thread."""
    return await asyncio.wait_for(asyncio.to_thread(work), SECONDS)


async def until(condition: Callable[[], bool], what: str) -> None:
    """Poll until ``condition`` is true. An AssertionError names ``what`` did not happen."""
    try:
        async with asyncio.timeout(SECONDS):
            while not condition():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"did not happen in {SECONDS:.0f} s: {what}") from None
