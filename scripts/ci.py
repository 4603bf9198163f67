"""Run the checks of ``.ci/run`` side by side: two lanes, each of which runs its steps in order.

A step's output is printed whole when it ends or is stopped. The first step that fails ends the run
with its exit code; whatever runs beside it is stopped, and everything is after ``SECONDS``. The
last lines are the steps' durations, each with the last line the step printed. ``.ci/run`` installs
the toolchains and builds everything first, so that no step installs anything.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Final

__all__ = ["LANES", "Failed", "Run", "Step", "main"]

SECONDS: Final = 78 * 60.0
"""How long all steps may take: less than a hosted job, whose end would hide what they printed."""

STOPPING_SECONDS: Final = 10.0
"""How long a stopped step may take to end before it is killed."""


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    command: Sequence[str]
    niceness: int = 0


class Failed(Exception):
    """A step failed; ``code`` is its exit code."""

    def __init__(self, step: Step, code: int) -> None:
        super().__init__(f"{step.name} failed with exit code {code}")
        self.code = code


def make(name: str, target: str, *arguments: str, niceness: int = 0) -> Step:
    return Step(name, ("make", "--no-print-directory", target, *arguments), niceness)


LANES: Final = (
    # Four processes on two cores: many tests wait. The other lane's step, which is mostly one
    # process, goes first: it would end last, with the second core idle. Not by more than this:
    # Spark gives its Python processes ten seconds to start.
    (
        make(
            "tests",
            "test",
            "PYTEST_ARGS=-n4 --maxfail=20 --durations=40 --seconds-by-folder --requirements=check",
            niceness=2,
        ),
    ),
    (
        make("lint, types, import contracts", "lint"),
        make("documentation site", "docs"),
        make("generated code is fresh", "codegen-check"),
        # One set of parameters a test, by the seed, and few examples: under sanitizers each takes
        # five times as long.
        make("C engine under sanitizers", "sanitize", "KPROTO_QUICK=2", "KPROTO_HYPOTHESIS=fast"),
        make("pure engine and Kafka's Java classes", "test-pure-oracle"),
        make("install without a compiler", "test-without-compiler"),
        make("release check and a new user's walk", "release-check"),
        # Bounded: with more rows than time, KPROTO_SEED draws the rows. `make mutate` tries all.
        make("mutation of the rules' rows", "mutate", "MUTATE_ARGS=--within 60"),
        # The seed is the same each time, so these look for regressions; `make fuzz` searches.
        make("fuzz targets", "fuzz-smoke", "FUZZ_ARGS=--executions 150"),
    ),
)


@dataclass(slots=True)
class Run:
    """One run of all lanes."""

    lanes: Sequence[Sequence[Step]]
    timings: list[str] = field(default_factory=list)

    async def play(self) -> None:
        """Raise Failed with the first step that fails, after its output was printed."""
        try:
            async with asyncio.TaskGroup() as group:
                for lane in self.lanes:
                    group.create_task(self._lane(lane))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            _print("", *self.timings)

    async def _lane(self, steps: Sequence[Step]) -> None:
        for step in steps:
            await self._step(step)

    async def _step(self, step: Step) -> None:
        _print(f"... {step.name}")
        began = time.monotonic()
        with tempfile.TemporaryFile() as output:
            verdict = "STOPPED"
            try:
                code = await _exit_code(step, output)
                verdict = f"FAILED with exit code {code}" if code else ""
            finally:
                seconds = time.monotonic() - began
                output.seek(0)
                text = output.read().decode(errors="replace").rstrip()
                _print("", f"==> {step.name} ({seconds:.0f} s)", text)
                verdict = verdict or text.rpartition("\n")[2]
                self.timings.append(f"{seconds:5.0f} s  {step.name}: {verdict}")
        if code:
            raise Failed(step, code)


async def _exit_code(step: Step, output: BinaryIO) -> int:
    """Run the step in a process group of its own, which is stopped where this task is cancelled."""
    process = await asyncio.create_subprocess_exec(
        *("nice", "-n", str(step.niceness)) if step.niceness else (),
        *step.command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), STOPPING_SECONDS)
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        raise


def _print(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)


async def _main() -> int:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    run = Run(LANES)
    try:
        async with asyncio.timeout(SECONDS):
            await run.play()
    except TimeoutError:
        _print(f"ci: stopped after {SECONDS:.0f} s")
        return 1
    except Failed as failure:
        _print(f"ci: {failure}")
        return failure.code
    except asyncio.CancelledError:
        _print("ci: stopped")
        return 1
    return 0


def main() -> None:
    sys.exit(asyncio.run(_main()))


if __name__ == "__main__":
    main()
