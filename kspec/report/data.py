"""A run for programs: results.json, and JUnit XML for tools that show tests."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

import kproto
from kproto.journal import describe
from kproto.safe_text import printable_lines
from kspec.errors import KspecError
from kspec.judge import VERDICTS, Finding
from kspec.model import SUITE
from kspec.results import Greeting, Report, Result, VariantResult, coverage_of
from kspec.sources import Source, sources_of

__all__ = ["FORMAT", "LONGEST_TALK", "as_json", "as_junit", "resolved", "without_folders"]

FORMAT: Final = 1
LONGEST_TALK: Final = 200
"""Number of journal entries in results.json. Some clients produce thousands; the journal files have
all of them."""
LONGEST_RAW: Final = 4000
"""Number of characters of a client's return value that results.json keeps."""
_FOLDERS: Final = re.compile(r"(?:file://)?(?<![\w.])(?:/[\w.@+-]+)+/")
_SILENT: Final = Greeting(client="")
"""Stands for a client whose program never started."""


def without_folders(text: str) -> str:
    """Return the text without paths of the machine that ran the suite; names of files stay."""
    return _FOLDERS.sub("", text)


def as_json(report: Report) -> str:
    """Return results.json. docs/reference/kspec.md documents the fields."""
    counts = {
        client: {
            verdict: sum(
                each.judgement.verdict == verdict
                for each in report.results
                if each.client == client
            )
            for verdict in reversed(VERDICTS)
        }
        for client in report.clients
    }
    coverage = coverage_of(report.results)
    document = {
        "format": FORMAT,
        "suite": SUITE,
        "kspec": kproto.__version__,
        "date": report.date,
        "seconds": round(report.seconds, 1),
        "clients": {
            name: {
                "name": greeting.client,
                "selection": report.selections.get(name, f"--client {name}"),
                "version": greeting.version,
                "language": greeting.language,
                "options": greeting.options,
                "raw_calls": greeting.raw_calls,
                "verdicts": counts[name],
                "coverage": {
                    group or "all": {"judged": each.judged, "played": each.played}
                    for group, each in coverage.get(name, {}).items()
                },
            }
            for name in report.clients
            for greeting in (report.greetings.get(name, _SILENT),)
        },
        "absent": dict(report.absent),
        "cases": [
            {
                "id": each.id,
                "title": each.case.title,
                "source": each.case.source,
                "sources": [asdict(source) for source in resolved(each.case.source)],
                "about": each.case.about.strip(),
                "since": each.case.since,
            }
            for each in report.cases
        ],
        "results": [_result(each, report) for each in report.results],
        "stale": [{"client": client, "case": case} for client, case in report.stale],
    }
    text = json.dumps(document, indent=1, ensure_ascii=False)
    # Lone surrogates, which an adapter or a case may contain, cannot be encoded, and most readers
    # of JSON refuse their escapes. They become text: a backslash, u and four digits.
    return _SURROGATE.sub(lambda found: rf"\\u{ord(found[0]):04x}", text) + "\n"


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def resolved(source: str) -> tuple[Source, ...]:
    """Return the documents of a case's source; none if the tables lack one, as in users' cases."""
    try:
        return sources_of(source)
    except KspecError:
        return ()


def _result(each: Result, report: Report) -> dict[str, Any]:
    return {
        "client": each.client,
        "case": each.case.id,
        "verdict": each.judgement.verdict,
        "why": each.judgement.why,
        "severity": each.judgement.severity,
        "known": each.case.id in report.known.get(each.client, ()),
        "unsteady": each.unsteady,
        "seconds": round(each.seconds, 3),
        "variants": [_variant(variant) for variant in each.variants],
    }


def _variant(variant: VariantResult) -> dict[str, Any]:
    return {
        "name": variant.name,
        "verdict": variant.judgement.verdict,
        "why": variant.judgement.why,
        "findings": [_finding(each) for each in variant.judgement.findings],
        "calls": [
            {
                "name": call.name,
                "call": call.request,
                "answer": call.answered,
                "raw": call.raw[:LONGEST_RAW],
                "milliseconds": round(call.milliseconds, 1),
            }
            for call in variant.calls
        ],
    }


def _finding(each: Finding) -> dict[str, Any]:
    return {
        "level": each.level,
        "says": each.says,
        "holds": each.holds,
        "severity": each.severity,
        "evidence": each.evidence,
        "journal": list(each.sequences[:LONGEST_TALK]),
    }


def as_junit(report: Report) -> str:
    """Return JUnit XML with a suite per client and a test per case.

    A failure in the baseline is a skipped test, so that it fails no build.
    """
    suites = [_suite(client, report) for client in report.clients]
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="kspec">\n'
    return head + "".join(suites) + "</testsuites>\n"


def _suite(client: str, report: Report) -> str:
    results = [each for each in report.results if each.client == client]
    tests = [_test(each, report) for each in results]
    failures = sum("<failure" in test for test in tests)
    errors = sum("<error" in test for test in tests)
    skipped = sum("<skipped" in test for test in tests)
    seconds = sum(each.seconds for each in results)
    return (
        f"<testsuite name={_quoted(client)} tests={_quoted(len(tests))} "
        f"failures={_quoted(failures)} errors={_quoted(errors)} skipped={_quoted(skipped)} "
        f"time={_quoted(round(seconds, 3))}>"
        "\n" + "".join(tests) + "</testsuite>\n"
    )


def _test(each: Result, report: Report) -> str:
    verdict, why = each.judgement.verdict, each.judgement.why
    inner = ""
    if verdict == "fail" and each.case.id in report.known.get(each.client, ()):
        inner = f"<skipped message={_quoted(f'known: {why}')}/>"
    elif verdict == "fail":
        kind = _quoted(each.judgement.severity)
        inner = f"<failure type={kind} message={_quoted(why)}>{_escaped(_talk(each))}</failure>"
    elif verdict == "error":
        inner = f"<error message={_quoted(why)}/>"
    elif verdict == "unsupported":
        inner = f"<skipped message={_quoted(why)}/>"
    elif why:
        inner = f"<system-out>{_escaped(f'{verdict}: {why}')}</system-out>"
    name = f"{each.case.id}: {each.case.case.title}"
    return (
        f"<testcase classname={_quoted(each.client)} name={_quoted(name)} "
        f"time={_quoted(round(each.seconds, 3))}>{inner}</testcase>\n"
    )


def _talk(each: Result) -> str:
    """Return the journal of the worst variant."""
    for variant in each.variants:
        if variant.judgement == each.judgement and variant.entries:
            start, more = variant.entries[0].timestamp_ns, len(variant.entries) - LONGEST_TALK
            lines = [describe(e, since_ns=start) for e in variant.entries[:LONGEST_TALK]]
            return "\n".join([*lines, f"… and {more} more"] if more > 0 else lines)
    return ""


def _escaped(text: str) -> str:
    """XML cannot represent most control characters, not even by a reference."""
    return escape(printable_lines(text))


def _quoted(value: object) -> str:
    return quoteattr(printable_lines(str(value)))
