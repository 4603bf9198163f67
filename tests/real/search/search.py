"""One search: programs by seed, kinds minimised and confirmed, and the report."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kproto.dialects import dialect
from tests.real.programs.model import Program
from tests.real.search.clusters import RELEASES
from tests.real.search.decisions import harms
from tests.real.search.generator import requests
from tests.real.search.kinds import Kind, Kinds, Signature, load, minimise, save, signature_of
from tests.real.search.neighbours import deletes_topics, in_rounds
from tests.real.search.pairs import Pair, pair
from tests.real.search.play import Arena, Played
from tests.real.search.programs import family_of, programs
from tests.real.search.results import Counts, Result

__all__ = ["AT_ONCE", "Limits", "Search", "kinds_file", "play_all", "sessions_file"]

HERE: Final = Path(__file__).resolve().parent
AT_ONCE: Final = 64
"""Programs that are played together. Most of a program's time passes in waiting."""
SAID_AFTER: Final = 100


class Limits(NamedTuple):
    requests: int
    programs: int
    seconds: float | None = None
    apis: tuple[int, ...] = ()
    at_once: int = AT_ONCE


def kinds_file(release: str) -> Path:
    """Where the kinds of a release are stored that are known and not explained."""
    return HERE / "kinds" / f"{release}.jsonl"


def sessions_file(release: str) -> Path:
    """Where the programs of kinds are stored that have been mended."""
    return HERE / "sessions" / f"{release}.jsonl"


async def play_all(
    arena: Arena, chosen: Sequence[Program], at_once: int = AT_ONCE
) -> list[tuple[Program, Played]]:
    """Every program with what came of it: those that delete topics come last."""
    gate = asyncio.Semaphore(at_once)

    async def one(program: Program) -> tuple[Program, Played]:
        async with gate:
            return program, await arena.play(program)

    rounds = in_rounds(chosen, lambda program: program)
    return [each for together in rounds for each in await asyncio.gather(*map(one, together))]


