"""The HTML pages: failures come first, nothing from a client becomes markup, sizes are bounded."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cached_property
from html.parser import HTMLParser

import pytest

from kspec.case_parser import parse_case
from kspec.model import CaseFile
from kspec.report import as_client_html, as_html
from kspec.report.conformance_pages import Written
from kspec.report.page import MOST_TRAFFIC
from kspec.results import Greeting, Report
from kspec.runner import files
from kspec.sources import sources_of
from tests.kspec.made_report import every_client, made

HOSTILE = "<script>alert(1)</script>\" onload='x' {{ 7 * 7 }} &amp; \u202e\x00]]>"
CASES = [
    parse_case(path.read_text("utf-8"), path.as_posix())
    for path in sorted(files.CASES.glob("*/*.yaml"))[:3]
]


class Page(HTMLParser):
    """A page that is well nested, runs only its own script and loads nothing."""

    VOID = ("meta", "br", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.said: list[str] = []
        self.scripts: list[str] = []
        self.policy = ""
        self.feed(text)
        self.close()
        assert self.open == []
        assert len(self.ids) == len(set(self.ids))
        assert {each[1:] for each in self.links if each.startswith("#")} <= set(self.ids)
        (script,) = self.scripts
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'" in self.policy
        assert "default-src 'none'" in self.policy
        assert not re.search("[\x00\u202e]", text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        assert tag not in ("link", "iframe", "object", "img", "base")
        assert not any(name.startswith("on") for name in given)
        assert not {"src", "srcset", "action", "style"} & set(given)
        if tag not in self.VOID:
            self.open.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.said.append(data)

    @cached_property
    def words(self) -> str:
        return "".join(self.said)


def _number(case: CaseFile) -> str:
    return case.id[: len(case.group) + 4]


@pytest.mark.parametrize("clients", [[HOSTILE], [HOSTILE, "other"]])
def test_nothing_from_a_client_becomes_markup(clients):
    report = Report(
        clients=clients,
        cases=CASES,
        results=[made(name, case, "fail", HOSTILE) for name in clients for case in CASES],
        greetings={HOSTILE: Greeting(HOSTILE, HOSTILE, HOSTILE, [], {HOSTILE: HOSTILE},
                                     {HOSTILE: HOSTILE})},
        absent={HOSTILE: HOSTILE},
        stale=[(HOSTILE, HOSTILE)],
        date=HOSTILE,
        selections={HOSTILE: HOSTILE},
    )  # fmt: skip
    explained = {HOSTILE: {_number(CASES[0]): Written(HOSTILE, [])}}
    for text in (as_html(report, explained), as_client_html(report, HOSTILE, explained)):
        page = Page(text)
        assert page.words.count("<script>alert(1)") > 10
        assert "{{ 7 * 7 }}" in page.words


@pytest.mark.slow
def test_failures_come_first_and_new_ones_before_known_ones():
    report = every_client()
    page = Page(as_html(report))
    assert [each for each in page.ids if each in ("clients", "failures", "matrix", "others")] == [
        "clients", "failures", "matrix", "others",
    ]  # fmt: skip
    anchors = {
        re.sub(r"\W", "-", f"{_number(each.case)}--{each.client}").strip("-")
        for each in report.results
        if each.judgement.verdict == "fail"
    }
    at = page.ids.index
    assert all(at("failures") < at(each) < at("matrix") for each in anchors)

    one, other = CASES[0], CASES[1]
    results = [made("c", one, "fail"), made("c", other, "fail"), made("c", CASES[2], "pass")]
    known = Page(as_html(Report(["c"], CASES, results, known={"c": [one.id]})))
    order = [each for each in known.ids if each.endswith("--c")]
    assert order == [f"{_number(each)}--c".replace("/", "-") for each in (other, one, CASES[2])]


@pytest.mark.slow
def test_a_page_of_one_client_says_what_was_run_and_how_to_repeat_it():
    report = every_client()
    page = Page(as_client_html(report, "kafkajs"))
    failed = [each for each in report.results
              if each.client == "kafkajs" and each.judgement.verdict == "fail"]  # fmt: skip
    assert "kafkajs 2.2.4" in page.words
    assert "retries" in page.words
    assert "kspec run --client kafkajs --out kspec-report" in page.words
    for each in failed:
        assert f"kspec run --client kafkajs --case {_number(each.case)} --out" in page.words
        assert f"evidence: {each.case.id}" in page.words
    documents = {each.address for case in report.cases for each in sources_of(case.case.source)}
    outside = {each for each in page.links if not each.startswith("#")}
    assert outside <= documents, "it is sent alone"
    assert "sarama" not in page.words


def test_paths_of_this_machine_are_left_out():
    results = [made("c", CASES[0], "fail", "at /opt/node_modules/x/y.js:5")]
    page = Page(as_client_html(Report(["c"], CASES, results), "c"))
    assert "not met: at y.js:5" in page.words


def test_a_large_run_has_a_bounded_page_which_says_what_is_hidden():
    results = [made("c", CASES[0], "pass", entries=9), made("c", CASES[1], "fail", entries=5000)]
    page = Page(as_html(Report(["c"], CASES, results)))
    assert "4,799 more journal entries are not on this page" in page.words
    assert "#5000 " in page.words, "the evidence is shown wherever it is"

    long = "x" * 3000
    results = [
        made(f"c{number}", case, "pass" if number else "fail", long, entries=150)
        for number in range(60)
        for case in CASES
    ]
    text = as_html(Report([f"c{number}" for number in range(60)], CASES, results))
    assert len(text) < 3 * MOST_TRAFFIC
    assert "150 journal entries are not on this page" in Page(text).words
