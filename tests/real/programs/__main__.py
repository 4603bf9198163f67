"""Play random programs on real Kafka and on the mock: ``make fidelity-programs``.

Programs are of administrative steps, or with ``--data`` of the data plane (``tests.real.walks``).
Exit status 1 when anything differed.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.real.compare import Difference
from tests.real.data.clusters import DataKafka
from tests.real.kafka import KafkaFailed, RealKafka
from tests.real.programs.batch import Arena, Played
from tests.real.programs.generator import programs
from tests.real.programs.minimiser import Playing, minimise
from tests.real.programs.model import RELEASES, Program, ProgramStep, Setting
from tests.real.quorum_kafka import QuorumKafka
from tests.real.targets import RealTarget
from tests.real.walks.arena import WalkArena
from tests.real.walks.generator import walks

FAILURES_AT_MOST = 5
"""Clusters of a release that may fail: a machine that is busy makes Kafka give up now and then."""

DATA_RELEASES: Final[Mapping[str, Setting]] = {name: RELEASES[name] for name in ("3.9", "4.4")}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fidelity-programs", description=__doc__)
    parser.add_argument("--release", action="append", choices=[*RELEASES], help="repeatable; all")
    parser.add_argument(
        "--data", action="store_true", help=f"the data plane, on {' and '.join(DATA_RELEASES)}"
    )
    parser.add_argument("--steps", type=int, default=5000, help="at least, a release")
    parser.add_argument("--seed", help="any text; one is drawn, and printed, without")
    parser.add_argument("--first", type=int, default=0, help="the batch to begin with")
    parser.add_argument("--at-once", type=int, default=24, help="programs in a batch")
    parser.add_argument("--events", type=int, default=6, help="steps of the cluster in a batch")
    parser.add_argument("--length", type=int, default=24, help="other steps of a program, about")
    parser.add_argument("--play", type=Path, help="play the program in this file, and no other")
    parser.add_argument(
        "--whole", action="store_true", help="print the program of a difference as it was drawn"
    )
    parser.add_argument("--slow", type=float, help="name steps that take so many seconds")
    options = parser.parse_args()
    options.seed = options.seed or str(random.SystemRandom().randrange(2**32))
    print(f"seed {options.seed}", flush=True)
    if options.data:
        logging.getLogger("mockbroker").setLevel(logging.ERROR)
    releases = options.release or (DATA_RELEASES if options.data else RELEASES)
    kind = _DataRun if options.data else _Run
    runs = [kind(name, options) for name in releases]
    for run in runs:
        asyncio.run(run.play())
    print(*(run.summary() for run in runs), sep="\n")
    return int(any(run.total.differences for run in runs))


class _Run:
    """The programs of one release."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self.total = Played()
        self._name = name
        self._setting = RELEASES[name]
        self._options = options
        self._began = time.monotonic()
        self._batch = options.first
        self._failures = 0
        self._kinds: Counter[str] = Counter()

    def summary(self) -> str:
        return (
            f"{self._name} (Kafka {self._setting.release}): {self.total}, "
            f"{self._failures} clusters failed, {time.monotonic() - self._began:.0f} s"
        )

    async def play(self) -> None:
        """Clusters one after the other, as long as they fail."""
        while not self._done():
            try:
                with tempfile.TemporaryDirectory() as folder:
                    async with self._arena(Path(folder)) as arena:
                        await self._play_on(arena)
            except (KafkaFailed, OSError) as error:
                self._failures += 1
                self._batch += 1
                print(f"{self._name}: a cluster failed: {error}", flush=True)
                if self._failures > FAILURES_AT_MOST:
                    raise

    @asynccontextmanager
    async def _arena(self, folder: Path) -> AsyncIterator[Playing]:
        with _cluster(self._setting, folder) as kafka:
            async with RealTarget(kafka) as real:
                arena = Arena(kafka, self._setting, real, self._on_step)
                await arena.ready()
                yield arena

    def _done(self) -> bool:
        if self._options.play:
            return bool(self.total.programs)
        return self.total.steps >= int(self._options.steps)

    async def _play_on(self, arena: Playing) -> None:
        while not self._done():
            played = await arena.play(self._programs())
            self.total.add(played)
            print(f"batch {self._batch}: {self.summary()}", flush=True)
            for program, difference in played.differences:
                await self._show(arena, program, difference)
            self._batch += 1

    async def _show(self, arena: Playing, program: Program, difference: Difference) -> None:
        """Of differences of a kind the first is minimised, unless programs are wanted whole."""
        print(difference, flush=True)
        if self._options.whole:
            shown = Program(program.name, program.steps[: difference.step])
            print(shown.to_json(), flush=True)
            return
        kind = re.sub(r"\[.*?\]|p\d+x\d+-v\w|\d+", "", difference.fields[0].partition(": ")[0])
        self._kinds[kind] += 1
        if self._kinds[kind] > 1:
            return
        found = await minimise(arena, program)
        verdict = found.difference or "it did not happen again"
        print(f"After {found.replays} replays: {verdict}", found.program.to_json(), sep="\n")

    def _programs(self) -> list[Program]:
        if self._options.play:
            return [Program.from_json(self._options.play.read_text("utf-8"))]
        return self._drawn()

    def _drawn(self) -> list[Program]:
        return programs(
            self._options.seed, self._batch, self._options.at_once, self._setting,
            events=self._options.events, steps=self._options.length,
        )  # fmt: skip

    def _on_step(self, program: str, step: ProgramStep, seconds: float) -> None:
        if self._options.slow is not None and seconds >= self._options.slow:
            since = time.monotonic() - self._began
            print(f"{since:.1f} s: {program} {seconds:.1f} s {dict(step)}", flush=True)


class _DataRun(_Run):
    """The programs of the data plane."""

    @asynccontextmanager
    async def _arena(self, folder: Path) -> AsyncIterator[Playing]:
        with DataKafka(self._setting.release, folder, walks=True) as kafka:
            yield WalkArena(kafka, self._on_step)

    def _drawn(self) -> list[Program]:
        return walks(self._options.seed, self._batch, self._options.at_once, self._options.length)


def _cluster(setting: Setting, folder: Path) -> RealKafka:
    if setting.zookeeper:
        return RealKafka(setting.release, folder, zookeeper=True)
    return QuorumKafka(setting.release, folder)


if __name__ == "__main__":
    sys.exit(main())
