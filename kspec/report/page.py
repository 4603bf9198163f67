"""Render a run as one HTML page: the matrix of clients and cases, and each verdict's reasons and
traffic.

The page has no script, loads nothing, and is readable at the width of a phone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from kproto.journal import Entry, describe
from kspec.judge import Finding, Verdict
from kspec.model import CaseFile
from kspec.report.data import LONGEST_TALK
from kspec.report.style import STYLE
from kspec.results import Call, Greeting, Report, Result, VariantResult

__all__ = ["as_html"]

_MARKS: Final[dict[Verdict, str]] = {
    "pass": "✓",
    "non-strict": "≈",
    "informational": "i",
    "fail": "✗",
    "error": "!",
    "unsupported": "-",
}
_LEGEND: Final[dict[Verdict, str]] = {
    "pass": "meets every requirement of the case",
    "non-strict": "meets every must but not every should",
    "informational": "the case only records what the client does",
    "fail": "breaks a must",
    "error": "its adapter failed, which says nothing about the client",
    "unsupported": "lacks the call, or never reached the behaviour under test",
}


def as_html(report: Report) -> str:
    """Return the whole page."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>kspec: Kafka clients by case</title><style>{STYLE}</style></head><body>\n"
        f"<header><h1>kspec</h1><p>{_summary(report)}</p>{_legend()}</header>\n"
        f"<main>{_clients(report)}{_matrix(report)}{_details(report)}</main></body></html>\n"
    )


def _summary(report: Report) -> str:
    return (
        f"{len(report.cases)} cases, {len(report.clients)} clients, {report.seconds:.0f} "
        "seconds. Each verdict links to its reasons and traffic."
    )


def _legend() -> str:
    rows = "".join(
        f'<li><span class="v {verdict}">{mark}</span> <b>{verdict}</b>: {_LEGEND[verdict]}</li>'
        for verdict, mark in _MARKS.items()
    )
    return f'<ul class="legend">{rows}</ul>'


def _clients(report: Report) -> str:
    rows = []
    for name in report.clients:
        greeting = report.greetings.get(name)
        about = "" if greeting is None else escape(f"{greeting.version} · {greeting.language}")
        about += "" if greeting is None else _options(greeting)
        counts = " ".join(
            f'<span class="c"><span class="v {verdict}">{mark}</span> {count}</span>'
            for verdict, mark in _MARKS.items()
            if (count := _count(report, name, verdict))
        )
        rows.append(f"<tr><th>{escape(name)}</th><td>{about}</td><td>{counts}</td></tr>")
    for name, why in report.absent.items():
        rows.append(f'<tr><th>{escape(name)}</th><td colspan="2">absent: {escape(why)}</td></tr>')
    stale = "".join(f"<li>{escape(c)}: {escape(case)}</li>" for c, case in report.stale)
    note = f"<p>In the baseline, but no longer failing:</p><ul>{stale}</ul>" if stale else ""
    return f'<h2>Clients</h2><div class="scroll"><table>{"".join(rows)}</table></div>{note}'


def _options(greeting: Greeting) -> str:
    """Return the options that differ from the client's defaults, and its raw calls."""
    rows = "".join(
        f"<li><code>{escape(name)}</code>: {escape(value)}</li>"
        for name, value in (*greeting.options.items(), *greeting.raw_calls.items())
    )
    return f"<details><summary>options</summary><ul>{rows}</ul></details>" if rows else ""


def _count(report: Report, client: str, verdict: Verdict) -> int:
    return sum(
        each.client == client and each.judgement.verdict == verdict for each in report.results
    )


