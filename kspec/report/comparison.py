"""Compare two runs: what a client's new release fixed, broke, and what can no longer be judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kspec.errors import KspecError
from kspec.judge import Verdict
from kspec.report.conformance_pages import Run

__all__ = ["KINDS", "WORSE", "Change", "Comparison", "compare_runs"]

KINDS: Final = ("broken", "no longer judged", "fixed", "newly judged", "stricter", "laxer")
"""The kinds of changes, worst first. Between pass and non-strict a client is stricter or laxer."""
WORSE: Final = ("broken", "no longer judged")
_GOOD: Final = ("pass", "informational")
_UNJUDGED: Final = "unsupported"


class Change(NamedTuple):
    """A case with another verdict. ``why`` is the judge's, of the new run."""

    kind: str
    case: str
    title: str
    before: Verdict
    after: Verdict
    why: str


class Comparison(NamedTuple):
    """One client in two runs. ``compared`` counts the cases that both played."""

    old: str
    old_release: str
    new: str
    new_release: str
    compared: int
    changes: Sequence[Change]

    def of_kind(self, kind: str) -> list[Change]:
        return [each for each in self.changes if each.kind == kind]


def compare_runs(old: Run, new: Run) -> list[Comparison]:
    """Compare the clients that both runs have, whatever their releases. If each run has one client,
    compare these. Raises KspecError if there is nothing to compare."""
    pairs = _pairs(list(old.clients), list(new.clients))
    if not pairs:
        raise KspecError("the two runs have no client in common")
    return [_compare(old, before, new, after) for before, after in pairs]


def _pairs(old: list[str], new: list[str]) -> list[tuple[str, str]]:
    if len(old) == len(new) == 1:
        return [(old[0], new[0])]
    named = {_unreleased(name): name for name in new}
    return [(name, named[_unreleased(name)]) for name in old if _unreleased(name) in named]


def _unreleased(name: str) -> str:
    """The name without the release that was asked for; a name may begin with @."""
    base, _, _ = name.rpartition("@")
    return base or name


def _compare(old: Run, before: str, new: Run, after: str) -> Comparison:
    verdicts = _verdicts(old, before)
    compared, changes = 0, []
    titles = {each.id: each.title for each in new.cases}
    for each in new.results:
        if each.client != after or each.case not in verdicts:
            continue
        compared += 1
        kind = _kind(verdicts[each.case], each.verdict)
        if kind is not None:
            title, verdict = titles[each.case], verdicts[each.case]
            changes.append(Change(kind, each.case, title, verdict, each.verdict, each.why))
    changes.sort(key=lambda change: KINDS.index(change.kind))
    old_release, new_release = old.clients[before].version, new.clients[after].version
    return Comparison(before, old_release, after, new_release, compared, changes)


def _verdicts(run: Run, client: str) -> Mapping[str, Verdict]:
    return {each.case: each.verdict for each in run.results if each.client == client}


def _kind(before: Verdict, after: Verdict) -> str | None:
    if before == after or (before in _GOOD and after in _GOOD):
        return None
    if after == "fail":
        return "broken"
    if before == "fail":
        return "no longer judged" if after == _UNJUDGED else "fixed"
    if after == _UNJUDGED:
        return "no longer judged"
    if before == _UNJUDGED:
        return "newly judged"
    return "stricter" if before == "non-strict" else "laxer"
