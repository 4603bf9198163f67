"""Suites of Go modules: test programs are built once, kept in the cache, and run per suite.

The proxy's zip of a module holds its tests. ``go test -c`` builds them; ``go tool test2json`` turns
the output into events. A test is a top-level function; subtests are tests of their own where the
suite says so.
"""

import inspect
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, ClassVar, Final

from kproto.builds import built, run
from kspec.runner import toolchains
from tests.suites.model import Run, Status, Suite
from tests.suites.processes import lines_of

__all__ = ["GoSuite", "ended_tests"]

STOP_SECONDS: Final = 5.0
_TIMED_OUT: Final = "panic: test timed out after"
_STATUSES: Final = {"pass": Status.PASSED, "fail": Status.FAILED, "skip": Status.SKIPPED}


class GoSuite(Suite):
    """The tests of some packages of one module."""

    module: ClassVar[str]
    version: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = (".",)
    """Folders of the module. Test names are unique among them."""
    build_flags: ClassVar[tuple[str, ...]] = ()
    program_seconds: ClassVar[float] = 300.0
    """How long one run of a test program may take. A test that hangs costs as much."""
    split: ClassVar[tuple[str, ...]] = ()
    """Tests whose subtests are tests of their own in the lists."""
    alone: ClassVar[tuple[str, ...]] = ()
    """Tests that run in a program of their own."""
    toolchains = ("go",)

    def environment(self, run: Run) -> dict[str, str]:
        """The variables by which the suite finds its cluster."""
        raise NotImplementedError

    def change(self, sources: Path) -> None:
        """Change the module's sources before they are built."""

    def install(self) -> Path:
        self.check_toolchains()
        made_of = [
            f"{self.module}@{self.version}", *self.packages, *self.build_flags,
            toolchains.find("go") or "", inspect.getsource(type(self).change),
        ]  # fmt: skip
        return built(f"suites/{self.name}", made_of, self._build)

    def _build(self, folder: Path) -> None:
        sources = folder / "sources"
        shutil.copytree(_downloaded(self.module, self.version), sources)
        for path in [sources, *sources.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)  # modules are read-only in Go's cache
        self.change(sources)
        for package in self.packages:
            program = sources / package / "suite.test"
            command = ["go", "test", "-c", "-trimpath", *self.build_flags, "-o", str(program), "."]
            run(command, cwd=sources / package)

    def tests(self, program: Path) -> list[str]:
        """The top-level tests of a test program."""
        command = [program, "-test.list=^Test"]
        done = subprocess.run(
            command, cwd=program.parent, capture_output=True, text=True, check=True
        )
        return [line for line in done.stdout.splitlines() if line.startswith("Test")]

    def run(self, run: Run) -> None:
        deadline = time.monotonic() + run.seconds
        with open(run.output / "output.log", "wb") as log:
            for package in self.packages:
                self._run_package(run, run.folder / "sources" / package, log, deadline)

    def _run_package(self, run: Run, folder: Path, log: IO[bytes], deadline: float) -> None:
        """Run the tests. A program may end before all its tests have: when one panics, and when
        its time is up. The others run in another program."""
        tests = {*self.tests(folder / "suite.test")}
        if run.chosen is None:
            waiting = tests - {*run.left_out}
        else:
            waiting = {name for name in run.chosen if _top(name) in tests}
        for alone in self.alone:
            mine = {name for name in waiting if _top(name) == alone}
            waiting -= mine
            self._run_programs(run, folder, mine, log, deadline)
        self._run_programs(run, folder, waiting, log, deadline)

    def _run_programs(
        self, run: Run, folder: Path, waiting: set[str], log: IO[bytes], deadline: float
    ) -> None:
        while waiting and (seconds := deadline - time.monotonic()) > 1:
            seconds = min(seconds, self.program_seconds)
            command = [
                "go", "tool", "test2json", "-t", str(folder / "suite.test"), "-test.v=test2json",
                f"-test.run={_exactly(waiting)}", f"-test.timeout={int(seconds)}s",
            ]  # fmt: skip
            if subtests := [name for name in run.left_out if "/" in name]:
                command.append(f"-test.skip={_exactly(subtests)}")
            lines = lines_of(
                command,
                cwd=folder,
                environment=self.environment(run),
                seconds=seconds + STOP_SECONDS,
                log=log,
            )
            ended = set()
            for name, status, output in ended_tests(lines, self.split):
                ended.add(_top(name))
                if run.chosen is None or {name, _top(name)} & {*run.chosen}:
                    run.report(name, status, output)
            if not ended:
                return
            waiting = {name for name in waiting if _top(name) not in ended}


def ended_tests(
    lines: Iterable[str], split: Collection[str] = ()
) -> Iterator[tuple[str, Status, str]]:
    """The tests of ``test2json``'s events, each with its output, as they end.

    Those that run when the program's time is up have failed. Any other test without an end is left
    out: another one's panic has stopped it. Subtests are part of their test, except those of the
    tests in ``split``: a test of these passes if nothing but its subtests fails.
    """
    outputs: dict[str, list[str]] = {}
    running: set[str] = set()
    of_subtests: set[str] = set()
    timed_out = False
    for line in lines:
        try:
            event: dict[str, Any] = json.loads(line)
        except ValueError:
            continue  # of test2json itself
        action, name, output = event["Action"], event.get("Test", ""), event.get("Output", "")
        timed_out = timed_out or output.startswith(_TIMED_OUT)
        test = name if _top(name) in split else _top(name)
        if not test:
            continue
        outputs.setdefault(test, []).append(output)
        if name != test:
            continue
        if action in ("run", "cont"):
            running.add(test)
        elif action == "pause":
            running.discard(test)
        elif action in _STATUSES and test in running and not timed_out:
            running.discard(test)
            status = _STATUSES[action]
            if status is Status.FAILED and test in of_subtests:
                status = Status.PASSED
            elif status is Status.FAILED:
                of_subtests.add(_top(test))
            yield test, status, "".join(outputs.pop(test))
    if timed_out:
        for test in sorted(running - {_top(test) for test in running if "/" in test}):
            yield test, Status.FAILED, "".join([*outputs[test], "ran when the time was up\n"])


def _top(name: str) -> str:
    """The top-level test of this test."""
    return name.partition("/")[0]


def _exactly(names: Collection[str]) -> str:
    """The option for these tests: a regular expression for each level of a name."""
    return "|".join(
        "/".join(f"^{re.escape(level)}$" for level in name.split("/")) for name in sorted(names)
    )


def _downloaded(module: str, version: str) -> str:
    """The folder of a module in Go's cache, downloaded if it is not there."""
    command = ["go", "mod", "download", "-json", f"{module}@{version}"]
    run(command, cwd=Path.home())
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    return str(json.loads(done.stdout)["Dir"])
