"""Play a seed's damaged requests on a broker, or on two at once: after each batch a good request
has to be answered, and where there are two they should have done the same.

What is the same: answered, closed, passed over, waiting. Error codes are shown, and not compared:
they are the business of the comparison with real Kafka in ``tests/real``, on good requests.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kproto import Dialect
from kspec.clientfuzz.bases import Base
from kspec.clientfuzz.brokers.address import Address
from kspec.clientfuzz.brokers.exchange import Reply, ask, healthy
from kspec.clientfuzz.brokers.expected import Expected, explain
from kspec.clientfuzz.decoders.causes import shape
from kspec.clientfuzz.frame_cases import Case, case_of

__all__ = ["WAITING", "Aimed", "Cause", "Finding", "play"]

BATCH: Final = 50
AT_ONCE: Final = 8

WAITING: Final[Mapping[int, str]] = {
    0: "Produce may wait for replicas",
    1: "Fetch waits for records",
    4: "of brokers' own, and changes what they are",
    5: "of brokers' own, and deletes what they keep",
    6: "of brokers' own, and changes what they know",
    7: "stops a broker",
    11: "JoinGroup waits for members",
    14: "SyncGroup waits for the leader",
    59: "FetchSnapshot is of controllers",
    64: "UnregisterBroker takes a broker out of the cluster",
    76: "ShareGroupHeartbeat keeps members",
    78: "ShareFetch waits for records",
    80: "AddRaftVoter changes the quorum",
    81: "RemoveRaftVoter changes the quorum",
}
"""Apis that are asked only by name: their good requests wait, or end what is to be looked at."""


class Cause(NamedTuple):
    """Why two brokers are said to differ, or one to have hung."""

    what: str
    api_key: int
    kind: str
    shape: str

    def __str__(self) -> str:
        return f"{self.what}; api {self.api_key}, {self.kind} at {self.shape or 'the frame'}"


@dataclass(slots=True)
class Finding:
    cause: Cause
    case: Case
    replies: Mapping[str, Reply]
    expected: Expected | None = None
    count: int = 1


@dataclass(slots=True)
class Aimed:
    """What came of it. ``down`` names the broker that did not answer a good request after a batch,
    and the numbers of that batch's cases."""

    seed: int
    cases: int = 0
    seconds: float = 0.0
    became: dict[str, Counter[str]] = field(default_factory=dict)
    causes: dict[Cause, Finding] = field(default_factory=dict)
    down: tuple[str, range] | None = None

    @property
    def findings(self) -> list[Finding]:
        return sorted(
            (each for each in self.causes.values() if each.expected is None),
            key=lambda each: -each.count,
        )

    @property
    def known(self) -> list[Finding]:
        return [each for each in self.causes.values() if each.expected is not None]


async def play(
    dialect: Dialect,
    bases: Sequence[Base],
    targets: Mapping[str, Address],
    *,
    seed: int,
    cases: int,
    first: int = 0,
    told: Callable[[Aimed], None] | None = None,
) -> Aimed:
    """``targets`` are by what they are called: one, or the mock first and Kafka second."""
    aimed = Aimed(seed, became={name: Counter() for name in targets})
    started = time.monotonic()
    for begin in range(first, first + cases, BATCH):
        numbers = range(begin, min(begin + BATCH, first + cases))
        played = [case_of(dialect, bases, seed, number) for number in numbers]
        replies = {name: await _batch(address, played) for name, address in targets.items()}
        for place, case in enumerate(played):
            _count(aimed, case, {name: replies[name][place] for name in targets})
        aimed.seconds = time.monotonic() - started
        if told is not None:
            told(aimed)
        for name, address in targets.items():
            if not await healthy(address):
                aimed.down = name, numbers
                return aimed
    return aimed


async def _batch(address: Address, cases: Sequence[Case]) -> list[Reply]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(case: Case) -> Reply:
        async with gate:
            return await ask(address, case.base.api_key, case.base.version, case.mutation.frame)

    return list(await asyncio.gather(*(one(case) for case in cases)))


def _count(aimed: Aimed, case: Case, replies: Mapping[str, Reply]) -> None:
    aimed.cases += 1
    for name, reply in replies.items():
        aimed.became[name][reply.became] += 1
    outcomes = {reply.became for reply in replies.values()}
    if len(outcomes) == 1 and not outcomes & {"hung", "unreachable"}:
        return
    what = ", ".join(f"{name} {reply.became}" for name, reply in replies.items())
    mutation = case.mutation
    cause = Cause(what, case.base.api_key, mutation.kind, shape(mutation.path))
    known = aimed.causes.get(cause)
    if known is not None:
        known.count += 1
        return
    row = explain(case, [reply.became for reply in replies.values()])
    aimed.causes[cause] = Finding(cause, case, replies, row)
