"""Wait for another process."""

import asyncio
from collections.abc import Callable
from typing import Final

__all__ = ["SECONDS", "until"]

SECONDS: Final = 60.0
"""How long a wait may take."""


async def until(condition: Callable[[], bool], what: str) -> None:
    """Poll until ``condition`` is true. An AssertionError names ``what`` did not happen."""
    try:
        async with asyncio.timeout(SECONDS):
            while not condition():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"did not happen in {SECONDS:.0f} s: {what}") from None
