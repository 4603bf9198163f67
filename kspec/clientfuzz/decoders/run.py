"""Run the cases of a seed through every decoder and group the disagreements by cause.

Prints nothing; ``cli`` does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kproto import Dialect
from kproto.framing import SIZE_LENGTH
from kspec.clientfuzz.bases import Base
from kspec.clientfuzz.comparison import Comparison, Finding, batches
from kspec.clientfuzz.decoders.causes import cause_of, dissents
from kspec.clientfuzz.decoders.codecs import Decoder
from kspec.clientfuzz.decoders.expected import explain
from kspec.clientfuzz.decoders.verdicts import Verdict
from kspec.clientfuzz.frame_cases import Case

__all__ = ["DecoderComparison", "play"]

BATCH: Final = 250


@dataclass(slots=True)
class DecoderComparison(Comparison[Verdict]):
    """``agreed`` counts cases without a dissent; ``rows`` counts the cases that each expected
    difference explains, wholly or in part."""

    agreed: int = 0
    rows: dict[str, int] = field(default_factory=dict)

    def with_batch(
        self, cases: Sequence[Case], verdicts: Mapping[str, Sequence[Verdict]], seconds: float
    ) -> DecoderComparison:
        """Return a comparison that counts a further batch.

        A signal may interrupt this method anywhere. It therefore leaves ``self`` as it is, so that
        no reader sees part of a batch.
        """
        new = replace(self, seconds=seconds, causes=dict(self.causes), rows=dict(self.rows))
        for place, case in enumerate(cases):
            new._count(case, {name: each[place] for name, each in verdicts.items()})
        return new

    def _count(self, case: Case, verdicts: Mapping[str, Verdict]) -> None:
        self.cases += 1
        found = dissents(verdicts, foreign=_is_foreign(case))
        if not found:
            self.agreed += 1
            return
        rows, left = explain(found, case.mutation.kind)
        for row in rows:
            self.rows[row.id] = self.rows.get(row.id, 0) + 1
        # An explained participant does not change the cause of what remains.
        cause = cause_of(left or found, case.mutation.kind, case.mutation.path)
        self.add(Finding(cause, case, verdicts, rows, known=not left))


def play(
    dialect: Dialect,
    bases: Sequence[Base],
    decoders: Sequence[Decoder],
    *,
    seed: int,
    cases: int,
    first: int = 0,
    batch: int = BATCH,
    on_batch: Callable[[DecoderComparison], None] = lambda _comparison: None,
) -> DecoderComparison:
    """Judge ``cases`` cases from number ``first`` on. ``on_batch`` is called after each batch."""
    comparison = DecoderComparison(seed)
    started = time.monotonic()
    for played in batches(dialect, bases, seed=seed, first=first, cases=cases, size=batch):
        samples = [case.sample for case in played]
        verdicts = {decoder.name: decoder.judge(samples) for decoder in decoders}
        comparison = comparison.with_batch(played, verdicts, time.monotonic() - started)
        on_batch(comparison)
    return comparison


def _is_foreign(case: Case) -> bool:
    """Whether the response's correlation id differs from the request's."""
    frame = case.mutation.frame
    at = slice(SIZE_LENGTH, SIZE_LENGTH + 4)
    is_response = case.base.direction == "response"
    return is_response and len(frame) >= at.stop and frame[at] != case.base.frame[at]
