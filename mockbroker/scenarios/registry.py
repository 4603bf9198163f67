"""The table of scenarios."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from mockbroker.scenarios.story import ScenarioError, Story

__all__ = ["SCENARIOS", "Scenario", "scenario"]


class Scenario(msgspec.Struct, frozen=True):
    """``requirements`` are the ids of the requirements that it shows."""

    name: str
    title: str
    requirements: tuple[str, ...]
    run: Callable[[Story], Awaitable[None]]

    def to_dict(self) -> dict[str, Any]:
        """The scenario as JSON values."""
        return {"name": self.name, "title": self.title, "requirements": list(self.requirements)}

    async def report(self) -> dict[str, Any]:
        """Run the scenario and return the result as JSON values: ``ok``, the number of ``facts``
        that held, the narrated ``lines``, and the ``error`` if a claim is false."""
        lines: list[str] = []
        story = Story(lines.append)
        outcome: dict[str, Any] = {"name": self.name, "title": self.title, "ok": True}
        try:
            await self.run(story)
        except ScenarioError as error:
            outcome |= {"ok": False, "error": str(error)}
        return {**outcome, "facts": story.facts, "lines": lines}


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
