"""The published pages agree with the results, and name the explanations that are missing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kspec.cli import commands
from kspec.cli.publish import FINDINGS, read_sentences
from kspec.client_catalog import CLIENTS
from kspec.client_catalog import client as client_named
from kspec.errors import KspecError
from kspec.runner.files import load_cases
from tests.kspec.which import program

ROOT = Path(__file__).resolve().parents[2]
WRONG = "wrong:ignores-the-top-level-error"
WRONG_PAGE = "wrong-ignores-the-top-level-error.md"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out")
    CliRunner().invoke(commands, ["run", "--case", "reassignment/004", "--case", "negotiation/004",
                                  "--client", "reference", "--client", WRONG,
                                  "--out", str(out)])  # fmt: skip
    return out / "results.json"


def published(results: Path, findings: str, tmp_path: Path) -> tuple[dict[str, str], str]:
    """(the pages by name, standard error)"""
    path = tmp_path / "findings.yaml"
    path.write_text(findings)
    out = tmp_path / "pages"
    words = ["publish", str(results), "--findings", str(path), "--out", str(out)]
    done = CliRunner().invoke(commands, words)
    assert done.exit_code == 0, done.output
    return {page.name: page.read_text() for page in out.iterdir()}, done.stderr


def test_the_pages_are_a_summary_the_cases_and_one_page_a_client(results, tmp_path):
    pages, _ = published(results, "", tmp_path)
    assert set(pages) == {"index.md", "cases.md", "reference.md", WRONG_PAGE}
    assert "2 clients played 2 cases. Of 4 results 4 could be judged, and 1 of these" in (
        " ".join(pages["index.md"].split())
    )
    assert f"| [{WRONG}]({WRONG_PAGE}) | 1 | python | 1 | 0 | 0 | 0 | 1 |" in pages["index.md"]
    groups = "[negotiation](cases.md#negotiation) | [reassignment](cases.md#reassignment)"
    assert f"| client | {groups} |" in pages["index.md"]
    assert f"| [{WRONG}]({WRONG_PAGE}) | 0/1 | 1/1 |" in pages["index.md"]
    assert "None." in pages["reference.md"]


def test_pages_of_an_earlier_run_are_replaced_and_other_files_are_kept(results, tmp_path):
    published(results, "", tmp_path)
    (tmp_path / "pages" / "mine.md").write_text("# Mine")
    run = json.loads(results.read_text())
    del run["clients"][WRONG]
    run["results"] = [each for each in run["results"] if each["client"] != WRONG]
    path = tmp_path / "results.json"
    path.write_text(json.dumps(run))
    pages, _ = published(path, "", tmp_path)
    assert set(pages) == {"index.md", "cases.md", "reference.md", "mine.md"}


def test_every_link_has_its_target(results, tmp_path):
    pages, _ = published(results, "", tmp_path)
    links = [link for text in pages.values() for link in re.findall(r"\]\((\S+?)\)", text)]
    assert f"{WRONG_PAGE}#reassignment-004" in links
    assert any(link.startswith("https://cwiki.apache.org/") for link in links)
    for link in links:
        name, _, anchor = link.partition("#")
        if link.startswith("https://"):
            continue  # a document; tests/kspec/test_sources.py
        if anchor:
            marks = (f'<a id="{anchor}"></a>', f"## {anchor}\n")
            assert any(mark in pages[name] for mark in marks), link
        else:
            assert name in pages, link


def test_a_failure_without_an_explanation_has_the_judges_words(results, tmp_path):
    pages, errors = published(results, "", tmp_path)
    (said,) = [e["why"] for e in json.loads(results.read_text())["results"] if e["client"] == WRONG
               and e["verdict"] == "fail"]  # fmt: skip
    assert said[:60] in pages[WRONG_PAGE]
    assert f"kspec run --client {WRONG} --case reassignment/004 -v\n" in pages[WRONG_PAGE]
    assert errors == f"findings.yaml has no explanation for {WRONG}, reassignment/004\n"


def test_an_explanation_takes_their_place_and_a_stale_one_is_named(results, tmp_path):
    place = "[{file: a/b.c, line: 7, release: '1.0'}]"
    text = (
        f"{WRONG!r}:\n"
        f"  reassignment/004: {{seen: It looks | away., source: {place}}}\n"
        "  negotiation/004: {seen: Gone., source: []}\n"
        "elsewhere: {framing/001: {seen: Not played., source: []}}\n"
    )
    pages, errors = published(results, text, tmp_path)
    page = pages[WRONG_PAGE]
    assert "\nSeverity: wrong result. It looks | away. Source: `a/b.c:7` (1.0).\n" in page
    assert '- <a id="reassignment-004"></a>**reassignment/004: ' in page
    assert "Required: *the call," in page
    assert "Gone." not in page
    assert errors == f"stale in findings.yaml: {WRONG} no longer fails negotiation/004\n"


def test_failures_with_one_explanation_share_a_section(results, tmp_path):
    run = json.loads(results.read_text())
    for each in run["results"]:
        each["verdict"] = "fail"
    path = tmp_path / "results.json"
    path.write_text(json.dumps(run))
    one = "{seen: It looks away., source: []}"
    text = f"{WRONG!r}: {{reassignment/004: {one}, negotiation/004: {one}}}\n"
    page = published(path, text, tmp_path)[0][WRONG_PAGE]
    assert page.count("It looks away.") == 1
    assert "### reassignment/004 and 1 more\n" in page, "its severity is known"
    assert "--case reassignment/004 --case negotiation/004 -v\n" in page


def test_the_summary_counts_causes_by_severity_and_the_worst_come_first(results, tmp_path):
    run = json.loads(results.read_text())
    severities = {"reassignment/004": "resources", "negotiation/004": "data loss"}
    for each in run["results"]:
        severity = severities[each["case"][: each["case"].index("-")]]
        each.update(verdict="fail", severity=severity, why=each["case"])
    path = tmp_path / "results.json"
    path.write_text(json.dumps(run))
    one = "{seen: It looks away., source: []}"
    text = f"{WRONG!r}: {{reassignment/004: {one}, negotiation/004: {one}}}\n"
    pages = published(path, text, tmp_path)[0]
    index = pages["index.md"]
    assert "and 4 of these failed, of 3 causes." in " ".join(index.split())
    both = f"[reference](reference.md), [{WRONG}]({WRONG_PAGE})"
    assert f"| data loss | 2 | 3 | {both} |" in index
    assert "| resources | 1 | 1 | [reference](reference.md) |" in index
    page = pages["reference.md"]
    assert page.index("Severity: data loss.") < page.index("Severity: resources.")


def test_options_and_raw_calls_are_printed(results, tmp_path):
    run = json.loads(results.read_text())
    run["clients"]["reference"]["options"] = {"retries": "1", "patience": "timeout_ms"}
    run["clients"][WRONG]["raw_calls"] = {"list_topics": "listTopicsV4"}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(run))
    pages, _ = published(path, "", tmp_path)
    assert "| retries | 1 |\n| patience | timeout_ms |\n" in pages["reference.md"]
    assert "| list_topics | listTopicsV4 |" in pages[WRONG_PAGE]


def test_an_error_of_an_adapter_is_not_published(results, tmp_path):
    run = json.loads(results.read_text())
    run["results"][0]["verdict"] = "error"
    path = tmp_path / "results.json"
    path.write_text(json.dumps(run))
    done = CliRunner().invoke(commands, ["publish", str(path), "--out", str(tmp_path)])
    assert isinstance(done.exception, KspecError)
    assert "the adapter failed, which is not a verdict: reference, " in str(done.exception)


def test_the_matrix_has_a_row_a_case_and_a_column_a_client(results, tmp_path):
    page = published(results, "", tmp_path)[0]["cases.md"]
    tables = [block.strip().splitlines() for block in re.split(r"^## \w+$", page, flags=re.M)[1:]]
    assert [table[0] for table in tables] == [f"| case | reference | {WRONG} |"] * 2
    rows = [row for table in tables for row in table[2:]]
    cross = f"[**✗**]({WRONG_PAGE}#reassignment-004)"
    assert [row.split(" | ")[-1].removesuffix(" |") for row in rows] == ["✓", cross]
    assert [row.split()[1] for row in rows] == ["negotiation/004", "reassignment/004"]


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "a: b",
        "a: {b: c}",
        "a: {b: {seen: c}}",
        "a: {b: {seen: c, source: [{file: d, line: e, release: f}]}}",
        "a: &b {c: *b",
        "\x00",
    ],
)
def test_invalid_findings_are_refused(text, tmp_path):
    path = tmp_path / "findings.yaml"
    path.write_text(text)
    with pytest.raises(KspecError, match=r"findings\.yaml: "):
        read_sentences(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}'])
def test_invalid_results_are_refused(text, tmp_path):
    path = tmp_path / "results.json"
    path.write_text(text)
    done = CliRunner().invoke(commands, ["publish", str(path), "--out", str(tmp_path)])
    assert isinstance(done.exception, KspecError)
    assert "not a results.json" in str(done.exception)


def test_explanations_name_known_clients_and_cases():
    numbers = {each.id[: len(each.group) + 4] for each in load_cases()}
    sentences = read_sentences(FINDINGS)
    assert set(sentences) <= {each.name for each in CLIENTS}
    assert {number for found in sentences.values() for number in found} <= numbers


# Packages that a client is built on, by what pins them. Sources of librdkafka 2.16.0, which
# confluent-kafka 2.16.1 is built with, are in no registry.
BUILT_ON = {
    "franz-go": {"kadm v1.19.0", "kmsg v1.15.0"},
    "@platformatic/kafka": {"@platformatic/dynamic-buffer 0.3.1"},
    "kafka-clients": {"snappy-java 1.1.10.7"},
    "kafka-clients-3.9": {"snappy-java 1.1.10.5"},
    "kafka-streams-4.3": {"kafka-clients 4.3.1", "snappy-java 1.1.10.7"},
    "confluent-kafka": {"librdkafka 2.15.0", "librdkafka 2.15.1"},
    "confluent-kafka-go": {"librdkafka 2.11.1"},
    "kcat": {"librdkafka 2.0.2"},
    "rskafka": {"rsasl 2.3.1"},
    "rdkafka": {"librdkafka 2.15.1"},
}


def test_every_finding_names_lines_of_the_release_that_is_played():
    releases = {each.name: {each.release} | BUILT_ON.get(each.name, set()) for each in CLIENTS}
    for client, found in read_sentences(FINDINGS).items():
        for number, written in found.items():
            assert written.seen.strip(), (client, number)
            assert written.source, (client, number)
            for place in written.source:
                assert place.release in releases[client], (client, number, place)
                assert place.line > 0
                assert re.fullmatch(r"[\w./-]+\.(js|py|go|java|rs|c|h)", place.file), place


def test_the_packages_that_clients_are_built_on_are_those_pinned():
    adapters = ROOT / "kspec" / "adapters"
    lock = json.loads((adapters / "node" / "package-lock.json").read_text())
    modules = (adapters / "go" / "go.mod").read_text()
    for package in BUILT_ON["@platformatic/kafka"]:
        name, release = package.split()
        assert lock["packages"][f"node_modules/{name}"]["version"] == release
    for package in BUILT_ON["franz-go"]:
        assert f"github.com/twmb/franz-go/pkg/{package}" in modules


@pytest.mark.slow
@pytest.mark.node
@pytest.mark.parametrize("name", ["kafkajs", "@platformatic/kafka"])
def test_the_lines_that_findings_name_are_in_the_installed_release(name):
    launch = program(client_named(name)).launch
    assert launch.cwd is not None
    for number, written in read_sentences(FINDINGS)[name].items():
        for place in written.source:
            package = place.release.rpartition(" ")[0] or name
            path = launch.cwd / "node_modules" / package / place.file
            line = path.read_text().splitlines()[place.line - 1]
            assert re.search(r"\w", line), (number, place)


def test_the_judges_words_lose_the_machines_folders(results, tmp_path):
    run = json.loads(results.read_text())
    for each in run["results"]:
        each["why"] = "TypeError at (file:///srv/me/.cache/a-b/x.js:52:31) and /usr/lib/y.rs:1 a/b"
    path = tmp_path / "results.json"
    path.write_text(json.dumps(run))
    page = published(path, "", tmp_path)[0][WRONG_PAGE]
    assert "`TypeError at (x.js:52:31) and y.rs:1 a/b`" in page


def test_notes_are_not_advice(results, tmp_path):
    run = json.loads(results.read_text())
    for each in run["results"]:
        each["verdict"] = "non-strict"
        for variant in each["variants"]:
            for finding in variant["findings"]:
                finding.update(level="may", holds=False)
        each["variants"][0]["findings"][0].update(level="should", says="waits a while")
    path = tmp_path / "results.json"
    path.write_text(json.dumps(run))
    page = published(path, "", tmp_path)[0][WRONG_PAGE]
    advice = page[page.index("## Recommendations") :]
    assert set(re.findall(r"\| ([^|]*) \|$", advice, re.M)[2:]) == {"waits a while"}