def _matrix(report: Report) -> str:
    head = "".join(f'<th class="up"><span>{escape(name)}</span></th>' for name in report.clients)
    rows = []
    group = ""
    for case in report.cases:
        if case.group != group:
            group = case.group
            width = len(report.clients) + 1
            rows.append(f'<tr class="group"><th colspan="{width}">{escape(group)}</th></tr>')
        cells = "".join(_cell(client, case, report) for client in report.clients)
        number = case.id[len(group) + 1 :][:3]
        rows.append(
            f'<tr><th><a href="#{_anchor("", case)}"><small>{number}</small> '
            f"{escape(case.case.title)}</a></th>{cells}</tr>"
        )
    return (
        '<h2>Matrix</h2><div class="scroll"><table class="matrix">'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(client: str, case: CaseFile, report: Report) -> str:
    result = report.result(client, case)
    if result is None:
        return "<td></td>"
    verdict = result.judgement.verdict
    title = f"{client}, {case.id}: {verdict}" + (
        f": {result.judgement.why}" if result.judgement.why else ""
    )
    known = " known" if case.id in report.known.get(client, ()) else ""
    return (
        f'<td><a class="v {verdict}{known}" href="#{_anchor(client, case)}" '
        f'title="{escape(title)}">{_MARKS[verdict]}</a></td>'
    )


def _anchor(client: str, case: CaseFile) -> str:
    kept = "".join(char if char.isalnum() else "-" for char in f"{case.id}--{client}")
    return kept.strip("-")


# ---- verdict details -----------------------------------------------------------------------------


def _details(report: Report) -> str:
    return "<h2>Cases</h2>" + "".join(_case(case, report) for case in report.cases)


def _case(case: CaseFile, report: Report) -> str:
    results = [result for name in report.clients if (result := report.result(name, case))]
    shown = "".join(_result(result, report) for result in results)
    return (
        f'<section id="{_anchor("", case)}"><h3><small>{escape(case.id)}</small> '
        f"{escape(case.case.title)}</h3><p>{escape(case.case.about)}</p>"
        f'<p class="source">{escape(case.case.source)} · {escape(case.case.profile)} · '
        f"<code>kspec run --case {escape(case.id)}</code></p>{shown}</section>\n"
    )


def _result(result: Result, report: Report) -> str:
    # The link's target is inside the element, so that browsers open the element on the way.
    verdict = result.judgement.verdict
    known = " (known)" if result.case.id in report.known.get(result.client, ()) else ""
    variants = "".join(_variant(variant, result) for variant in result.variants)
    why = f": {escape(result.judgement.why)}" if result.judgement.why else ""
    why += f" (failed at first: {escape(result.unsteady)})" if result.unsteady else ""
    return (
        "<details><summary>"
        f'<span class="v {verdict}">{_MARKS[verdict]}</span> <b>{escape(result.client)}</b>'
        f'{known}{why}</summary><div id="{_anchor(result.client, result.case)}">{variants}</div>'
        "</details>"
    )


def _variant(variant: VariantResult, result: Result) -> str:
    name = f"<h4>{escape(variant.name)}</h4>" if variant.name else ""
    calls = "".join(
        f"<li><code>{escape(call.name)}</code>: {escape(_short(call.answered))} "
        f"<small>{call.milliseconds:.0f} ms</small>{_raw(call)}</li>"
        for call in variant.calls
    )
    findings = "".join(_finding(each) for each in variant.judgement.findings)
    marked = {n for each in variant.judgement.findings if each.broken for n in each.sequences}
    return (
        f"{name}<ul>{findings}</ul><p>What the client said:</p><ul>{calls}</ul>"
        f"<p>On the wire:</p>{_talk(variant.entries, marked)}"
    )


def _raw(call: Call) -> str:
    return f"<br><small>returned <code>{escape(_short(call.raw))}</code></small>" * bool(call.raw)


def _finding(each: Finding) -> str:
    state = "unknown" if each.holds is None else "broken" if each.broken else "kept"
    mark = {"unknown": "?", "broken": "✗", "kept": "✓"}[state]
    level = each.level.replace("_", " ")
    return (
        f'<li class="{state}"><span>{mark}</span> <b>{level}</b>: {escape(each.says)} '
        f"<small>{escape(each.evidence)}</small></li>"
    )


def _talk(entries: Sequence[Entry], marked: Iterable[int]) -> str:
    if not entries:
        return "<p>nothing</p>"
    start, chosen = entries[0].timestamp_ns, set(marked)
    lines = []
    for entry in entries[:LONGEST_TALK]:
        text = escape(f"#{entry.sequence} {describe(entry, since_ns=start, width=600)}")
        lines.append(f"<mark>{text}</mark>" if entry.sequence in chosen else text)
    if len(entries) > LONGEST_TALK:
        lines.append(f"… and {len(entries) - LONGEST_TALK} more: see the journal beside this page")
    return '<pre class="scroll">' + "\n".join(lines) + "</pre>"


def _short(text: str) -> str:
    return text if len(text) <= 400 else text[:399] + "…"
