"""The command line: ``python -m fuzz list | run | replay | minimise | cover | all | table``.

Targets without a guide on this machine are reported and left out; with ``KPROTO_REQUIRE=all`` they
are a failure. The exit status is 1 if an input breaks an invariant; it is kept in
``.cache/fuzz/crashes``.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import click

from fuzz import guides
from fuzz.guides import Absent, RunStatistics
from fuzz.inputs import CORPUS, committed
from fuzz.targets import TARGETS, Target, load
from kproto.cli.terminal import echo, echo_text

__all__ = ["main"]

_names = click.Choice(list(TARGETS))
_guide = click.option(
    "--guide",
    type=click.Choice(["python", "c", "none"]),
    help="Guide to use; the default is the target's first.",
)
_seed = click.option("--seed", type=int, help="Seed; by default it is drawn and printed.")
MOST_COMMITTED: Final = 24 * 1024
"""Size limit of a target's committed corpus in bytes, so that all are replayed in seconds."""


@click.group()
def main() -> None:
    """Fuzz kproto's own code, guided by coverage (docs/explanation/fuzzing.md)."""


@main.command("list")
def list_() -> None:
    """List the targets, what each checks, and the guides it has here."""
    for target in TARGETS.values():
        states = []
        for guide in target.guides:
            reason = guides.absent(guide, target)
            states.append(f"{guide}: {reason}" if reason else guide)
        echo(f"{target.name:10}{', '.join(states)}")
        echo(f"{'':10}{_title(target)}")


def _title(target: Target) -> str:
    try:
        return (load(target).__doc__ or "").strip().split("\n")[0]
    except ImportError as error:
        return str(error)


def _chosen(name: str, guide: str | None) -> tuple[Target, str]:
    """Return a target and the named or first guide. Raises ClickException if it is absent."""
    target = TARGETS[name]
    guide = guide or target.guides[0]
    try:
        guides.require(guide, target)
    except Absent as error:
        raise click.ClickException(str(error)) from None
    return target, guide


@main.command()
@click.argument("name", metavar="TARGET", type=_names)
@click.option("--seconds", default=60, show_default=True)
@_seed
@_guide
def run(name: str, seconds: int, seed: int | None, guide: str | None) -> None:
    """Fuzz one target."""
    target, guide = _chosen(name, guide)
    ran = guides.fuzz(target, guide, seconds=seconds, seed=_drawn(seed), show=True)
    echo(_line(ran))
    sys.exit(1 if ran.kept else 0)


@main.command()
@click.argument("name", metavar="TARGET", type=_names)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def replay(name: str, files: tuple[Path, ...]) -> None:
    """Check single inputs without a guide. Prints the traceback of a broken invariant."""
    check = load(TARGETS[name]).check
    for file in files:
        check(file.read_bytes())
        echo(f"{file}: holds")


@main.command()
@click.argument("name", metavar="TARGET", type=_names)
@_guide
def minimise(name: str, guide: str | None) -> None:
    """Minimise a target's committed corpus: the fewest inputs with the coverage of all known
    ones."""
    from fuzz.minimal import minimise_corpus

    target, guide = _chosen(name, guide)
    reaching, kept = minimise_corpus(target, guide, MOST_COMMITTED)
    echo(f"{name}: {reaching} inputs have the coverage of all known ones; committed {kept}")


@main.command()
@click.argument("name", metavar="TARGET", type=_names)
@click.option("--missing", is_flag=True, help="Print the lines that no input reaches.")
def cover(name: str, missing: bool) -> None:
    """Report lines and branches of the code under test that the known inputs reach."""
    from fuzz.cover import report

    for ran in guides.last_runs():
        if ran.target == name:
            echo(_line(ran))
    report(TARGETS[name], missing=missing)


@main.command("all")
@click.option("--seconds", default=60, show_default=True, help="Time for each target and guide.")
@click.option(
    "--executions",
    type=click.IntRange(min=1),
    help="Number of executions for each, instead of --seconds, from the committed inputs only.",
)
@_seed
@click.option("--only", multiple=True, type=_names)
@click.option("--cover", "covers", is_flag=True, help="Also measure the coverage.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of targets to run in parallel.",
)
def all_(
    seconds: int, executions: int | None, seed: int | None, only: tuple[str, ...], covers: bool,
    jobs: int,
) -> None:  # fmt: skip
    """Replay every target's committed inputs, then fuzz it under each available guide."""
    seed = _drawn(seed)
    missing: list[str] = []
    chosen: list[tuple[Target, list[str]]] = []
    for target in TARGETS.values():
        if only and target.name not in only:
            continue
        try:
            _replay(target)
        except ImportError as error:
            missing.append(f"{target.name}: {error}")
            continue
        reasons = {guide: guides.absent(guide, target) for guide in target.guides}
        missing += [f"{target.name} ({guide}): {why}" for guide, why in reasons.items() if why]
        chosen.append((target, [guide for guide, why in reasons.items() if not why]))

    def run(target: Target, its_guides: list[str]) -> int:
        broken = 0
        for guide in its_guides:
            if executions:
                ran = guides.fuzz_afresh(target, guide, executions=executions, seed=seed)
            else:
                ran = guides.fuzz(target, guide, seconds=seconds, seed=seed, show=False)
            echo(_line(ran))
            broken += bool(ran.kept)
        if covers:  # in a separate process, as the modules are already imported here
            subprocess.run([sys.executable, "-m", "fuzz", "cover", target.name], check=True)
        return broken

    # A guide is a process, and a thread here waits for it.
    with ThreadPoolExecutor(jobs) as pool:
        broken = sum(pool.map(lambda each: run(*each), chosen))
    for line in missing:
        echo(f"skipped: {line}", err=True)
    required = "all" in os.environ.get("KPROTO_REQUIRE", "").split(",")
    sys.exit(1 if broken or (missing and required) else 0)


def _replay(target: Target) -> None:
    check = load(target).check
    began, files = time.monotonic(), committed(target.name)
    for file in files:
        try:
            check(file.read_bytes())
        except BaseException:
            echo(f"{file} breaks {target.name}:", err=True)
            raise
    echo(f"{target.name}: {len(files)} committed inputs, {time.monotonic() - began:.1f} s")


@main.command()
@click.option("--write", is_flag=True, help="Write the table into docs/explanation/fuzzing.md.")
def table(write: bool) -> None:
    """Print the newest of the longest runs of each target and guide as a table."""
    from fuzz.table import rows, write_into

    text = rows(guides.last_runs())
    echo_text(text)
    if write:
        write_into(CORPUS.parent.parent / "docs" / "explanation" / "fuzzing.md", text)


def _drawn(seed: int | None) -> int:
    return random.randrange(1, 2**31) if seed is None else seed


def _line(ran: RunStatistics) -> str:
    found = f"; FOUND {ran.kept}" if ran.kept else ""
    reached = f"{ran.edges} edges, {ran.features} features, " if ran.features else ""
    return (
        f"{ran.target} ({ran.guide}): {ran.executions} executions in {ran.seconds} s, {reached}"
        f"{ran.corpus} inputs kept, {ran.peak_megabytes} MB, seed {ran.seed}{found}"
    )