class Search:
    """Everything about one release and seed."""

    def __init__(
        self, release: str, seed: str, limits: Limits, say: Callable[[str], None] = print
    ) -> None:
        self.kinds: Kinds = {}
        self.vanished: Kinds = {}
        """Kinds that did not come back on fresh clusters."""
        self.reached: list[str] = []
        """What the programs have sent and what Kafka has answered, by API."""
        self._release = release
        self._seed = seed
        self._limits = limits
        self._say = say
        self._began = time.monotonic()
        self._played: Counter[str] = Counter()
        self._requests: Counter[str] = Counter()
        self._fields: Counter[str] = Counter()

    @property
    def unlisted(self) -> list[Kind]:
        listed = {each.signature for each in load(kinds_file(self._release))}
        return [each for each in self.kinds.values() if each.signature not in listed]

    @property
    def gone(self) -> list[Signature]:
        return [
            each.signature
            for each in load(kinds_file(self._release))
            if each.signature not in self.kinds
        ]

    async def run(self) -> None:
        release = RELEASES[self._release]
        async with pair(release, 1) as found:
            self._say(f"Kafka {release.kafka} runs beside {release.profile}")
            self._began = time.monotonic()
            for each in found.differing:
                self._say(f"served differently: {each}")
            await self._draw(found)
            self.reached = list(found.arena.coverage.lines(found.served))
            await self._minimise(found.arena)
            found.kafka.check_running()
        if self.kinds:
            async with pair(release, 2) as again:
                await self._confirm(again)

    async def _draw(self, found: Pair) -> None:
        """Stored programs of kinds that were mended, programs of single requests until there are
        enough requests, then programs by number; last those of all these that delete topics. Each
        begins as another ends, so that one that waits holds none up."""
        later: list[Program] = []
        for drawn in (self._keeping(self._drawn(found), later), iter(later)):
            await asyncio.gather(
                *(self._play(found.arena, drawn) for _ in range(self._limits.at_once))
            )
        self._tell()

    def _keeping(self, drawn: Iterator[Program], later: list[Program]) -> Iterator[Program]:
        """Programs that delete no topics; those that do are put into ``later``."""
        for program in drawn:
            if deletes_topics(program):
                later.append(program)
            else:
                yield program

    def _drawn(self, found: Pair) -> Iterator[Program]:
        limits, first = self._limits, 0
        if not limits.apis:
            yield from (each.program for each in load(sessions_file(self._release)))
        while sum(self._requests.values()) < limits.requests and not self._late():
            yield from self._harmless(requests(self._seed, first, 1, found.served, limits.apis))
            first += 1
        for first in range(limits.programs):
            if self._late():
                break
            yield from self._harmless(programs(self._seed, first, 1, found.served))

    def _harmless(self, drawn: Sequence[Program]) -> Iterator[Program]:
        """Programs after which Kafka's broker still serves others."""
        for program in drawn:
            if not any(harms(step, self._release) for step in program.steps):
                yield program

    def _late(self) -> bool:
        seconds = self._limits.seconds
        return seconds is not None and time.monotonic() - self._began > seconds

    async def _play(self, arena: Arena, drawn: Iterator[Program]) -> None:
        for program in drawn:
            self._count(program, await arena.play(program))
            if sum(self._played.values()) % SAID_AFTER == 0:
                self._tell()

    def _count(self, program: Program, played: Played) -> None:
        family = family_of(program)
        self._played[family] += 1
        self._requests[family] += played.requests
        self._fields[family] += played.fields
        if played.found is None:
            return
        signature = signature_of(program, played.found)
        if signature not in self.kinds:
            shown = Program(program.name, program.steps[: played.found.step + 1])
            self.kinds[signature] = Kind(signature, shown)
            self._say(f"{signature} ({program.name})")
        self.kinds[signature].count += 1
        self.kinds[signature].versions.add(program.steps[played.found.step]["version"])

    def _tell(self) -> None:
        self._say(
            f"{sum(self._played.values())} programs, {sum(self._requests.values())} requests, "
            f"{sum(self._fields.values())} fields, {len(self.kinds)} kinds, "
            f"{time.monotonic() - self._began:.0f} s"
        )

    async def _minimise(self, arena: Arena) -> None:
        async def one(kind: Kind) -> None:
            played = await arena.play(kind.program)
            if _shows(kind, played) and played.found is not None:
                kind.program, _ = await minimise(arena, kind.program, played.found)

        await self._of_each_kind(one)

    async def _confirm(self, found: Pair) -> None:
        """Kinds that come back on clusters that have seen nothing else stay."""

        async def one(kind: Kind) -> None:
            kind.confirmed = _shows(kind, await found.arena.play(kind.program))
            if not kind.confirmed:
                self.vanished[kind.signature] = self.kinds.pop(kind.signature)

        await self._of_each_kind(one)

    async def _of_each_kind(self, act: Callable[[Kind], Awaitable[None]]) -> None:
        gate = asyncio.Semaphore(self._limits.at_once)

        async def one(kind: Kind) -> None:
            async with gate:
                await act(kind)

        for together in in_rounds(list(self.kinds.values()), lambda kind: kind.program):
            await asyncio.gather(*map(one, together))

    # ---- what is printed -------------------------------------------------------------------------

    def report(self) -> None:
        say = self._say
        say("")
        for kind in sorted(self.kinds.values(), key=lambda each: each.signature):
            versions = ", ".join(map(str, sorted(kind.versions)))
            say(f"{kind.signature} (versions {versions}; {kind.count} times)")
            for step in kind.program.steps:
                if "pause" in step:
                    say(f"    {step['pause']} s pass")
                    continue
                mark = "setup " if step.get("setup") else ""
                name = dialect("kafka").api(step["api"]).name
                say(f"    {mark}{name} v{step['version']} {str(step['body'])[:400]}")
        for kind in self.vanished.values():
            say(f"not on fresh clusters: {kind.signature}")
        for signature in self.gone:
            say(f"listed, and not found: {signature}")
        say("")
        say("| family | programs | requests | fields | kinds |")
        say("|---|---|---|---|---|")
        result = self.result()
        for family, counts in [*result.families.items(), ("all", result.total)]:
            say(f"| {' | '.join([family, *map(str, counts)])} |")
        say(f"{len(self.unlisted)} kinds are not listed; {time.monotonic() - self._began:.0f} s")

    def result(self) -> Result:
        """What the report's table says."""
        kinds = Counter(family_of(each.program) for each in self.kinds.values())
        return Result(
            self._release,
            self._seed,
            {
                family: Counts(
                    self._played[family],
                    self._requests[family],
                    self._fields[family],
                    kinds[family],
                )
                for family in sorted(self._played)
            },
        )

    def write(self, path: Path) -> None:
        save(path, list(self.kinds.values()))


def _shows(kind: Kind, played: Played) -> bool:
    found = played.found
    return found is not None and signature_of(kind.program, found) == kind.signature
