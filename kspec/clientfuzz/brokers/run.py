"""Send the mutated requests of a seed to one broker, or to two and compare what they do.

Each batch is followed by a valid request, which every broker must answer. Two brokers agree if both
answer, both close, both skip or both wait. Error codes are shown but not compared; ``tests/real``
compares them for valid requests.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kproto import Dialect
from kspec.clientfuzz.bases import Base
from kspec.clientfuzz.brokers.address import Address
from kspec.clientfuzz.brokers.exchange import Reply, ask, healthy
from kspec.clientfuzz.brokers.expected import explain
from kspec.clientfuzz.comparison import Cause, Comparison, Finding, batches, shape
from kspec.clientfuzz.frame_cases import Case

__all__ = ["EXCLUDED_APIS", "BrokerComparison", "play"]

BATCH: Final = 50
AT_ONCE: Final = 8

EXCLUDED_APIS: Final[Mapping[int, str]] = {
    0: "Produce may wait for replicas",
    1: "Fetch waits for records",
    4: "LeaderAndIsr is inter-broker and changes replicas' roles",
    5: "StopReplica is inter-broker and deletes logs",
    6: "UpdateMetadata is inter-broker and changes cached metadata",
    7: "ControlledShutdown stops a broker",
    11: "JoinGroup waits for members",
    14: "SyncGroup waits for the leader",
    59: "FetchSnapshot is for controllers",
    64: "UnregisterBroker takes a broker out of the cluster",
    76: "ShareGroupHeartbeat changes group membership",
    78: "ShareFetch waits for records",
    80: "AddRaftVoter changes the quorum",
    81: "RemoveRaftVoter changes the quorum",
}
"""APIs that are fuzzed only if named: their valid requests wait, or change the cluster under test.
"""


@dataclass(slots=True)
class BrokerComparison(Comparison[Reply]):
    """``outcomes`` counts the outcomes of each broker. ``down`` holds the name of a broker that did
    not answer the valid request after a batch, and that batch's case numbers."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    down: tuple[str, range] | None = None

    def count(self, case: Case, replies: Mapping[str, Reply]) -> None:
        self.cases += 1
        for name, reply in replies.items():
            self.outcomes[name][reply.outcome] += 1
        outcomes = [reply.outcome for reply in replies.values()]
        if len(set(outcomes)) == 1 and outcomes[0] not in ("hung", "unreachable"):
            return
        what = ", ".join(f"{name} {reply.outcome}" for name, reply in replies.items())
        mutation = case.mutation
        cause = Cause(what, mutation.kind, shape(mutation.path), case.base.api_key)
        row = explain(case, outcomes)
        rows = [] if row is None else [row]
        self.add(Finding(cause, case, replies, rows, known=row is not None))


async def play(
    dialect: Dialect,
    bases: Sequence[Base],
    targets: Mapping[str, Address],
    *,
    seed: int,
    cases: int,
    first: int = 0,
    on_batch: Callable[[BrokerComparison], None] = lambda _comparison: None,
) -> BrokerComparison:
    """``targets`` maps names to addresses: one broker, or the mock followed by Kafka."""
    comparison = BrokerComparison(seed, outcomes={name: Counter() for name in targets})
    started = time.monotonic()
    for played in batches(dialect, bases, seed=seed, first=first, cases=cases, size=BATCH):
        replies = {name: await _send(address, played) for name, address in targets.items()}
        for place, case in enumerate(played):
            comparison.count(case, {name: replies[name][place] for name in targets})
        comparison.seconds = time.monotonic() - started
        on_batch(comparison)
        for name, address in targets.items():
            if not await healthy(address):
                comparison.down = name, range(played[0].number, played[-1].number + 1)
                return comparison
    return comparison


async def _send(address: Address, cases: Sequence[Case]) -> list[Reply]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(case: Case) -> Reply:
        async with gate:
            return await ask(address, case.base.api_key, case.base.version, case.mutation.frame)

    return list(await asyncio.gather(*(one(case) for case in cases)))
