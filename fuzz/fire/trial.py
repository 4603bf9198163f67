"""One trial: a server, senders, probes and actors together, and the state of the server afterwards.

Each failure is a line of ``Outcome.violations``; the figures are for the reader.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from fuzz.fire.actors import Actors
from fuzz.fire.ammunition import Magazine, load
from fuzz.fire.probes import PROBED, Probes
from fuzz.fire.senders import Job
from fuzz.fire.target import ROOT, Target, serving
from mockbroker.profiles import DEFAULT_PROFILE

__all__ = ["Outcome", "Settings", "under_fire"]

_MEBIBYTE: Final = 1024 * 1024
_QUIET_SECONDS: Final = 3.0
_QUIET_SHARE: Final = 0.05
"""Limit for an idle server, as a share of one processor."""
_LINE: Final = 16 * _MEBIBYTE
_SAMPLES: Final = 0.5


@dataclass(frozen=True)
class Settings:
    """Send ``frames`` malformed frames on ``connections`` sockets at a time from ``senders``
    processes.

    ``messages`` limits the number of requests whose vectors are used; None means all.
    ``most_memory`` (resident bytes) limits the server, ``most_growth`` its growth after a quarter
    of the frames, when its journal has long been full.
    """

    frames: int = 1_000_000
    connections: int = 300
    seed: int = 1
    profile: str = DEFAULT_PROFILE
    tls: bool = False
    sasl: bool = False
    senders: int = 2
    messages: int | None = None
    most_memory: int = 512 * _MEBIBYTE
    most_growth: int = 96 * _MEBIBYTE
    options: tuple[str, ...] = ()


@dataclass
class Outcome:
    malformed: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)
    did: Counter[str] = field(default_factory=Counter)
    sent: dict[str, int] = field(default_factory=dict)
    correct: dict[str, int] = field(default_factory=dict)
    memory_before: int = 0
    memory_at_a_quarter: int = 0
    memory_after: int = 0
    memory_peak: int = 0
    files_before: int = 0
    files_peak: int = 0
    files_after: int = 0
    quiet_share: float = 0.0
    violations: list[str] = field(default_factory=list)


async def under_fire(
    settings: Settings, on_progress: Callable[[Outcome], object] = lambda _outcome: None
) -> Outcome:
    """Run a trial. ``on_progress`` is called now and then. Raises RuntimeError if the server does
    not start."""
    magazine = load(
        settings.profile,
        settings.seed,
        sasl=settings.sasl,
        tls=settings.tls,
        messages=settings.messages,
    )
    options = ["--profile", settings.profile, "--brokers", "3", "--topic", f"{PROBED}:3:3"]
    async with serving(*options, *settings.options, tls=settings.tls, sasl=settings.sasl) as target:
        return await _Trial(settings, magazine, target, on_progress).run()


class _Trial:
    def __init__(
        self,
        settings: Settings,
        magazine: Magazine,
        target: Target,
        on_progress: Callable[[Outcome], object],
    ) -> None:
        self._settings = settings
        self._magazine = magazine
        self._target = target
        self._on_progress = on_progress
        self._seen: dict[int, dict[str, Any]] = {}
        self.outcome = Outcome()

    async def run(self) -> Outcome:
        settings, target, outcome = self._settings, self._target, self.outcome
        probes = Probes(target, settings.seed, tls=settings.tls, sasl=settings.sasl)
        actors = Actors(target, settings.seed, tls=settings.tls, sasl=settings.sasl)
        await probes.begin()
        outcome.files_before = await self._settled()
        outcome.memory_before = target.memory()
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            bystanders = [group.create_task(each.run(stop)) for each in (probes, actors)]
            watch = group.create_task(self._watch(stop))
            await asyncio.gather(*(self._sender(place) for place in range(settings.senders)))
            stop.set()
            await asyncio.gather(watch, *bystanders)
        outcome.sent, outcome.correct = probes.sent, probes.correct
        outcome.did = actors.did
        outcome.violations += [*probes.problems, *actors.problems]
        await self._aftermath()
        return outcome

    async def _settled(self) -> int:
        """The number of open files once earlier connections are closed."""
        count = self._target.files()
        for _ in range(20):
            await asyncio.sleep(0.05)
            count = min(count, self._target.files())
        return count

    async def _sender(self, place: int) -> None:
        """The share of one process."""
        settings = self._settings
        share = _share(settings.frames, settings.senders, place)
        at_once = max(1, _share(settings.connections, settings.senders, place))
        job = Job(
            self._target.addresses, self._magazine, settings.seed * 1000 + place, share, at_once
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fuzz.fire.senders",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=ROOT, limit=_LINE,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(pickle.dumps(job))
            process.stdin.close()
            async for line in process.stdout:
                self._seen[place] = json.loads(line)
                self._add_up()
            if await process.wait():
                self.outcome.violations.append(f"sender {place} failed with {process.returncode}")
        finally:
            if process.returncode is None:
                process.kill()

    def _add_up(self) -> None:
        outcome = self.outcome
        outcome.malformed = sum((Counter(e["malformed"]) for e in self._seen.values()), Counter())
        outcome.other = sum((Counter(e["other"]) for e in self._seen.values()), Counter())
        if not outcome.memory_at_a_quarter and (
            outcome.malformed.total() >= self._settings.frames / 4
        ):
            outcome.memory_at_a_quarter = self._target.memory()

    async def _watch(self, stop: asyncio.Event) -> None:
        while not stop.is_set() and self._target.alive:
            self.outcome.files_peak = max(self.outcome.files_peak, self._target.files())
            self._on_progress(self.outcome)
            await asyncio.sleep(_SAMPLES)

    async def _aftermath(self) -> None:
        """Check what is left after all clients have gone."""
        settings, target, outcome = self._settings, self._target, self.outcome
        outcome.violations += [each for seen in self._seen.values() for each in seen["problems"]]
        if outcome.malformed.total() < settings.frames and not outcome.violations:
            outcome.violations.append(f"only {outcome.malformed.total()} frames were rejected")
        for way, sent in outcome.sent.items():
            if not sent == outcome.correct[way] > 0:
                outcome.violations.append(f"{way}: {sent} sent, {outcome.correct[way]} correct")
        if not target.alive:
            outcome.violations.append(f"the server ended: {target.complaints()[-2000:]}")
            return
        if target.complaints():
            outcome.violations.append(f"the server wrote to stderr: {target.complaints()[-2000:]}")
        outcome.files_after = await target.files_come_down_to(outcome.files_before)
        if outcome.files_after > outcome.files_before:
            outcome.violations.append(
                f"{outcome.files_after} files are open, {outcome.files_before} before the trial"
            )
        before = target.cpu_seconds()
        await asyncio.sleep(_QUIET_SECONDS)
        outcome.quiet_share = (target.cpu_seconds() - before) / _QUIET_SECONDS
        if outcome.quiet_share > _QUIET_SHARE:
            outcome.violations.append(
                f"the idle server uses {outcome.quiet_share:.0%} of a processor"
            )
        outcome.memory_after, outcome.memory_peak = target.memory(), target.memory("VmHWM")
        if outcome.memory_peak > settings.most_memory:
            outcome.violations.append(
                f"the server used {outcome.memory_peak} bytes, the limit is {settings.most_memory}"
            )
        growth = outcome.memory_after - outcome.memory_at_a_quarter
        if growth > settings.most_growth:
            outcome.violations.append(
                f"{growth} bytes more than after a quarter, the limit is {settings.most_growth}"
            )


def _share(whole: int, parts: int, place: int) -> int:
    return whole // parts + (place < whole % parts)
