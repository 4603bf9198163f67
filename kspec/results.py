"""The results of a run: each client in each case, with its traffic. Plain values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import msgspec

from kproto.journal import Entry
from kspec.judge import Judgement, Verdict
from kspec.model import CaseFile

__all__ = [
    "Call",
    "Coverage",
    "Greeting",
    "Report",
    "Result",
    "VariantResult",
    "coverage_of",
    "new_failures",
    "without_empty_passes",
]


class Greeting(msgspec.Struct, frozen=True):
    """The first line of an adapter. Unknown fields are ignored."""

    client: str
    version: str = ""
    language: str = ""
    capabilities: list[str] = []
    connect: list[str] = []
    """The members of ``connect`` that not every adapter takes: ``tls``."""
    records: list[str] = []
    """The members of records that not every adapter has: ``headers``."""
    options: dict[str, str] = {}
    """Options that differ from the client's defaults. ``timeout_ms`` comes from the case."""
    raw_calls: dict[str, str] = {}
    """Calls for which the client only has a function whose caller chooses the broker and the
    version, and that function. The adapter made the choice, so cases about that choice are not
    played on it."""

    def release_of(self, name: str) -> str:
        """The release, after the client's own name where the run calls the client ``name`` for
        want of a better one."""
        if self.client in name or name in self.client:
            return self.version
        return f"{self.client} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class Call:
    """One call, by the case's name for it, and its answer.

    ``raw`` is what the client returned, as its language prints it. ``succeeded`` is True if it did
    for one partition at least, and None if the client lacks the call.
    """

    name: str
    request: str
    answered: str
    milliseconds: float
    raw: str = ""
    succeeded: bool | None = True


@dataclass(frozen=True, slots=True)
class VariantResult:
    """One play of a variant and its verdict. ``unmet`` has the waits whose entries did not come."""

    name: str
    judgement: Judgement
    entries: Sequence[Entry] = ()
    calls: Sequence[Call] = ()
    unmet: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """One client in one case, with the worst verdict of its variants.

    ``unsteady`` says why the client failed at first, if a second play did not fail.
    """

    client: str
    case: CaseFile
    judgement: Judgement
    variants: Sequence[VariantResult]
    seconds: float = 0.0
    unsteady: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Results in the order of ``clients`` and ``cases``.

    ``absent`` says why a client did not run. ``known`` lists the failures of the baseline,
    ``stale`` those that no longer fail. ``date`` is the day of the run, such as ``2026-01-31``.
    ``selections`` has the options of `kspec run` that choose a client, by its name.
    """

    clients: Sequence[str]
    cases: Sequence[CaseFile]
    results: Sequence[Result]
    greetings: Mapping[str, Greeting] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stale: Sequence[tuple[str, str]] = ()
    seconds: float = 0.0
    date: str = ""
    selections: Mapping[str, str] = field(default_factory=dict)


class Coverage(NamedTuple):
    """How many of the plays of a client could be judged: neither unsupported nor an error of the
    adapter."""

    judged: int = 0
    played: int = 0

    @property
    def percent(self) -> float:
        return 100 * self.judged / self.played if self.played else 0.0

    def with_play(self, verdict: Verdict) -> Coverage:
        is_judged = verdict not in ("unsupported", "error")
        return Coverage(self.judged + is_judged, self.played + 1)


def coverage_of(results: Iterable[Result]) -> Mapping[str, Mapping[str, Coverage]]:
    """Return the coverage of each client in each group of cases; that of all is under ``""``."""
    found: dict[str, dict[str, Coverage]] = {}
    for each in results:
        groups = found.setdefault(each.client, {})
        for group in ("", each.case.group):
            groups[group] = groups.get(group, Coverage()).with_play(each.judgement.verdict)
    return found


FEWEST_CALLS: Final = 5
"""A call that a run made so often and that never succeeded is one that the client cannot make."""


def without_empty_passes(results: Sequence[Result]) -> list[Result]:
    """Return the results; those that rest on calls that never succeed become unsupported.

    In many cases a call has to fail. If it fails in every case of a run, also where it has to
    succeed, its failure shows nothing.
    """
    made: dict[tuple[str, str], list[bool]] = {}
    for result in results:
        for call in _calls(result):
            if call.succeeded is not None:
                made.setdefault((result.client, call.request), []).append(call.succeeded)
    dead = {key for key, each in made.items() if len(each) >= FEWEST_CALLS and not any(each)}
    return [_without_empty_pass(result, dead) for result in results]


def _without_empty_pass(result: Result, dead: Set[tuple[str, str]]) -> Result:
    calls = [each for each in _calls(result) if each.succeeded is not None]
    if result.judgement.verdict in ("fail", "error", "unsupported") or not calls:
        return result
    if any((result.client, each.request) not in dead for each in calls):
        return result
    names = ", ".join(dict.fromkeys(each.request for each in calls))
    why = f"no call of {names} succeeded in any case, so that its failure shows nothing"
    return replace(result, judgement=replace(result.judgement, verdict="unsupported", why=why))


def _calls(result: Result) -> Iterator[Call]:
    for variant in result.variants:
        yield from variant.calls


def new_failures(
    results: Sequence[Result], known: Mapping[str, Sequence[str]]
) -> tuple[list[Result], list[tuple[str, str]]]:
    """Return the failures missing from the baseline, and baseline entries that did not fail.

    Entries of clients and cases that were not run are ignored.
    """
    failed = [each for each in results if each.judgement.verdict == "fail"]
    new = [each for each in failed if each.case.id not in known.get(each.client, ())]
    judged = [each for each in results if each.judgement.verdict not in ("fail", "error")]
    passed = {(each.client, each.case.id) for each in judged}
    listed = [(client, case) for client, cases in known.items() for case in cases]
    return new, [entry for entry in listed if entry in passed]
