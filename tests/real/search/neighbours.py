"""Programs that are played together, and must not see what the others do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, TypeVar

from tests.real.programs.model import Program

__all__ = ["Turns", "deletes_topics", "in_rounds"]

T = TypeVar("T")

_DELETE_TOPICS: Final = 20
_SHARED: Final = ((29, 30, 31), (32, 33, 44), (48, 49), (50, 51))
"""APIs of access rules, configs, quotas and credentials: rows that have no name of a program, such
as defaults, belong to all programs."""


class Turns:
    """Among programs with APIs of one row of ``_SHARED``, one is played at a time."""

    def __init__(self) -> None:
        self._locks = tuple((frozenset(keys), asyncio.Lock()) for keys in _SHARED)

    @asynccontextmanager
    async def of(self, program: Program) -> AsyncIterator[None]:
        """Wait for the program's turn."""
        sent = {step.get("api") for step in program.steps if not step.get("setup")}
        async with AsyncExitStack() as held:
            for keys, lock in self._locks:
                if keys & sent:
                    await held.enter_async_context(lock)
            yield


def in_rounds(items: Sequence[T], program_of: Callable[[T], Program]) -> list[list[T]]:
    """Those whose programs delete no topics, and then the others: with each topic coordinators
    delete all groups that have neither members nor offsets, such as one whose first member has been
    asked to join with an id."""
    rounds: list[list[T]] = [[], []]
    for each in items:
        rounds[deletes_topics(program_of(each))].append(each)
    return rounds


def deletes_topics(program: Program) -> bool:
    return any(step.get("api") == _DELETE_TOPICS for step in program.steps)
