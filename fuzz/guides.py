"""The guides that this machine has, and workers started under them, with libFuzzer's statistics."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from fuzz.inputs import CACHE, CORPUS, CRASHES, ROOT, committed, found_folder, seeds_folder
from fuzz.targets import TARGETS, Target, load

__all__ = [
    "Absent",
    "Broken",
    "RunStatistics",
    "absent",
    "fuzz",
    "fuzz_afresh",
    "last_runs",
    "merge",
    "require",
]

SECONDS_AN_INPUT: Final = 20
"""An input that takes longer is a finding."""
SECONDS_HUNG: Final = 300
"""So is one that takes longer in a run of some executions, which is to pass on a busy machine."""
MOST_MEGABYTES: Final = 1024
_RESULTS: Final = CACHE / "results"
_SUMMARY: Final = re.compile(
    r"^#\d+\s+(?:DONE|INITED|NEW|REDUCE|pulse)\s+cov: (\d+) ft: (\d+) corp: (\d+)"
)
_STAT: Final = re.compile(r"^stat::(\w+):\s+(\d+)")
_KEPT: Final = re.compile(r"Test unit written to (\S+)")


class Absent(Exception):
    """This machine lacks a guide; the text says why, and how to install it."""


class Broken(Exception):
    """The worker failed for another reason than an input; has its last output."""


class RunStatistics(NamedTuple):
    """One run. ``edges`` and ``features`` are libFuzzer's ``cov`` and ``ft`` of all instrumented
    code, or 0 without instrumentation. ``kept`` is the input that ended the run."""

    target: str
    guide: str
    seconds: int
    seed: int
    executions: int
    edges: int
    features: int
    corpus: int
    peak_megabytes: int
    kept: str = ""


def absent(guide: str, target: Target) -> str:
    """Return why a target's guide is absent; empty if it is available."""
    for module in target.modules:
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            return f"{module} is not installed: pip install -e .[dev,control]"
    if guide == "python" and importlib.util.find_spec("atheris") is None:
        return (
            "atheris is not installed: pip install -e .[fuzz], on x86-64 Linux and CPython 3.11 to "
            "3.13; `--guide none` does without"
        )
    if guide == "c":
        from fuzz.native.build import MissingTool, build

        try:
            build()
        except MissingTool as error:
            return str(error)
    return ""


def require(guide: str, target: Target) -> None:
    """Return the guide's command. Raises Absent."""
    reason = absent(guide, target)
    if reason:
        raise Absent(f"{target.name} ({guide}): {reason}")


def fuzz(target: Target, guide: str, *, seconds: int, seed: int, show: bool) -> RunStatistics:
    """Fuzz for a time, starting from the committed corpus, which includes the seeds, and inputs
    kept by earlier runs."""
    folders = [found_folder(target.name), _begin(target)]
    limits = [f"-max_total_time={seconds}", f"-timeout={SECONDS_AN_INPUT}"]
    ran = _fuzz(target, guide, limits, folders, seed=seed, show=show)._replace(seconds=seconds)
    _remember(ran)
    return ran


