"""What a differential run found, for eyes and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rich.text import Text

from kproto import Dialect
from kproto.annotate import PartialFields, request_fields_partly, response_fields_partly
from kproto.hexview import hex_lines
from kproto.journal import printable
from kspec.clientfuzz.bases import Base
from kspec.clientfuzz.decoders.run import Finding, Outcome
from kspec.clientfuzz.decoders.verdicts import Verdict

__all__ = ["annotated", "as_json", "finding_lines", "summary_lines"]

_LONGEST: Final = 160


def annotated(dialect: Dialect, base: Base, frame: bytes) -> Iterator[Text]:
    """The frame, a line a field, as far as its bytes go."""
    fields: PartialFields
    if base.direction == "request":
        fields = request_fields_partly(dialect, frame)
    else:
        fields = response_fields_partly(
            dialect, frame, api_key=base.api_key, api_version=base.version
        )
    yield from hex_lines(frame, fields)


def finding_lines(dialect: Dialect, finding: Finding, seed: int) -> Iterator[Text]:
    """A cause: what was done, every verdict, and the bytes."""
    base, mutation = finding.case.base, finding.case.mutation
    name = dialect.api(base.api_key).name
    times = f"{finding.count} case{'s' * (finding.count != 1)}"
    yield Text(f"{times}  {finding.cause}", style="bold yellow" if finding.open else "bold")
    yield Text(
        f"  the first: seed {seed}, case {finding.case.number}: {name} {base.direction} "
        f"v{base.version}, values {base.pattern}"
    )
    yield Text(printable(f"  done to it: {mutation.detail}"))
    for who, verdict in finding.verdicts.items():
        yield Text(printable(f"  {who:<24} {_told(verdict)}"))
    for row in finding.expected:
        yield Text(printable(f"  expected ({row.id}): {row.reason}"), style="dim")
    yield from annotated(dialect, base, mutation.frame)


def summary_lines(outcome: Outcome) -> Iterator[str]:
    rate = outcome.cases / outcome.seconds if outcome.seconds else 0.0
    yield (
        f"{outcome.cases} cases of seed {outcome.seed} in {outcome.seconds:.1f} s "
        f"({rate:.0f} a second): {outcome.agreed} agreed on"
    )
    for name, count in sorted(outcome.rows.items(), key=lambda item: -item[1]):
        yield f"  expected {count:>6}  {name}"
    total = sum(each.count for each in outcome.findings)
    yield f"{len(outcome.findings)} causes of disagreement are not expected, in {total} cases"


def _told(verdict: Verdict) -> str:
    value = verdict.value if len(verdict.value) <= _LONGEST else verdict.value[: _LONGEST - 1] + "…"
    text = "; ".join(part for part in (value, verdict.text) if part)
    return f"{verdict.outcome}{': ' if text else ''}{text}"


def as_json(outcome: Outcome) -> dict[str, Any]:
    """All of it, for programs: every cause with its first case's bytes as hex."""
    return {
        "seed": outcome.seed,
        "cases": outcome.cases,
        "agreed": outcome.agreed,
        "seconds": round(outcome.seconds, 3),
        "expected": outcome.rows,
        "findings": [_finding(each) for each in outcome.findings],
        "known": [_finding(each) for each in outcome.known],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    base = finding.case.base
    return {
        "who": finding.cause.who,
        "kind": finding.cause.kind,
        "path": finding.cause.shape,
        "count": finding.count,
        "case": finding.case.number,
        "api_key": base.api_key,
        "version": base.version,
        "direction": base.direction,
        "detail": finding.case.mutation.detail,
        "frame": finding.case.mutation.frame.hex(),
        "verdicts": {who: verdict._asdict() for who, verdict in finding.verdicts.items()},
        "expected": [row.id for row in finding.expected],
    }
