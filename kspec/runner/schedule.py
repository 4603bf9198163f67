"""Schedule plays: clients times cases, several in parallel, with each client's process kept
between.

One event loop runs ``jobs`` plays at once. Plays that failed are repeated at the end, where the
load of other plays cannot be their reason. A process that hung or died is replaced.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from kspec.answers import Answer
from kspec.errors import AdapterError, own_failure
from kspec.judge import MOST_MEMORY_MIB, Judgement, judge, worst
from kspec.model import CaseFile, Variant
from kspec.results import Call, Greeting, Result, VariantResult, without_empty_passes
from kspec.runner.adapters import Adapter
from kspec.runner.play import play
from kspec.traffic import Evidence

__all__ = ["FEW", "JOBS", "JOBS_AGAIN", "ClientUnderTest", "run", "run_pairs", "whole_results"]

JOBS: Final = 8
"""Plays at a time by default. A play mostly waits: 187 of kafka-python took 190 s in sum, 8 s of
them computing."""
JOBS_AGAIN: Final = 2
"""Plays at a time where failures are confirmed: the machine's load must not be their reason."""
FEW: Final = 5
"""So many failures, such as those that a baseline lacks, are confirmed one after the other."""


class ClientUnderTest(Protocol):
    """A client with a name that can be started."""

    @property
    def name(self) -> str: ...

    async def start(self) -> Adapter:
        """Start the client. Raises AdapterError."""


async def run(
    contestants: Sequence[ClientUnderTest],
    cases: Sequence[CaseFile],
    *,
    jobs: int = 1,
    on_result: Callable[[Result], None] = lambda _result: None,
    on_greeting: Callable[[str, Greeting], None] = lambda _name, _greeting: None,
    again: Callable[[Result], bool] = lambda _result: False,
    kept: dict[tuple[str, str], Result] | None = None,
) -> list[Result]:
    """Play every client in every case and return the results in that order, without the passes
    that rest on calls which never succeed.

    ``kept`` gets each result at once, by client and case, so that ``whole_results`` has them also
    if the run is interrupted.
    """
    pairs = [(client, case) for client in contestants for case in cases]
    return without_empty_passes(
        await run_pairs(
            pairs, jobs=jobs, on_result=on_result, on_greeting=on_greeting, again=again, kept=kept
        )
    )


def whole_results(
    contestants: Sequence[ClientUnderTest],
    cases: Sequence[CaseFile],
    kept: Mapping[tuple[str, str], Result],
    why: str,
) -> list[Result]:
    """Return the results of a run that did not come to its end. ``why`` is the reason of the
    error that cases have which were not played."""
    judgement = Judgement("error", why)
    return without_empty_passes([
        kept.get((client.name, case.id)) or Result(client.name, case, judgement, ())
        for client in contestants
        for case in cases
    ])  # fmt: skip


async def run_pairs(
    pairs: Sequence[tuple[ClientUnderTest, CaseFile]],
    *,
    jobs: int = 1,
    on_result: Callable[[Result], None] = lambda _result: None,
    on_greeting: Callable[[str, Greeting], None] = lambda _name, _greeting: None,
    again: Callable[[Result], bool] = lambda _result: False,
    kept: dict[tuple[str, str], Result] | None = None,
) -> list[Result]:
    """Play pairs and return the results in their order, which ``kept`` has as they come.

    Those for which ``again`` holds are played once more when all others are over, ``JOBS_AGAIN`` at
    a time, and the second result counts. Failures are results: of a client, of its adapter, of a
    case that cannot be staged and of a play itself.
    """
    pools = {each.name: _Pool(each, on_greeting) for each, _ in pairs}
    left = Counter(client.name for client, _ in pairs)
    results: dict[tuple[str, str], Result] = {} if kept is None else kept
    doubted: list[tuple[ClientUnderTest, CaseFile]] = []

    async def first(client: ClientUnderTest, case: CaseFile) -> None:
        result = await _play_case(client.name, case, pools[client.name])
        results[client.name, case.id] = result
        if again(result):
            doubted.append((client, case))
        else:
            on_result(result)
        left[client.name] -= 1
        if not left[client.name]:  # its processes have the memory of their largest cases
            await pools[client.name].stop()

    async def second(client: ClientUnderTest, case: CaseFile) -> None:
        before = results[client.name, case.id].judgement.why
        result = await _play_case(client.name, case, pools[client.name])
        if result.judgement.verdict not in ("fail", "error"):
            result = replace(result, unsteady=before)
        results[client.name, case.id] = result
        on_result(result)

    try:
        await _work(pairs, first, jobs)
        for pool in pools.values():
            pool.try_again()
        await _work(doubted, second, min(jobs, 1 if len(doubted) <= FEW else JOBS_AGAIN))
    finally:
        await asyncio.gather(*(pool.stop() for pool in pools.values()))
    return [results[client.name, case.id] for client, case in pairs]


