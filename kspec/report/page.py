"""Render a run as HTML: one page about all clients, and one about each to send to its maintainers.

Pages are self-contained files. Their scripts only filter and sort: without them everything is
there. The markup is in ``templates``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Final, NamedTuple

import kproto
from kproto.journal import describe
from kproto.pages import Pages
from kspec.judge import VERDICTS, Verdict
from kspec.model import SEVERITIES, SUITE, CaseFile
from kspec.report.conformance_pages import Sentences, Written
from kspec.report.data import LONGEST_TALK, resolved, without_folders
from kspec.report.files import client_page_path, journal_path
from kspec.report.maintainers import Block, inline
from kspec.results import Report, Result, VariantResult

__all__ = ["as_client_html", "as_html", "as_maintainers_html"]

MOST_TRAFFIC: Final = 2_000_000
"""Characters of journals on one page. Failures are first; the journals' files have everything."""

MOST_BYTES: Final = 256
"""Bytes of a frame that a page shows; the journals' files have all."""
_MARKS: Final[Mapping[Verdict, str]] = {
    "pass": "✓",
    "non-strict": "≈",
    "informational": "i",
    "fail": "✗",
    "error": "!",
    "unsupported": "·",
}
_LEGEND: Final[Mapping[Verdict, str]] = {
    "pass": "meets every requirement of the case",
    "non-strict": "meets every must but not every should",
    "informational": "the case only records what the client does",
    "fail": "breaks a must",
    "error": "its adapter failed, which says nothing about the client",
    "unsupported": "lacks the call, or never reached the behaviour under test",
}
_SEVERE: Final = ("error", "fail")


class _Line(NamedTuple):
    """An entry of the journal in words; ``raw`` has the bytes of a marked one in hexadecimal."""

    text: str
    marked: bool
    raw: str = ""


class _Variant(NamedTuple):
    played: VariantResult
    journal: str
    lines: Sequence[_Line]
    hidden: int
    """Entries that are only in the journal's file."""


class _Shown(NamedTuple):
    """A result on a page. ``variants`` of a failure are those that failed; ``others`` the rest."""

    result: Result
    anchor: str
    known: bool
    command: str
    explanation: Written | None
    variants: Sequence[_Variant]
    others: Sequence[VariantResult]


class _Case(NamedTuple):
    """A case with its failures and its other results, in the order of clients."""

    case: CaseFile
    number: str
    failures: Sequence[_Shown]
    others: Sequence[_Shown]

    @property
    def results(self) -> Mapping[str, _Shown]:
        return {each.result.client: each for each in (*self.failures, *self.others)}


@cache
def _pages() -> Pages:
    made = Pages("kspec.report")
    made.environment.filters["short"] = _short
    made.environment.filters["documents"] = resolved
    made.environment.filters["inline"] = inline
    made.environment.globals |= {
        "marks": _MARKS,
        "legend": _LEGEND,
        "verdicts": VERDICTS[::-1],
        "version": kproto.__version__,
        "suite": SUITE,
        "client_page_path": client_page_path,
    }
    return made


def as_html(report: Report, sentences: Sentences | None = None) -> str:
    """Return the page about all clients. ``sentences`` explains failures of clients."""
    cases = _cases(report, report.clients, sentences or {})
    failed = [each for each in cases if each.failures]
    # A failure that the baseline does not have comes before those that are known.
    failed.sort(key=lambda case: all(each.known for each in case.failures))
    return _pages().render(
        "report.html",
        scripts=("tables.js", "filters.js"),
        report=report,
        counts={name: _counts(report, name) for name in report.clients},
        total=_counts(report),
        cases=cases,
        failed=failed,
        passed=[each for each in cases if not each.failures],
        areas=list(dict.fromkeys(case.group for case in report.cases)),
    )


def as_client_html(report: Report, client: str, sentences: Sentences | None = None) -> str:
    """Return the page about one client of the run, which refers to no other file."""
    cases = [each for each in _cases(report, [client], sentences or {}) if each.results]
    return _pages().render(
        "client.html",
        scripts=("tables.js",),
        report=report,
        client=client,
        greeting=report.greetings.get(client),
        command=_command(report, client),
        counts=_counts(report, client),
        cases=cases,
        failed=sorted((each for each in cases if each.failures), key=_rank),
        elsewhere=partial(_elsewhere, report, client),
        advice=[
            shown
            for each in cases
            for shown in each.others
            if shown.result.judgement.verdict == "non-strict"
        ],
    )