def fuzz_afresh(target: Target, guide: str, *, executions: int, seed: int) -> RunStatistics:
    """Fuzz for a number of executions, from the committed corpus only, independent of earlier runs
    and of the machine's speed: an input may take minutes beside other processes. A seed gives
    mostly the same executions; libFuzzer guarantees no more."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as kept:
        folders = [Path(kept), _begin(target)]
        patience = f"={SECONDS_HUNG}"
        limits = [f"-runs={executions}", f"-timeout{patience}", f"-report_slow_units{patience}"]
        ran = _fuzz(target, guide, limits, folders, seed=seed, show=False)
    return ran._replace(seconds=round(time.monotonic() - began))


def _fuzz(
    target: Target, guide: str, limits: list[str], folders: list[Path], *, seed: int, show: bool
) -> RunStatistics:
    CRASHES.mkdir(parents=True, exist_ok=True)
    options = [
        *limits,
        f"-seed={seed}",
        f"-max_len={target.max_length}",
        f"-rss_limit_mb={2 * MOST_MEGABYTES}",
        f"-artifact_prefix={CRASHES}/{target.name}-",
        "-print_final_stats=1",
        "-reload=0",
    ]
    if guide == "c":
        options.append(f"-malloc_limit_mb={MOST_MEGABYTES // 4}")
    arguments = [*options, *map(str, filter(Path.is_dir, folders))]
    code, lines = _work(guide, target, arguments, show=show)
    ran = _ran(RunStatistics(target.name, guide, 0, seed, 0, 0, 0, 0, 0), lines)
    if not ran.kept and (code or not ran.executions):
        raise Broken("\n".join([f"{target.name} ({guide}): exit {code}", *lines[-30:]]))
    return ran


def _begin(target: Target) -> Path:
    return CORPUS / target.name if committed(target.name) else _seeds(target)


def _remember(ran: RunStatistics) -> None:
    """Record a run, unless it is shorter than the recorded one."""
    _RESULTS.mkdir(parents=True, exist_ok=True)
    file = _RESULTS / f"{ran.target}-{ran.guide}.json"
    if not file.exists() or RunStatistics(**json.loads(file.read_text())).seconds <= ran.seconds:
        file.write_text(json.dumps(ran._asdict()) + "\n")


def merge(target: Target, guide: str, into: Path) -> None:
    """Write the smallest set of inputs with the same coverage into an empty folder."""
    folders = [found_folder(target.name), CORPUS / target.name, _seeds(target)]
    options = ["-set_cover_merge=1", f"-max_len={target.max_length}", "-rss_limit_mb=0"]
    arguments = [*options, str(into), *map(str, filter(Path.is_dir, folders))]
    code, lines = _work(guide, target, arguments)
    if code:
        raise Broken("\n".join([f"{target.name} ({guide}): exit {code}", *lines[-30:]]))


def last_runs() -> list[RunStatistics]:
    """Return the newest of the longest runs of each target and guide."""
    files = sorted(_RESULTS.glob("*.json")) if _RESULTS.is_dir() else []
    found = [RunStatistics(**json.loads(path.read_text())) for path in files]
    order = list(TARGETS)
    return sorted(found, key=lambda ran: (order.index(ran.target), ran.guide))


def _seeds(target: Target) -> Path:
    return seeds_folder(target.name, load(target).seeds())


def _work(
    guide: str, target: Target, arguments: list[str], *, show: bool = False
) -> tuple[int, list[str]]:
    """Return the worker's exit code and all its output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
    if guide == "c":
        from fuzz.native.build import environment as sanitizers

        environment |= sanitizers()
    itself = _itself(guide, target, environment.pop("LD_PRELOAD", ""))
    lines = []
    # Run through its interpreter: while the script is being written, a process that another thread
    # forks holds it open for writing, and executing it would fail.
    with subprocess.Popen(
        ["/bin/sh", str(itself), *arguments],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace",
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            if show:
                print(line, end="", flush=True)
    return process.returncode, lines


def _itself(guide: str, target: Target, preloaded: str) -> Path:
    """Write a program that starts the worker. The worker removes the sanitizers from its
    environment for the programs it starts; this program restores them."""
    CACHE.mkdir(parents=True, exist_ok=True)
    program = CACHE / f"{target.name}-{guide}.sh"
    preload = f"LD_PRELOAD={shlex.quote(preloaded)}; export LD_PRELOAD\n" if preloaded else ""
    command = shlex.join([sys.executable, "-m", "fuzz.worker", guide, target.name])
    program.write_text(f'#!/bin/sh\n{preload}exec {command} "$0" "$@"\n')
    program.chmod(0o755)
    return program


def _ran(ran: RunStatistics, lines: Iterable[str]) -> RunStatistics:
    for line in lines:
        if summary := _SUMMARY.match(line):
            edges, features, corpus = map(int, summary.groups())
            ran = ran._replace(edges=edges, features=features, corpus=corpus)
        elif stat := _STAT.match(line):
            name, number = stat[1], int(stat[2])
            if name == "number_of_executed_units":
                ran = ran._replace(executions=number)
            elif name == "peak_rss_mb":
                ran = ran._replace(peak_megabytes=number)
        elif kept := _KEPT.search(line):
            ran = ran._replace(kept=kept[1])
    return ran
