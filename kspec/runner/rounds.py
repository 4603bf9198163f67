"""Poll several consumers in turns until each has the partitions that its call waits for.

A member of a group takes part in a rebalance while its application polls, so the polls of a group
end together: a consumer that has its partitions still has to answer to the others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kspec.answers import Answer
from kspec.model import ClientCall
from kspec.runner.adapters import Adapter

__all__ = ["poll_in_rounds", "waits_for_partitions"]

_ROUND_MS: Final = 250
_EVERY_RECORD: Final = 1_000_000


def waits_for_partitions(call: ClientCall) -> bool:
    """Whether it is a poll that ends when the consumer has a number of partitions."""
    return call.call == "poll" and "assigned" in call.arguments


@dataclass(slots=True)
class _Poll:
    adapter: Adapter
    partitions: int
    count: int
    records: list[Any] = field(default_factory=list)
    stopped: Answer | None = None
    assigned: int = -1

    @property
    def done(self) -> bool:
        return self.assigned == self.partitions and len(self.records) >= self.count

    async def take_turn(self) -> None:
        arguments = {"records": _EVERY_RECORD, "ms": _ROUND_MS}
        answer = await self.adapter.call("poll", arguments)
        self.records += answer.records
        if answer.failure is None and answer.unsupported is None:
            answer = await self.adapter.call("assignment", {})
            self.assigned = len(answer.result or ())
        if answer.failure is not None or answer.unsupported is not None:
            self.stopped = answer

    def answer(self) -> Answer:
        if self.stopped is not None:
            return replace(self.stopped, records=self.records)
        return Answer(result=self.records, records=self.records)


async def poll_in_rounds(calls: Sequence[tuple[ClientCall, Adapter]]) -> list[Answer]:
    """Return the answers to the polls, which end when all have their partitions and records, when
    one fails, or when the time of the longest is over."""
    polls = [
        _Poll(adapter, call.arguments["assigned"], call.arguments.get("records", 0))
        for call, adapter in calls
    ]
    ends = time.monotonic() + max(call.arguments["ms"] for call, _ in calls) / 1000
    while time.monotonic() < ends:
        await asyncio.gather(*(each.take_turn() for each in polls))
        if any(each.stopped for each in polls) or all(each.done for each in polls):
            break
    return [each.answer() for each in polls]
