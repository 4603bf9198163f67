"""``kspec holes``: defects made from the reference client's source, and those that no case
catches."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click
from rich.table import Table

from kproto.builds import cache
from kproto.cli.tables import print_table
from kproto.cli.terminal import echo, echo_json
from kproto.tools.texts import counted
from kspec.errors import KspecError
from kspec.holes.mutant_client import every_mutation, places_by_name
from kspec.holes.right_client import baseline, differing
from kspec.holes.search import Outcome, of_subjects, sample, search
from kspec.holes.stored_plays import PlaysInFiles
from kspec.runner.files import CASES, choose, load_cases
from kspec.runner.processes import Interrupted, interrupted

__all__ = ["holes_command"]

_PROGRESS_SECONDS: Final = 10.0


@click.command("holes")
@click.option("--seed", type=int, default=455, show_default=True, help="Seed of the sample.")
@click.option("--sample", "number", type=click.IntRange(1), metavar="N",
              help="Number of defects to draw; by default all of them.")  # fmt: skip
@click.option("--subject", "subjects", multiple=True, metavar="NAME",
              help="Play only defects of this subject, such as produce. Repeat it for "
                   "several.")  # fmt: skip
@click.option("--case", "wanted", multiple=True, metavar="ID|GLOB",
              help="Case to play. Repeat it for several; the default is all.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1, 64), default=os.cpu_count() or 1, show_default=True,
              help="Number of processes.")  # fmt: skip
@click.option("--require", "least", type=click.FloatRange(0, 100), default=0, metavar="PERCENT",
              help="Share of the defects that has to be caught; less makes the exit status "
                   "1.")  # fmt: skip
@click.option("--json", "as_document", is_flag=True, help="Print one JSON document.")
@click.option(
    "--cases",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=CASES,
    help="Folder of your own cases, used instead of the suite's.",
)
def holes_command(
    seed: int, number: int | None, subjects: tuple[str, ...], wanted: tuple[str, ...],
    jobs: int, least: float, as_document: bool, folder: Path,
) -> None:  # fmt: skip
    """Search for wrong clients that no case catches.

    Defects are made from the source of the reference client, one at a time: comparisons, constants,
    conditions, statements and fields. Each plays the cases that run its line. An interrupted
    search prints what it has.
    """
    logging.getLogger("mockbroker").setLevel(logging.ERROR)
    cases = choose(load_cases(folder), wanted)
    drawn = sample(every_mutation(), seed, number)
    progress = _Progress()
    outcomes: list[Outcome] = []
    started, status = time.monotonic(), 0
    try:
        with interrupted():
            right = baseline(
                cases,
                jobs=jobs,
                on_progress=lambda done, of: progress.say(
                    f"the right client: {done} of {of} plays"
                ),
                stored=PlaysInFiles(cache() / "holes"),
            )
            progress.say("values that defects change", now=True)
            places = places_by_name()
            drawn = of_subjects(drawn, right, places, subjects)
            values = differing(drawn, right, places, jobs=jobs)
            found = search(drawn, right, places, differing=values, jobs=jobs)
            with closing(found):
                for each in found:
                    outcomes.append(each)
                    progress.say(
                        f"{len(outcomes)} of {len(drawn)} defects: {_summary(outcomes)}",
                        now=each.status == "hole",
                    )
    except Interrupted as signal:
        status = signal.status
        echo(f"kspec: interrupted after {len(outcomes)} of {len(drawn)} defects", err=True)
    if not outcomes and not status:
        raise KspecError(f"no defect of the sample is about {' or '.join(subjects)}")
    outcomes.sort(key=lambda each: (each.mutation.module, each.mutation.line, each.mutation.number))
    seconds = time.monotonic() - started
    if as_document:
        echo_json(_document(outcomes, seed, len(cases), seconds, bool(status)), indent=1)
    else:
        _print(outcomes, seed, len(cases), seconds)
    share = _share(outcomes)
    sys.exit(status or (1 if share is not None and 100 * share < least else 0))


class _Progress:
    """Lines on standard error, terminal or not, every few seconds."""

    def __init__(self) -> None:
        self._last = 0.0

    def say(self, text: str, *, now: bool = False) -> None:
        if now or time.monotonic() - self._last > _PROGRESS_SECONDS:
            self._last = time.monotonic()
            echo(f"kspec: {text}", err=True)


def _summary(outcomes: Sequence[Outcome]) -> str:
    counts = Counter(each.status for each in outcomes)
    return f"{counts['caught']} caught, {counted(counts['hole'], 'hole')}"


def _share(outcomes: Sequence[Outcome]) -> float | None:
    """The share of the defects that cases can tell from the right client which one catches."""
    counts = Counter(each.status for each in outcomes)
    number = counts["caught"] + counts["hole"]
    return counts["caught"] / number if number else None


def _rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    rows = []
    for subject in [*sorted({each.subject for each in outcomes}), ""]:
        share = [each for each in outcomes if subject in ("", each.subject)]
        counts = Counter(each.status for each in share)
        caught = _share(share)
        rows.append({
            "subject": subject or "all",
            "defects": len(share),
            "not_reached": counts["not reached"] + counts["does not start"],
            "same": counts["same"],
            "harmless": counts["harmless"],
            "caught": counts["caught"],
            "holes": counts["hole"],
            "percent": None if caught is None else round(100 * caught, 1),
        })  # fmt: skip
    return rows


def _document(
    outcomes: Sequence[Outcome], seed: int, cases: int, seconds: float, interrupted_early: bool
) -> dict[str, Any]:
    return {
        "seed": seed,
        "cases": cases,
        "seconds": round(seconds),
        "interrupted": interrupted_early,
        "subjects": _rows(outcomes),
        "defects": [
            {
                "id": each.mutation.id,
                "kind": each.mutation.kind,
                "place": each.mutation.place,
                "change": each.mutation.change,
                "subject": each.subject,
                "status": each.status,
                "by": each.by,
                "why": each.why,
                "played": each.played,
            }
            for each in outcomes
        ],
    }


def _print(outcomes: Sequence[Outcome], seed: int, cases: int, seconds: float) -> None:
    table = Table(
        "subject", "defects", "not reached", "same", "harmless", "caught", "holes", "%", box=None
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for row in _rows(outcomes):
        table.add_row(*(("-" if value is None else str(value)) for value in row.values()))
    print_table(table, ("subject",))
    for each in outcomes:
        if each.status == "hole":
            echo(f"hole: {each.subject}: {each.mutation} ({each.why})")
    echo(
        f"{counted(len(outcomes), 'defect')}, {counted(cases, 'case')}, seed {seed}, "
        f"{seconds:.0f} s: {_summary(outcomes)}"
    )
