"""Report a run as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from kproto.cli.console import Console
from kproto.cli.tables import print_table
from kproto.safe_text import printable
from kspec.clientfuzz.clients.campaign import CauseReport, Result
from kspec.clientfuzz.clients.judge import FINDINGS, OBSERVATIONS

__all__ = ["as_document", "print_found", "print_summary"]

FORMAT: Final = "kproto-fuzz-report"


def as_document(result: Result, reproducers: Mapping[str, str]) -> dict[str, Any]:
    """Return report.json. ``reproducers`` maps causes to folders."""
    return {
        "format": FORMAT,
        "client": result.learned.greeting.client,
        "version": result.learned.greeting.version,
        "seed": result.seed,
        "cases": result.cases,
        "seconds": round(result.seconds, 1),
        "restarts": result.restarts,
        "watched": result.watched,
        "ended": result.ended,
        "calls": sorted(result.learned.answers),
        "calls_failed": result.learned.failed,
        "verdicts": dict(sorted(result.verdicts.items())),
        "found": [_row(each, reproducers.get(each.cause)) for each in result.found],
    }


def _row(found: CauseReport, folder: str | None) -> dict[str, Any]:
    outcome, case = found.outcome, found.small
    return {
        "verdict": outcome.verdict,
        "finding": outcome.is_finding,
        "steady": found.steady,
        "unconfirmed": found.unconfirmed,
        "cause": found.cause,
        "times": found.times,
        "case": found.number,
        "call": case.op,
        "api_key": case.api_key,
        "version": case.version,
        "detail": printable(case.detail),
        "persistent": case.persistent,
        "message": printable(outcome.message),
        "at": outcome.at,
        "answered": printable(outcome.answered),
        "reproducer": folder,
    }


def print_found(console: Console, found: CauseReport) -> None:
    """Print one cause."""
    outcome, case = found.outcome, found.small
    style = "red" if outcome.is_finding else "yellow"
    if not found.steady:
        style = "dim"
    unsteady = "" if found.steady else "(not reproduced in a new process)"
    if found.unconfirmed:
        unsteady = "(unconfirmed: the run ended before it was played again)"
    where = f" at {outcome.at}" if outcome.at else ""
    console.print(Text(f"{outcome.verdict}{where}{unsteady}", style=style))
    line = f"  case {found.number}, {found.times}x: {case.op}, api {case.api_key} v{case.version}"
    console.print(Text(f"{line}: {case.detail}"))
    if outcome.message:
        console.print(Text(f"  {outcome.message}"))


def print_summary(console: Console, result: Result) -> None:
    greeting = result.learned.greeting
    table = Table("verdict", "cases", "causes", "description", box=None)
    causes = _causes(result)
    for name, about in {**FINDINGS, **OBSERVATIONS}.items():
        if result.verdicts[name]:
            table.add_row(name, str(result.verdicts[name]), str(causes.get(name, 0)), about)
    table.add_row("fine", str(result.verdicts["fine"]), "", "rejected, or understood correctly")
    if result.verdicts["void"]:
        table.add_row(
            "void", str(result.verdicts["void"]), "", "the client never requested the answer"
        )
    print_table(table, ("description",), console=console)
    for op, why in result.learned.failed.items():
        console.print(Text(f"{op} fails on a healthy cluster and was left out: {why}"), style="dim")
    if not result.watched:
        console.print("memory and processor time are not measured on this system", style="dim")
    unconfirmed = f", {len(result.unconfirmed)} unconfirmed" if result.unconfirmed else ""
    console.print(
        Text(
            f"{greeting.client} {greeting.version}: {result.cases} cases with seed {result.seed} in"
            f" {result.seconds:.0f} s, {result.restarts} restarts, {len(result.findings)} findings"
            + unconfirmed
        )
    )
    if result.ended:
        console.print(Text(f"interrupted: {result.ended}"), style="yellow")


def _causes(result: Result) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in result.found:
        counts[each.outcome.verdict] = counts.get(each.outcome.verdict, 0) + 1
    return counts
