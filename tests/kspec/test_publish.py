"""The page that is published: it says what the results say, and what words it lacks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kspec.catalog import CLIENTS
from kspec.catalog import client as client_named
from kspec.cli import commands
from kspec.cli.publish import FINDINGS, read_sentences
from kspec.errors import KspecError
from kspec.runner.files import load_cases
from tests.kspec.which import program

ROOT = Path(__file__).resolve().parents[2]
WRONG = "wrong:ignores-the-top-level-error"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out")
    CliRunner().invoke(commands, ["run", "--case", "reassignment/004", "--case", "negotiation/004",
                                  "--client", "reference", "--client", WRONG,
                                  "--out", str(out)])  # fmt: skip
    return out / "results.json"


def published(results: Path, findings: str, tmp_path: Path):
    path = tmp_path / "findings.yaml"
    path.write_text(findings)
    done = CliRunner().invoke(commands, ["publish", str(results), "--findings", str(path)])
    assert done.exit_code == 0, done.output
    return done


def test_a_failure_without_a_sentence_is_told_in_the_judges_words(results, tmp_path):
    done = published(results, "", tmp_path)
    (said,) = [e["why"] for e in json.loads(results.read_text())["results"] if e["client"] == WRONG
               and e["verdict"] == "fail"]  # fmt: skip
    assert said[:60] in done.stdout
    assert f"`kspec run --case reassignment/004 --client {WRONG} -v`" in done.stdout
    assert done.stderr == f"findings.yaml has no explanation for {WRONG}, reassignment/004\n"


def test_a_sentence_takes_their_place_and_a_stale_one_is_told(results, tmp_path):
    place = "[{file: a/b.c, line: 7, release: '1.0'}]"
    text = (
        f"{WRONG!r}:\n"
        f"  reassignment/004: {{seen: It looks | away., source: {place}}}\n"
        "  negotiation/004: {seen: Gone., source: []}\n"
        "elsewhere: {framing/001: {seen: Not played., source: []}}\n"
    )
    done = published(results, text, tmp_path)
    words = "It looks | away. Source: `a/b.c:7` (1.0). Required: *the call,"
    assert f"- **{WRONG} 1**: {words}" in done.stdout
    assert "Gone." not in done.stdout
    assert done.stderr == f"stale in findings.yaml: {WRONG} no longer fails negotiation/004\n"


def test_options_and_raw_calls_are_printed(results, tmp_path):
    run = json.loads(results.read_text())
    run["clients"]["reference"]["options"] = {"retries": "1", "patience": "timeout_ms"}
    run["clients"][WRONG]["raw_calls"] = {"list_topics": "listTopicsV4"}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(run))
    page = published(path, "", tmp_path).stdout
    assert "| reference | retries: 1, patience: timeout_ms |" in page
    assert f"| {WRONG} | list_topics | listTopicsV4 |" in page


def test_an_error_of_an_adapter_is_not_published(results, tmp_path):
    run = json.loads(results.read_text())
    run["results"][0]["verdict"] = "error"
    path = tmp_path / "results.json"
    path.write_text(json.dumps(run))
    done = CliRunner().invoke(commands, ["publish", str(path)])
    assert isinstance(done.exception, KspecError)
    assert "the adapter failed, which is no verdict: reference, " in str(done.exception)


def test_the_matrix_has_a_row_a_case_and_a_column_a_client(results, tmp_path):
    matrix = published(results, "", tmp_path).stdout.split("## Matrix")[1].split("✓ meets")[0]
    head, _, *rows = matrix.strip().splitlines()
    assert head == f"|  | reference | {WRONG} |"
    assert [re.findall(r"\| (\S+) (?=\|)", row)[-1] for row in rows] == ["✓", "**✗**"]
    numbers = [row.split()[1].strip("[") for row in rows]
    assert numbers == ["negotiation/004", "reassignment/004"]


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
def test_what_are_no_findings_is_told(text, tmp_path):
    path = tmp_path / "findings.yaml"
    path.write_text(text)
    with pytest.raises(KspecError, match=r"findings\.yaml: "):
        read_sentences(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}'])
def test_what_are_no_results_is_told(text, tmp_path):
    path = tmp_path / "results.json"
    path.write_text(text)
    done = CliRunner().invoke(commands, ["publish", str(path)])
    assert isinstance(done.exception, KspecError)
    assert "not a results.json" in str(done.exception)


def test_the_suites_sentences_are_about_clients_and_cases_that_there_are():
    numbers = {each.id[: len(each.group) + 4] for each in load_cases()}
    sentences = read_sentences(FINDINGS)
    assert set(sentences) <= {each.name for each in CLIENTS}
    assert {number for found in sentences.values() for number in found} <= numbers


# Packages that a client is built on, by what pins them. Sources of librdkafka 2.16.0, which
# confluent-kafka 2.16.1 is built with, are in no registry.
BUILT_ON = {
    "franz-go": {"kadm v1.19.0", "kmsg v1.15.0"},
    "@platformatic/kafka": {"@platformatic/dynamic-buffer 0.3.1"},
    "confluent-kafka": {"librdkafka 2.15.1"},
    "kcat": {"librdkafka 2.0.2"},
    "rskafka": {"rsasl 2.3.1"},
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


def test_what_is_published_is_what_is_known():
    """Both are written by `make conformance`."""
    page = (ROOT / "docs" / "conformance.md").read_text()
    shown = set(re.findall(r"kspec run --case (\S+) --client (\S+) -v", page))
    known = json.loads((ROOT / "tests" / "kspec" / "known.json").read_text())
    listed = {(case.split("-")[0], client) for client, cases in known.items() for case in cases}
    assert shown == listed


def test_the_judges_words_lose_the_machines_folders(results, tmp_path):
    run = json.loads(results.read_text())
    for each in run["results"]:
        each["why"] = "TypeError at (file:///srv/me/.cache/a-b/x.js:52:31) and /usr/lib/y.rs:1 a/b"
    path = tmp_path / "results.json"
    path.write_text(json.dumps(run))
    assert "`TypeError at (x.js:52:31) and y.rs:1 a/b`" in published(path, "", tmp_path).stdout


def test_what_is_noted_and_not_asked_for_is_no_advice(results, tmp_path):
    run = json.loads(results.read_text())
    for each in run["results"]:
        each["verdict"] = "non-strict"
        for variant in each["variants"]:
            for finding in variant["findings"]:
                finding.update(level="may", holds=False)
        each["variants"][0]["findings"][0].update(level="should", says="waits a while")
    path = tmp_path / "results.json"
    path.write_text(json.dumps(run))
    page = published(path, "", tmp_path).stdout
    advice = page[page.index("## Recommendations") :]
    assert set(re.findall(r"\| ([^|]*) \|$", advice, re.M)[2:]) == {"waits a while"}
