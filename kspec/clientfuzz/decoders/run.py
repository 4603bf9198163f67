"""Play the cases of a seed: every decoder judges each, and what they disagree on is kept by cause.

Of each cause the first case is kept and the others are counted. Knows no terminal; ``show`` does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kproto import Dialect
from kproto.framing import SIZE_LENGTH
from kspec.clientfuzz.bases import Base
from kspec.clientfuzz.decoders.causes import Cause, Dissent, cause_of, dissents
from kspec.clientfuzz.decoders.codecs import Decoder
from kspec.clientfuzz.decoders.expected import Expected, explain
from kspec.clientfuzz.decoders.verdicts import Verdict
from kspec.clientfuzz.frame_cases import Case, case_of

__all__ = ["Finding", "Outcome", "play"]

BATCH: Final = 250


@dataclass(slots=True)
class Finding:
    """A cause, its first case, and what each decoder said of that. ``expected`` are the rows that
    explain some of the dissent; ``open`` is what none explains, and makes it a finding."""

    cause: Cause
    case: Case
    verdicts: Mapping[str, Verdict]
    expected: Sequence[Expected]
    open: Sequence[Dissent]
    count: int = 1


@dataclass(slots=True)
class Outcome:
    """``seconds`` includes making the frames."""

    seed: int
    cases: int = 0
    agreed: int = 0
    seconds: float = 0.0
    causes: dict[Cause, Finding] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    """How many cases each row of the expected differences explained, some of."""

    @property
    def findings(self) -> list[Finding]:
        """What is not expected, the most frequent first."""
        return sorted((each for each in self.causes.values() if each.open), key=lambda f: -f.count)

    @property
    def known(self) -> list[Finding]:
        return sorted(
            (each for each in self.causes.values() if not each.open), key=lambda f: -f.count
        )


def play(
    dialect: Dialect,
    bases: Sequence[Base],
    decoders: Sequence[Decoder],
    *,
    seed: int,
    cases: int,
    first: int = 0,
    batch: int = BATCH,
    told: Callable[[Outcome], None] | None = None,
) -> Outcome:
    """Judge ``cases`` cases from number ``first`` on. ``told`` is called after each batch.

    A signal may interrupt this function anywhere. Each batch is therefore counted in a copy, so
    that an outcome given to ``told`` never holds part of a batch.
    """
    outcome = Outcome(seed)
    started = time.monotonic()
    for numbers in _batches(first, cases, batch):
        played = [case_of(dialect, bases, seed, number) for number in numbers]
        samples = [case.sample for case in played]
        said = {decoder.name: decoder.judge(samples) for decoder in decoders}
        counted = replace(
            outcome,
            seconds=time.monotonic() - started,
            causes={cause: replace(finding) for cause, finding in outcome.causes.items()},
            rows=dict(outcome.rows),
        )
        for place, case in enumerate(played):
            _count(counted, case, {name: verdicts[place] for name, verdicts in said.items()})
        outcome = counted
        if told is not None:
            told(outcome)
    return outcome


def _batches(first: int, cases: int, size: int) -> Iterator[range]:
    for start in range(first, first + cases, size):
        yield range(start, min(start + size, first + cases))


def _count(outcome: Outcome, case: Case, verdicts: Mapping[str, Verdict]) -> None:
    outcome.cases += 1
    found = dissents(verdicts, foreign=_is_foreign(case))
    if not found:
        outcome.agreed += 1
        return
    rows, left = explain(found, case.mutation.kind)
    for row in rows:
        outcome.rows[row.id] = outcome.rows.get(row.id, 0) + 1
    # Who is explained does not make another cause of what is not.
    cause = cause_of(left or found, case.mutation.kind, case.mutation.path)
    known = outcome.causes.get(cause)
    if known is None:
        outcome.causes[cause] = Finding(cause, case, verdicts, rows, left)
    else:
        known.count += 1


def _is_foreign(case: Case) -> bool:
    """Whether its correlation id is another than that of what was asked."""
    frame = case.mutation.frame
    at = slice(SIZE_LENGTH, SIZE_LENGTH + 4)
    is_response = case.base.direction == "response"
    return is_response and len(frame) >= at.stop and frame[at] != case.base.frame[at]
