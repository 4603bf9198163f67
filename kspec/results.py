"""What a run gives: each client in each case, and what was said meanwhile. Plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from kproto.journal import Entry
from kspec.judge import Judgement
from kspec.model import CaseFile

__all__ = ["Call", "Greeting", "Report", "Result", "VariantResult", "new_failures"]


class Greeting(msgspec.Struct, frozen=True):
    """The first line an adapter says. Fields nobody knows are passed over."""

    client: str
    version: str = ""
    language: str = ""
    capabilities: list[str] = []
    options: dict[str, str] = {}
    """What differs from the client's defaults. ``timeout_ms`` in it is the case's."""
    raw_calls: dict[str, str] = {}
    """Calls for which the client has only a function that leaves its caller to choose the broker
    and the version; which function. The adapter chose, so that cases about that choice are not
    played on it."""


@dataclass(frozen=True, slots=True)
class Call:
    """What the client was asked, by the case's name for it, and what it said; ``raw`` is what it
    returned, as its language prints it."""

    name: str
    request: str
    answered: str
    milliseconds: float
    raw: str = ""


@dataclass(frozen=True, slots=True)
class VariantResult:
    """One play and what it is worth."""

    name: str
    judgement: Judgement
    entries: Sequence[Entry] = ()
    calls: Sequence[Call] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """One client in one case: the worst of its variants. ``unsteady``: why it failed at first,
    before a second play that it did not fail."""

    client: str
    case: CaseFile
    judgement: Judgement
    variants: Sequence[VariantResult]
    seconds: float = 0.0
    unsteady: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Results in the order of ``clients`` and ``cases``; ``absent`` says why a client did not
    run; ``known`` are the failures of the baseline, ``stale`` those of them that are none;
    ``date`` is the day's, as ``2026-01-31``."""

    clients: Sequence[str]
    cases: Sequence[CaseFile]
    results: Sequence[Result]
    greetings: Mapping[str, Greeting] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stale: Sequence[tuple[str, str]] = ()
    seconds: float = 0.0
    date: str = ""

    def result(self, client: str, case: CaseFile) -> Result | None:
        return next(
            (each for each in self.results if each.client == client and each.case is case), None
        )


def new_failures(
    results: Sequence[Result], known: Mapping[str, Sequence[str]]
) -> tuple[list[Result], list[tuple[str, str]]]:
    """The failures that the baseline does not have, and its entries that did not fail. What was
    not run says nothing about an entry."""
    failed = [each for each in results if each.judgement.verdict == "fail"]
    new = [each for each in failed if each.case.id not in known.get(each.client, ())]
    judged = [each for each in results if each.judgement.verdict not in ("fail", "error")]
    passed = {(each.client, each.case.id) for each in judged}
    listed = [(client, case) for client, cases in known.items() for case in cases]
    return new, [entry for entry in listed if entry in passed]
