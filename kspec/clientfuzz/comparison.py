"""The outcome of giving the same mutated frames to several decoders or brokers.

Disagreements are grouped by cause: the first case of each cause is kept, the others are counted.
This module has no opinion on who is right; ``decoders`` and ``brokers`` decide what a disagreement
is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, NamedTuple, TypeVar

from kproto import Dialect
from kspec.clientfuzz.bases import Base
from kspec.clientfuzz.expected import ExpectedDifference
from kspec.clientfuzz.frame_cases import Case, case_of

__all__ = ["Cause", "Comparison", "Finding", "batches", "shape"]

R = TypeVar("R")

_INDEX: Final = re.compile(r"\[\d+\]")


class Cause(NamedTuple):
    """What identifies a disagreement: the outcomes, the kind of mutation and the path it hit.

    ``what`` reads ``kafka-3.9.2, kafka-4.4.0: accepted, ours rejected``. ``shape`` is the path
    without its indices. ``api_key`` is None where causes are grouped across APIs.
    """

    what: str
    kind: str
    shape: str
    api_key: int | None = None

    def __str__(self) -> str:
        api = "" if self.api_key is None else f"api {self.api_key}, "
        return f"{self.what}; {api}{self.kind} at {self.shape or 'the frame'}"


def shape(path: str) -> str:
    """Return a path without its indices, such as ``topics[].partitions[].replicas``."""
    return _INDEX.sub("[]", path)


@dataclass(slots=True)
class Finding(Generic[R]):
    """A cause, its first case and each participant's result for that case.

    ``expected`` holds the expected differences that explain part of the disagreement. ``known`` is
    True if they explain all of it.
    """

    cause: Cause
    case: Case
    results: Mapping[str, R]
    expected: Sequence[ExpectedDifference]
    known: bool
    count: int = 1


@dataclass(slots=True)
class Comparison(Generic[R]):
    """All cases of a run so far. ``seconds`` includes the time to mutate the frames."""

    seed: int
    cases: int = 0
    seconds: float = 0.0
    causes: dict[Cause, Finding[R]] = field(default_factory=dict)

    @property
    def findings(self) -> list[Finding[R]]:
        """Unexpected differences, most frequent first."""
        return self._by_count(known=False)

    @property
    def known(self) -> list[Finding[R]]:
        """Expected differences, most frequent first."""
        return self._by_count(known=True)

    def add(self, finding: Finding[R]) -> None:
        """Count one case of a cause. The finding is kept if it is the first of its cause."""
        first = self.causes.get(finding.cause)
        if first is None:
            self.causes[finding.cause] = finding
        else:
            self.causes[finding.cause] = replace(first, count=first.count + 1)

    def _by_count(self, *, known: bool) -> list[Finding[R]]:
        chosen = [each for each in self.causes.values() if each.known == known]
        return sorted(chosen, key=lambda finding: -finding.count)


def batches(
    dialect: Dialect, bases: Sequence[Base], *, seed: int, first: int, cases: int, size: int
) -> Iterator[list[Case]]:
    """Yield ``cases`` cases of a seed, from number ``first`` on, in batches of ``size``."""
    end = first + cases
    for start in range(first, end, size):
        numbers = range(start, min(start + size, end))
        yield [case_of(dialect, bases, seed, number) for number in numbers]
