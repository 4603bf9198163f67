"""Reports of a run whose client, cases and answers consist of hostile text."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kspec.report import as_html, as_json, as_junit
from kspec.report.conformance_pages import as_pages, read_results
from kspec.results import Greeting, Report
from kspec.runner.files import load_cases
from tests.cli.hostile import JSON, check
from tests.kspec.made_report import made

CLIENT = f"[red]R3D{JSON}"
BREAKING = re.compile("[\ud800-\udfff\ufffe\uffff\x00-\x08\x0b\x0c\x0e-\x1f]")


@pytest.fixture(scope="module")
def report() -> Report:
    first = load_cases()[0]
    own = replace(first.case, title=JSON, about=JSON, source=JSON)
    case = replace(first, variants=[replace(each, case=own) for each in first.variants])
    greeting = Greeting(CLIENT, JSON, JSON, options={JSON: JSON})
    return Report(
        clients=[CLIENT],
        cases=[case],
        results=[made(CLIENT, case, "fail", JSON, entries=2)],
        greetings={CLIENT: greeting},
        absent={JSON: JSON},
        date="2026-01-31",
    )


def test_junit_is_xml(report: Report) -> None:
    suites = ET.fromstring(as_junit(report).encode())
    (failure,) = suites.iter("failure")
    for text in (failure.get("message"), failure.text):
        assert text is not None
        assert "[red]R3D[/red]\\x1b[31m" in text
        check(text.encode(), lines=True)


def test_results_are_read_again(report: Report) -> None:
    text = as_json(report)
    run = read_results(text.encode())
    assert run.cases[0].title.startswith("[red]R3D[/red]\x1b[31m")
    assert run.cases[0].title.endswith(r":boom:\ud800\udc9b\ud83d")
    assert json.loads(text)["clients"]


@pytest.mark.parametrize("write", [as_html, lambda report, _: as_junit(report)])
def test_documents_can_be_encoded(report: Report, write: Callable[..., str]) -> None:
    assert not BREAKING.search(write(report, {}))


def test_pages_of_markdown_are_printable(report: Report) -> None:
    for text in as_pages(read_results(as_json(report).encode()), {}).values():
        check(text.encode(), lines=True)
