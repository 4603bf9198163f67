"""Waiting for what another process does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

__all__ = ["SECONDS", "until"]

SECONDS: Final = 60.0
"""Before a wait is given up."""


async def until(condition: Callable[[], bool], what: str) -> None:
    """``what`` is said where it does not come about."""
    try:
        async with asyncio.timeout(SECONDS):
            while not condition():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not so in {SECONDS:.0f} s: {what}") from None