async def _work(
    pairs: Sequence[tuple[ClientUnderTest, CaseFile]],
    play_pair: Callable[[ClientUnderTest, CaseFile], Awaitable[None]],
    jobs: int,
) -> None:
    """Play the pairs in their order, so many at a time."""
    waiting = list(reversed(pairs))

    async def work() -> None:
        while waiting:
            await play_pair(*waiting.pop())

    async with asyncio.TaskGroup() as group:
        for _ in range(max(1, min(jobs, len(waiting)))):
            group.create_task(work())


class _Pool:
    """A client's idle processes.

    Where the first one does not start, no other is tried until ``try_again``: a program that never
    sends a greeting costs that wait once, and not in each case.
    """

    def __init__(
        self, client: ClientUnderTest, on_greeting: Callable[[str, Greeting], None]
    ) -> None:
        self._client = client
        self._on_greeting = on_greeting
        self._idle: list[Adapter] = []
        self._has_started = False
        self._refusal: AdapterError | None = None

    def try_again(self) -> None:
        self._refusal = None

    async def take(self) -> Adapter:
        if self._idle:
            return self._idle.pop()
        if self._refusal is not None:
            raise self._refusal
        try:
            adapter = await self._client.start()
        except AdapterError as error:
            if not self._has_started:
                self._refusal = error
            raise
        self._has_started = True
        self._on_greeting(self._client.name, adapter.greeting)
        return adapter

    async def give(self, adapter: Adapter, *, usable: bool) -> None:
        if usable:
            self._idle.append(adapter)
        else:
            await adapter.stop()

    async def stop(self) -> None:
        await asyncio.gather(*(adapter.stop() for adapter in self._idle))
        self._idle.clear()


async def _play_case(client: str, case: CaseFile, pool: _Pool) -> Result:
    started = time.monotonic()
    played = [await _play_variant(variant, pool) for variant in case.variants]
    judgement = worst([each.judgement for each in played])
    return Result(client, case, judgement, played, time.monotonic() - started)


async def _play_variant(variant: Variant, pool: _Pool) -> VariantResult:
    adapters: dict[str | None, Adapter] = {}
    seen: Evidence | None = None
    try:
        for name in (None, *variant.case.others):
            adapters[name] = await pool.take()
        seen = await play(variant.case, adapters)
        return _judged(variant, seen)
    except AdapterError as error:
        return VariantResult(variant.name, Judgement("error", str(error)))
    except Exception as error:  # of one play, which says nothing about the others
        return VariantResult(variant.name, Judgement("error", own_failure(error)))
    finally:
        # With several clients the evidence does not say which of them failed.
        usable = (
            seen is not None
            and seen.broken is None
            and seen.fault is None
            # It may keep that memory, so that the next case would find no growth.
            and seen.memory_growth <= MOST_MEMORY_MIB * 2**20
        )
        for adapter in adapters.values():
            await pool.give(adapter, usable=usable)


def _judged(variant: Variant, seen: Evidence) -> VariantResult:
    calls = [
        Call(
            each.name,
            each.call,
            str(each.answer),
            each.milliseconds,
            each.answer.raw,
            _succeeded(each.answer),
        )
        for each in seen.calls.values()
    ]
    return VariantResult(variant.name, judge(variant.case, seen), seen.entries, calls, seen.unmet)


def _succeeded(answer: Answer) -> bool | None:
    if answer.unsupported is not None:
        return None
    return answer.ok or any(each is None for each in answer.partitions.values())