def as_maintainers_html(blocks: Sequence[Block]) -> str:
    """Return the page of ``kspec.report.maintainers``."""
    return _pages().render("maintainers.html", blocks=blocks)


def _rank(case: _Case) -> int:
    """The place of the case among the failures of a client, the worst first."""
    severity = case.failures[0].result.judgement.severity
    return len(SEVERITIES) if severity is None else SEVERITIES.index(severity)


def _elsewhere(report: Report, client: str, case: CaseFile) -> str:
    """Count the verdicts on the other clients of the run in this case."""
    verdicts = Counter(
        each.judgement.verdict
        for each in report.results
        if each.client != client and each.case.id == case.id
    )
    return ", ".join(f"{verdicts[each]} {each}" for each in VERDICTS[::-1] if verdicts[each])


def _counts(report: Report, client: str = "") -> Counter[Verdict]:
    return Counter(each.judgement.verdict for each in report.results if client in ("", each.client))


def _cases(report: Report, clients: Sequence[str], sentences: Sentences) -> list[_Case]:
    """Return the cases in the order of the run. Failures are given room for traffic first."""
    budget = _Budget(MOST_TRAFFIC)
    found = {(each.client, each.case.id): each for each in report.results}
    shown: dict[tuple[str, str], _Shown] = {}
    for each in sorted(found.values(), key=lambda each: VERDICTS.index(each.judgement.verdict)):
        if each.client in clients:
            shown[each.client, each.case.id] = _shown(each, report, sentences, budget)
    cases = []
    for case in report.cases:
        results = [shown[name, case.id] for name in clients if (name, case.id) in shown]
        failures = [each for each in results if each.result.judgement.verdict in _SEVERE]
        others = [each for each in results if each not in failures]
        failures.sort(key=lambda each: each.known)
        cases.append(_Case(case, _number(case), failures, others))
    return cases


def _shown(result: Result, report: Report, sentences: Sentences, budget: _Budget) -> _Shown:
    number = _number(result.case)
    failed = result.judgement.verdict in _SEVERE
    variants: list[_Variant] = []
    others: list[VariantResult] = []
    for place, variant in enumerate(result.variants):
        if failed and variant.judgement.verdict not in _SEVERE:
            others.append(variant)
        else:
            variants.append(_variant(variant, journal_path(result, place), budget))
    return _Shown(
        result,
        _anchor(f"{number}--{result.client}"),
        result.case.id in report.known.get(result.client, ()),
        _command(report, result.client, number),
        sentences.get(result.client, {}).get(number) if failed else None,
        variants,
        others,
    )


class _Budget:
    """How many more characters of traffic a page may have."""

    def __init__(self, left: int) -> None:
        self.left = left


def _variant(variant: VariantResult, journal: str, budget: _Budget) -> _Variant:
    marked = {n for each in variant.judgement.findings if each.broken for n in each.sequences}
    start = variant.entries[0].timestamp_ns if variant.entries else 0
    lines: list[_Line] = []
    for place, entry in enumerate(variant.entries):
        if budget.left <= 0 or len(lines) >= LONGEST_TALK + 20:
            break
        if place < LONGEST_TALK or entry.sequence in marked:
            text = f"#{entry.sequence} {describe(entry, since_ns=start, width=600)}"
            raw = _hexadecimal(entry.raw) if entry.sequence in marked else ""
            lines.append(_Line(text, entry.sequence in marked, raw))
            budget.left -= len(text) + len(raw)
    return _Variant(variant, journal, lines, len(variant.entries) - len(lines))


def _hexadecimal(raw: bytes) -> str:
    rest = len(raw) - MOST_BYTES
    return raw[:MOST_BYTES].hex(" ", -4) + (f" and {rest:,} more bytes" if rest > 0 else "")


def _command(report: Report, client: str, number: str = "") -> str:
    """Return the command line that plays one case, or all, with this client."""
    words = ["kspec run", report.selections.get(client, f"--client {client}")]
    return " ".join([*words, *([f"--case {number}"] if number else []), "--out kspec-report"])


def _number(case: CaseFile) -> str:
    """Return a case's short id, such as ``framing/002``."""
    return case.id[: len(case.group) + 4]


def _anchor(text: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in text).strip("-")


def _short(text: str, most: int = 400) -> str:
    text = without_folders(text)
    return text if len(text) <= most else text[: most - 1] + "…"
