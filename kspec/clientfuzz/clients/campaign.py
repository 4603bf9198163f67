"""Play many cases against one client, and group, confirm and minimise what they find.

The findings depend on the seed and the number of cases, not on the number of parallel processes. An
interrupted run leaves its results in ``Campaign.result``. Findings are confirmed, each in a new
process, after the last case; those that were not are marked as unconfirmed.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from kproto.errors import KprotoError
from kspec.clientfuzz.clients.case import Case
from kspec.clientfuzz.clients.causes import cause
from kspec.clientfuzz.clients.judge import Outcome
from kspec.clientfuzz.clients.minimiser import MOST_PLAYS, MOST_SLOW_PLAYS, minimised
from kspec.clientfuzz.clients.random_cases import draw_case
from kspec.clientfuzz.clients.session import ClientProfile, Session
from kspec.errors import AdapterError

__all__ = ["Campaign", "CauseReport", "Result"]

_IDLE_EVERY: Final = 20
"""Number of cases after which an idle process is watched for a moment."""
_LASTING: Final = frozenset({"hang", "memory", "cpu", "stuck"})
"""Verdicts after which the process is gone or no longer usable."""


@dataclass(slots=True)
class CauseReport:
    """One cause.

    ``number`` is that of its first case, ``small`` the minimised case, and ``times`` how often it
    occurred. ``steady`` is True if a new process showed it again, ``unconfirmed`` if the run ended
    before that.
    """

    cause: str
    number: int
    case: Case
    outcome: Outcome
    small: Case
    times: int = 1
    steady: bool = False
    unconfirmed: bool = True


@dataclass(slots=True)
class Result:
    """``verdicts`` counts cases, ``restarts`` processes that ended or hung. ``ended`` says why the
    run ended early."""

    learned: ClientProfile
    seed: int
    cases: int = 0
    seconds: float = 0.0
    restarts: int = 0
    watched: bool = True
    ended: str = ""
    verdicts: Counter[str] = field(default_factory=Counter)
    found: list[CauseReport] = field(default_factory=list)

    @property
    def findings(self) -> list[CauseReport]:
        return [each for each in self.found if each.outcome.is_finding and each.steady]

    @property
    def unconfirmed(self) -> list[CauseReport]:
        return [each for each in self.found if each.unconfirmed]


class Campaign:
    """``session`` starts a session with the client.

    ``on_new_cause`` is called for each new cause, ``on_result`` for each that remains at the end,
    and ``on_case`` after each case. ``result`` is None until the client has answered on a healthy
    cluster.
    """

    def __init__(
        self,
        session: Callable[[], Session],
        *,
        seed: int,
        cases: int | None,
        seconds: float | None,
        jobs: int = 1,
        apis: Collection[int] = (),
        kinds: Collection[str] | None = None,
        on_new_cause: Callable[[CauseReport], None] = lambda _found: None,
        on_result: Callable[[CauseReport], None] = lambda _found: None,
        on_case: Callable[[Result], None] = lambda _result: None,
    ) -> None:
        self._session = session
        self._seed = seed
        self._cases = cases
        self._seconds = seconds
        self._jobs = jobs
        self._apis = apis
        self._kinds = kinds
        self._on_new_cause = on_new_cause
        self._on_result = on_result
        self._on_case = on_case
        self._next = 0
        self._by_cause: dict[str, CauseReport] = {}
        self._failed: KprotoError | None = None
        self.result: Result | None = None

    async def run(self) -> Result:
        """Play, confirm and minimise.

        Raises KspecError if the client cannot be started (again) or uses none of the API keys, and
        MutationError if no answer has a place for the kinds.
        """
        first = self._session()
        try:
            learned = await first.learn()
        except BaseException:
            await first.stop()
            raise
        if self._apis:
            learned.targets = [each for each in learned.targets if each.api_key in self._apis]
        if not learned.targets:
            await first.stop()
            raise AdapterError("the client receives no answer of these API keys")
        result = self.result = Result(learned, self._seed, watched=first.watched)
        try:
            await self._play(first, result)
            if self._failed is not None:
                raise self._failed
            await self._examine(result)
        except asyncio.CancelledError:
            result.ended = "interrupted"
            raise
        except KprotoError as error:
            result.ended = str(error)
            raise
        finally:
            result.found = self._distinct()
            for each in result.found:
                self._on_result(each)
        return result

    async def _play(self, first: Session, result: Result) -> None:
        started = time.monotonic()
        ends = None if self._seconds is None else started + self._seconds
        sessions = [first, *(self._session() for _ in range(self._jobs - 1))]
        try:
            async with asyncio.TaskGroup() as group:
                for session in sessions:
                    group.create_task(self._work(session, result, ends))
        finally:
            result.restarts = sum(max(0, each.starts - 1) for each in sessions)
            result.seconds = time.monotonic() - started
            for session in sessions:
                await session.stop()

    async def _work(self, session: Session, result: Result, ends: float | None) -> None:
        try:
            await self._cases_of(session, result, ends)
        except KprotoError as error:
            self._failed = error

    async def _cases_of(self, session: Session, result: Result, ends: float | None) -> None:
        since_idle: list[tuple[int, Case]] = []
        while self._failed is None and (self._cases is None or self._next < self._cases):
            if ends is not None and time.monotonic() >= ends:
                break
            number, self._next = self._next, self._next + 1
            case = draw_case(
                result.learned.targets, self._seed, number, kinds=self._kinds,
                dialect=session.dialect,
            )  # fmt: skip
            outcome = await session.play(case, result.learned)
            self._count(number, case, outcome, result)
            since_idle.append((number, case))
            if len(since_idle) >= _IDLE_EVERY:
                await self._look_for_spinner(session, since_idle, result)
                since_idle = []
        await self._look_for_spinner(session, since_idle, result)

    async def _look_for_spinner(
        self, session: Session, cases: list[tuple[int, Case]], result: Result
    ) -> None:
        """If the idle process is busy, find which of its last cases caused it, each in a new
        process."""
        if not cases or not await session.busy():
            return
        await session.stop()
        for number, case in cases:
            alone = await self._alone(case, result.learned)
            if alone.verdict == "cpu":
                self._count(number, case, alone, result, again=True)
                return

    def _count(
        self, number: int, case: Case, outcome: Outcome, result: Result, *, again: bool = False
    ) -> None:
        """``again`` means that the case was already counted and has a further outcome."""
        result.cases += not again
        result.verdicts[outcome.verdict] += 1
        if outcome.is_finding or outcome.is_observation:
            key = cause(case, outcome)
            known = self._by_cause.get(key)
            if known is None:
                known = self._by_cause[key] = CauseReport(key, number, case, outcome, case)
                self._on_new_cause(known)
            else:
                known.times += 1
                if number < known.number:
                    known.number, known.case, known.small = number, case, case
                    known.outcome = outcome
        self._on_case(result)

    async def _alone(self, case: Case, learned: ClientProfile) -> Outcome:
        session = self._session()
        try:
            return await session.play(case, learned, idle=True)
        finally:
            await session.stop()

    async def _examine(self, result: Result) -> None:
        """Play each cause again in a new process and minimise the findings."""
        session = self._session()
        try:
            for each in sorted(self._by_cause.values(), key=lambda one: one.number):
                await self._confirm(each, session, result.learned)
        finally:
            await session.stop()

    def _distinct(self) -> list[CauseReport]:
        """Return the causes by number. Those whose minimised cases are the same are merged."""
        found: dict[str, CauseReport] = {}
        for each in sorted(self._by_cause.values(), key=lambda one: one.number):
            known = found.get(key := cause(each.small, each.outcome))
            if known is not None and (known.steady or not each.steady):
                known.times += each.times
                continue
            each.times += 0 if known is None else known.times
            each.cause, found[key] = key, each
        return sorted(found.values(), key=lambda each: each.number)

    async def _confirm(self, found: CauseReport, session: Session, learned: ClientProfile) -> None:
        if found.outcome.is_finding:
            await session.stop()
        outcome = await session.play(found.case, learned, idle=found.outcome.verdict == "cpu")
        found.unconfirmed = False
        if cause(found.case, outcome) != found.cause:
            return
        found.steady, found.outcome = True, outcome
        if outcome.is_finding:
            most = MOST_SLOW_PLAYS if outcome.verdict in _LASTING else MOST_PLAYS
            await minimised(found.case, self._same(session, found, learned), most=most)

    def _same(
        self, session: Session, found: CauseReport, learned: ClientProfile
    ) -> Callable[[Case], Awaitable[bool]]:
        verdict, at = found.outcome.verdict, found.outcome.at

        async def same(case: Case) -> bool:
            if verdict in _LASTING:
                await session.stop()
            outcome = await session.play(case, learned, idle=verdict == "cpu")
            if (outcome.verdict, outcome.at) != (verdict, at):
                return False
            found.small, found.outcome = case, outcome  # at once, as the run may end at any time
            return True

        return same
