"""The published results: a run becomes data, and the data become the pages of the run."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec import structs

from kspec.cli import commands
from kspec.cli.compare import read_run
from kspec.cli.publish import FINDINGS, read_sentences
from kspec.cli.report import excerpts_in
from kspec.report import as_markdown, findings_of
from kspec.report.conformance_pages import Sentences, Written, as_pages, unwritten
from kspec.runner.files import load_cases
from scripts.conformance_results import (
    MAINTAINERS,
    RESULTS,
    add,
    main,
    pages,
    published,
    read,
    write,
)
from tests.docs.blocks import blocks_of, commands_of
from tests.docs.shell import check

CLIENT = MAINTAINERS[0]
WRONG = "wrong:ignores-the-top-level-error"
EXPLAINED: Sentences = {CLIENT: {"reassignment/004": Written("It looks away.", [])}}


the_data = cache(read)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose wrong client has the name of one with a page for maintainers."""
    out = tmp_path_factory.mktemp("out")
    cases = ("reassignment/004", "reassignment/010", "negotiation/004", "framing/001")
    words = [word for case in cases for word in ("--case", case)]
    CliRunner().invoke(commands, ["run", *words, "--client", "reference", "--client", WRONG,
                                  "--once", "--out", str(out)])  # fmt: skip
    results = out / "results.json"
    results.write_text(results.read_text().replace(WRONG, CLIENT))
    (out / "journals" / "wrong-ignores-the-top-level-error").rename(out / "journals" / CLIENT)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("had", [("reference",), ("reference", CLIENT)])
def test_a_run_of_some_cases_or_of_a_new_client_is_added_to_the_data(
    had: tuple[str, ...], folder: Path, tmp_path: Path
) -> None:
    run = read_run(folder / "results.json")
    excerpts = excerpts_in(folder)
    clients = {name: run.clients[name] for name in had}
    some = [
        each for each in run.results if each.client in had and not each.case.startswith("framing/")
    ]
    write(structs.replace(run, results=some, clients=clients), {}, excerpts, tmp_path)
    rest = [
        each
        for each in run.results
        if each.client not in had or each.case.startswith(("framing/", "reassignment/004"))
    ]
    add(structs.replace(run, results=rest), {}, excerpts, tmp_path)
    again, _ = read(tmp_path)
    write(run, {}, excerpts, tmp_path / "whole")
    whole, _ = read(tmp_path / "whole")
    assert as_pages(again, {}) == as_pages(whole, {})


@pytest.mark.slow
@pytest.mark.parametrize("sentences", [{}, EXPLAINED], ids=["judge", "explained"])
def test_the_pages_of_the_data_are_those_of_the_run(folder, sentences, tmp_path):
    run = read_run(folder / "results.json")
    assert [each.verdict for each in run.results].count("fail") == 2
    write(run, sentences, excerpts_in(folder), tmp_path)
    again, excerpts = read(tmp_path)
    assert as_pages(again, sentences) == as_pages(run, sentences)
    cases = {each.id: each for each in load_cases()}
    text = as_markdown(findings_of(CLIENT, again, sentences, cases, excerpts))
    assert "**On the wire.**" in text
    assert text == as_markdown(findings_of(CLIENT, run, sentences, cases, excerpts_in(folder)))


@pytest.mark.slow
def test_every_verdict_and_variant_survives(folder: Path, tmp_path: Path) -> None:
    """One result of each verdict, one of them unsteady, and a failure of one variant of several."""
    document = json.loads((folder / "results.json").read_text())
    mine = [each for each in document["results"] if each["client"] == CLIENT]
    verdicts = ("fail", "non-strict", "informational", "unsupported")
    for each, verdict in zip(mine, verdicts, strict=True):
        each["verdict"] = verdict
        for variant in each["variants"]:
            variant["verdict"] = "pass"
    mine[0] |= {"severity": "resources", "why": "more than /srv/me/x.py `allows`", "unsteady": "w"}
    several = next(each for each in load_cases() if each.id == mine[0]["case"]).variants
    rule = {"level": "must_not", "says": "retries: at once", "holds": True, "evidence": ""}
    mine[0]["variants"] = [
        {"name": each.name, "verdict": "pass", "findings": []} for each in several
    ]
    mine[0]["variants"][-1] |= {"verdict": "fail", "findings": [rule]}
    mine[1]["variants"][0]["findings"] = [rule | {"level": "should_not", "says": "a; b"}]
    document["clients"][CLIENT] |= {
        "options": {"retries": "1"}, "raw_calls": {"poll": "p"},
        "verdicts": dict.fromkeys(verdicts, 1),
    }  # fmt: skip
    document["absent"] = {"kcat": "no kcat"}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(document))
    run = read_run(path)
    write(run, {}, lambda _: (), tmp_path / "data")
    again, _ = read(tmp_path / "data")
    assert as_pages(again, {}) == as_pages(run, {})
    assert "/srv" not in (tmp_path / "data" / f"{CLIENT}.json").read_text()


@pytest.mark.slow
def test_data_of_an_earlier_run_are_replaced(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "gone.json").write_text("{}")
    write(read_run(folder / "results.json"), {}, lambda _: (), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "run.json", "reference.json", f"{CLIENT}.json"
    }  # fmt: skip


def test_the_published_data_have_the_form_that_is_written(tmp_path: Path) -> None:
    run, excerpts = the_data()
    write(run, read_sentences(FINDINGS), excerpts, tmp_path)
    for path in RESULTS.iterdir():
        assert path.read_text() == (tmp_path / path.name).read_text(), path.name


@pytest.mark.slow
def test_every_published_failure_is_described() -> None:
    run, _ = the_data()
    sentences = read_sentences(FINDINGS)
    missing = set(unwritten(run, sentences))
    for client in run.clients:
        for case, each in run.with_verdict(client, "fail"):
            assert bool(each.why) == ((client, case.number) in missing), (client, case.number)


@pytest.mark.slow
def test_every_link_of_a_page_has_its_target() -> None:
    for path, text in pages().items():
        for name, anchor in re.findall(r"\]\(([\w.-]+\.md)(?:#(\S+?))?\)", text):
            target = pages()[str(Path(path).with_name(name))]
            marks = (f'<a id="{anchor}"></a>', f"## {anchor}\n")
            assert not anchor or any(mark in target for mark in marks), (path, name, anchor)


@pytest.mark.slow
def test_the_commands_of_the_pages_exist() -> None:
    commands = 0
    for text in pages().values():
        for block in blocks_of(text):
            if block.language == "sh":
                for line, _ in commands_of(block):
                    check(line)
                    commands += 1
    assert commands > 200


def test_known_failures_are_a_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["known"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert known == published()
    assert len(known["kafka-python"]) == pages()[
        "reference/conformance/kafka-python.md"
    ].count('<a id="')  # fmt: skip
    assert main(["publish"]) == 2
