"""The table of scenarios."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from mockbroker.scenarios.story import Story

__all__ = ["SCENARIOS", "Scenario", "scenario"]


class Scenario(msgspec.Struct, frozen=True):
    """``requirements`` are the ids of the requirements that it shows."""

    name: str
    title: str
    requirements: tuple[str, ...]
    run: Callable[[Story], Awaitable[None]]


SCENARIOS: Final[dict[str, Scenario]] = {}
"""By name, in the order of the modules."""


def scenario(
    name: str, title: str, *requirements: str
) -> Callable[[Callable[[Story], Awaitable[None]]], Callable[[Story], Awaitable[None]]]:
    """Register the decorated coroutine as a scenario."""

    def register(run: Callable[[Story], Awaitable[None]]) -> Callable[[Story], Awaitable[None]]:
        SCENARIOS[name] = Scenario(name, title, requirements, run)
        return run

    return register
