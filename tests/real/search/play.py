"""Programs played on both sides at once, and what differed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tests.real.answers import leaves
from tests.real.programs.model import Program
from tests.real.search.coverage import Coverage
from tests.real.search.decisions import ends, undecided
from tests.real.search.neighbours import Turns
from tests.real.search.side import CLOSED, SILENT, Side

__all__ = ["Arena", "Found", "Lane", "Played"]

QUIET_SECONDS: Final = 1.0
"""Neither side has answered a request that may wait: both wait for something."""
MAY_WAIT: Final = frozenset({1, 11, 14, 78})
"""APIs whose requests wait by design: for records, and for members."""
PATIENCE: Final = 15.0
"""Afterwards a side does not answer. A busy machine takes seconds for what is no wait at all."""
CORES: Final = os.cpu_count() or 1
UNTIL_SECONDS: Final = 20.0
SPREAD_SECONDS: Final = 5.0
"""How long a broker may take to show what its controller has done."""
DELETION_SECONDS: Final = 20.0
"""How long a controller with ZooKeeper may take to delete a topic."""
POLL_SECONDS: Final = 0.03
UNCONFIRMED_SECONDS: Final = 0.1
"""How long a broker may take to append what it does not confirm. The next request goes by another
connection."""

PASSING: Final = frozenset({3, 5, 6, 14, 15, 16, 51, 100})
"""Error codes that Kafka gives for a moment after a change: metadata that a broker has not read
yet, a coordinator that loads, markers of the transaction before."""

READS: Final = frozenset(
    {2, 3, 9, 10, 15, 16, 23, 29, 32, 35, 41, 46, 48, 50, 55, 60, 61, 65, 66, 69, 74, 75, 77, 89,
     90}
)  # fmt: skip
"""APIs that change nothing, and can be asked again."""


CREATE_TOPICS: Final = 19
TOPIC_ALREADY_EXISTS: Final = 36
DELETE_TOPICS: Final = 20
OF_DELETED: Final = frozenset({DELETE_TOPICS, 37, 43})
"""APIs of topics. A topic that a program has deleted exists in Kafka's ZooKeeper mode a moment
longer; the mock deletes it at once."""
INIT_PRODUCER_ID: Final = 22
ENDED: Final = 26
"""EndTxn is answered before Kafka has written the markers."""
NEW_PARTITIONS: Final = frozenset({19, 37})
REQUEST_TIMED_OUT: Final = 7
CONCURRENT_TRANSACTIONS: Final = 51
OF_SHARE_SESSIONS: Final = frozenset({78, 79})
SETTLES_SECONDS: Final = 0.25
"""How long Kafka may take after its answer for what the mock does at once: write the markers of a
transaction, release the records of a share session that is closed, and elect leaders of partitions
for which the request had no time to wait."""
SLOWER: Final = 4
"""A controller may have other topics to create first."""
FETCH: Final = 1


class Found(NamedTuple):
    """The first difference of a program; ``fields`` are (path, Kafka's value, the mock's)."""

    step: int
    fields: tuple[tuple[str, Any, Any], ...]


@dataclass
class Played:
    requests: int = 0
    fields: int = 0
    found: Found | None = None
    answers: dict[str, int] = field(default_factory=dict)


@dataclass
class _Open:
    """A request that neither side had answered when it was last looked at."""

    step: int
    tasks: tuple[asyncio.Task[Any], asyncio.Task[Any]]


class Arena:
    """Addresses of one broker of each. Each program gets a name of its own. ``release`` decides
    which decisions of the mock apply."""

    def __init__(
        self, real: tuple[str, int], mock: tuple[str, int], run: int, release: str = ""
    ) -> None:
        self._addresses = real, mock
        self._run = run
        self._release = release
        self._count = 0
        self._turns = Turns()
        self.coverage = Coverage()

    async def play(self, program: Program, patience: float = PATIENCE) -> Played:
        """``patience``: seconds for a side to answer what the other has answered."""
        async with self._turns.of(program):
            return await self._play(program, patience)

    async def _play(self, program: Program, patience: float) -> Played:
        self._count += 1
        name = f"s{self._run:03}x{self._count:04}"
        sides = [Side(address, name) for address in self._addresses]
        played = Played()
        try:
            lane = Lane(sides, played, patience, self._release, self.coverage)
            await lane.play(program.steps)
        finally:
            for side in sides:
                side.close()
        return played


class Lane:
    """A program on both sides."""

    def __init__(
        self,
        sides: Sequence[Side],
        played: Played,
        patience: float,
        release: str,
        coverage: Coverage | None = None,
    ) -> None:
        self._coverage = coverage or Coverage()
        self._patience = patience
        self._release = release
        self._real, self._mock = sides
        self._sides = sides
        self._played = played
        self._open: list[_Open] = []
        self._decided = False
        """The mock has decided otherwise on a change, so that the states differ from here on."""
        self._sent: set[int] = set()

    async def play(self, steps: Sequence[Mapping[str, Any]], first: int = 0) -> None:
        """Play the steps from ``first`` on; those before it have been played."""
        for place in range(first, 0 if self._decided else len(steps)):
            found = await self._step(place, steps[place])
            found = found or await self._deferred(steps, patience=0.0)
            if found is not None:
                self._played.found = found
                break
            if self._decided:
                break
        else:
            self._played.found = await self._deferred(steps, patience=QUIET_SECONDS)
        for each in self._open:
            for task in each.tasks:
                task.cancel()

    async def _step(self, place: int, step: Mapping[str, Any]) -> Found | None:
        if "pause" in step:
            await asyncio.sleep(step["pause"])
            return None
        self._sent.add(step["api"])
        if step.get("hang up"):
            for side in self._sides:
                side.leave(step.get("on", "main"))
            return None
        self._played.requests += 1
        answers: list[Any] | None
        if step.get("until"):
            answers = await asyncio.gather(*(self._until(side, step) for side in self._sides))
        else:
            tasks = [await side.send(step) for side in self._sides]
            if step["api"] == 0 and step["body"].get("acks") == 0:
                await asyncio.sleep(self._by_load(UNCONFIRMED_SECONDS))
                if any(task.done() for task in tasks):
                    await asyncio.wait(tasks, timeout=SPREAD_SECONDS)
                for side, task in zip(self._sides, tasks, strict=True):
                    side.set_aside(step.get("on", "main")) if not task.done() else None
                answers = [await task if task.done() else SILENT for task in tasks]
                for task in tasks:
                    task.cancel()
            else:
                answers = await self._both(place, step, tasks)
        if answers is None:
            return None
        found = await self._compare(place, step, answers)
        if _settles_later(step, answers):
            slow = SLOWER if step["api"] in NEW_PARTITIONS else 1
            await asyncio.sleep(self._by_load(slow * SETTLES_SECONDS))
        return found

    async def _both(
        self, place: int, step: Mapping[str, Any], tasks: Sequence[asyncio.Task[Any]]
    ) -> list[Any] | None:
        """Both answers. None where both wait; a side that alone is silent for long is SILENT."""
        quiet = QUIET_SECONDS if step["api"] in MAY_WAIT else self._patience
        await asyncio.wait(tasks, timeout=quiet, return_when=asyncio.FIRST_COMPLETED)
        waiting = [task for task in tasks if not task.done()]
        if len(waiting) == 2:
            for side in self._sides:
                side.set_aside(step.get("on", "main"))
            self._open.append(_Open(place, (tasks[0], tasks[1])))
            return None
        if waiting:
            await asyncio.wait(waiting, timeout=self._by_load(self._patience))
        answers = [await task if task.done() else SILENT for task in tasks]
        for side, task in zip(self._sides, tasks, strict=True):
            if not task.done():
                side.set_aside(step.get("on", "main"))
                task.cancel()
        return answers

    def _by_load(self, seconds: float) -> float:
        """Longer where more processes want to run than there are cores, unless the caller has
        little patience."""
        if self._patience < PATIENCE:
            return seconds
        return seconds * max(1.0, os.getloadavg()[0] / CORES)

    async def _until(self, side: Side, step: Mapping[str, Any]) -> Any:
        """The answer once it has none of the codes that pass, and something at the path that the
        step may name."""
        deadline = time.monotonic() + self._by_load(min(UNTIL_SECONDS, 2 * self._patience))
        while True:
            task = await side.send(step)
            await asyncio.wait([task], timeout=self._by_load(self._patience))
            if not task.done():
                task.cancel()
                side.set_aside(step.get("on", "main"))
                return SILENT
            answer = await task
            ready = not set(_codes(answer)) & PASSING and _has(answer, step["until"])
            if ready or time.monotonic() > deadline:
                return answer
            await asyncio.sleep(POLL_SECONDS)

    async def _compare(
        self, place: int, step: Mapping[str, Any], answers: Sequence[Any]
    ) -> Found | None:
        real, mock = answers
        is_of_deleted = step["api"] in {*OF_DELETED, CREATE_TOPICS} and DELETE_TOPICS in self._sent
        deadline = time.monotonic() + self._by_load(
            DELETION_SECONDS if is_of_deleted else SPREAD_SECONDS
        )
        while True:
            for side, answer in zip(self._sides, (real, mock), strict=True):
                side.keep(step, answer)
            fields, count = _differences(
                self._real.normal(step, real), self._mock.normal(step, mock)
            )
            if not fields or not self._may_pass(step, real, mock) or time.monotonic() > deadline:
                break
            await asyncio.sleep(POLL_SECONDS)
            task = await self._real.send(step)
            await asyncio.wait([task], timeout=self._by_load(self._patience))
            if not task.done():
                task.cancel()
                self._real.set_aside(step.get("on", "main"))
                break
            real = await task
        self._played.fields += count
        self._coverage.add(step, real)
        left = undecided(step, fields, self._release, self._sent)
        self._decided |= ends(step) or (len(left) < len(fields) and step["api"] not in READS)
        return Found(place, tuple(left)) if left else None

    def _may_pass(self, step: Mapping[str, Any], real: Any, mock: Any) -> bool:
        """Whether Kafka may answer otherwise a moment later."""
        if CLOSED in (real, mock) or SILENT in (real, mock):
            return False
        passing = set(_codes(real)) & PASSING - set(_codes(mock))
        if step["api"] == FETCH:
            has_no_session = step["body"].get("sessionEpoch", -1) == -1
            return bool(passing) or (ENDED in self._sent and has_no_session)
        if step["api"] in OF_DELETED and DELETE_TOPICS in self._sent:
            return True
        if step["api"] == CREATE_TOPICS and DELETE_TOPICS in self._sent:
            return TOPIC_ALREADY_EXISTS in set(_codes(real)) - set(_codes(mock))
        return step["api"] in READS or bool(passing)

    async def _deferred(self, steps: Sequence[Mapping[str, Any]], patience: float) -> Found | None:
        """Requests that were left waiting: both are answered by now, or neither is."""
        for each in list(self._open):
            if patience:
                await asyncio.wait(each.tasks, timeout=patience)
            done = [task.done() for task in each.tasks]
            if not any(done):
                continue
            await asyncio.wait(each.tasks, timeout=self._by_load(self._patience))
            self._open.remove(each)
            answers = [await task if task.done() else SILENT for task in each.tasks]
            found = await self._compare(each.step, steps[each.step], answers)
            if found is not None:
                return found
        return None


def _settles_later(step: Mapping[str, Any], answers: Sequence[Any]) -> bool:
    """Whether Kafka may do later what the step asks for."""
    if step["api"] == INIT_PRODUCER_ID:
        return CONCURRENT_TRANSACTIONS in _codes(answers)
    if step["api"] in NEW_PARTITIONS:
        return REQUEST_TIMED_OUT in _codes(answers)
    if step["api"] in OF_SHARE_SESSIONS:
        return bool(step["body"].get("shareSessionEpoch") == -1)
    return bool(step["api"] == ENDED)


def _has(answer: Any, path: Any) -> bool:
    for name in path.split(".") if isinstance(path, str) else ():
        answer = answer.get(name) if isinstance(answer, dict) else None
    return bool(answer) if isinstance(path, str) else True


def _codes(value: Any) -> list[int]:
    """Every error code of an answer."""
    if isinstance(value, dict):
        own = [each for key, each in value.items() if key in ("errorCode", "partitionErrorCode")]
        return own + [code for each in value.values() for code in _codes(each)]
    if isinstance(value, list):
        return [code for each in value for code in _codes(each)]
    return []


def _differences(real: Any, mock: Any) -> tuple[list[tuple[str, Any, Any]], int]:
    if not isinstance(real, dict) or not isinstance(mock, dict):
        same = real == mock
        shown = [each if isinstance(each, str) else "answers" for each in (real, mock)]
        return ([] if same else [("", *shown)]), 1
    theirs = dict(leaves(real))
    if real == mock:
        return [], len(theirs)
    ours = dict(leaves(mock))
    paths = list(dict.fromkeys([*theirs, *ours]))
    absent = "<absent>"
    rows = [
        (path, theirs.get(path, absent), ours.get(path, absent))
        for path in paths
        if theirs.get(path, absent) != ours.get(path, absent)
    ]
    return rows, len(paths)
