"""Render a comparison for the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from rich.text import Text

from kproto import Dialect
from kproto.annotate import PartialFields, request_fields_partly, response_fields_partly
from kproto.cli.console import Console
from kproto.hexview import hex_lines
from kspec.clientfuzz.bases import Base
from kspec.clientfuzz.comparison import Comparison, Finding

__all__ = ["MOST_CAUSES", "annotated", "finding_document", "print_findings", "summary"]

R = TypeVar("R")

MOST_CAUSES: Final = 40


def annotated(dialect: Dialect, base: Base, frame: bytes) -> Iterator[Text]:
    """Yield the frame with one line per field, as far as it can be decoded."""
    fields: PartialFields
    if base.direction == "request":
        fields = request_fields_partly(dialect, frame)
    else:
        fields = response_fields_partly(
            dialect, frame, api_key=base.api_key, api_version=base.version
        )
    yield from hex_lines(frame, fields)


def print_findings(
    console: Console,
    dialect: Dialect,
    comparison: Comparison[R],
    describe: Callable[[R], str],
    *,
    known: bool,
) -> Sequence[Finding[R]]:
    """Print each cause with every result and the frame's bytes. Return the causes printed."""
    shown = [*comparison.findings, *(comparison.known if known else [])]
    for finding in shown[:MOST_CAUSES]:
        for line in _lines(dialect, finding, comparison.seed, describe):
            console.print(line)
        console.print()
    if len(shown) > MOST_CAUSES:
        console.print(f"... and {len(shown) - MOST_CAUSES} more causes; --json lists all")
        console.print()
    return shown


def _lines(
    dialect: Dialect, finding: Finding[R], seed: int, describe: Callable[[R], str]
) -> Iterator[Text]:
    base, mutation = finding.case.base, finding.case.mutation
    name = dialect.api(base.api_key).name
    times = f"{finding.count} case{'s' * (finding.count != 1)}"
    yield Text(f"{times}  {finding.cause}", style="bold" if finding.known else "bold yellow")
    yield Text(
        f"  first: seed {seed}, case {finding.case.number}: {name} {base.direction} "
        f"v{base.version}, values {base.pattern}"
    )
    yield Text(f"  mutation: {mutation.detail}")
    for who, result in finding.results.items():
        yield Text(f"  {who:<24} {describe(result)}")
    for row in finding.expected:
        yield Text(f"  expected ({row.id}): {row.reason}", style="dim")
    yield from annotated(dialect, base, mutation.frame)


def summary(comparison: Comparison[Any]) -> str:
    rate = comparison.cases / comparison.seconds if comparison.seconds else 0.0
    return (
        f"{comparison.cases} cases of seed {comparison.seed} in {comparison.seconds:.1f} s "
        f"({rate:.0f} a second)"
    )


def finding_document(finding: Finding[R]) -> dict[str, Any]:
    """Return the members that a finding has in every JSON report."""
    base, mutation = finding.case.base, finding.case.mutation
    return {
        "kind": finding.cause.kind,
        "path": finding.cause.shape,
        "count": finding.count,
        "case": finding.case.number,
        "api_key": base.api_key,
        "version": base.version,
        "detail": mutation.detail,
        "frame": mutation.frame.hex(),
    }
