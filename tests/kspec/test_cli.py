"""The command line: what it runs, writes and exits with; and the report it writes."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner

from kproto.errors import AbsentError
from kproto.journal import read_journal
from kspec.cli import commands, main
from tests.kspec.test_report import Page

FAST = ["--case", "reassignment/004", "--case", "negotiation/004", "--jobs", "8"]


def invoke(*arguments: object):
    return CliRunner().invoke(commands, [str(each) for each in arguments])


@pytest.mark.slow
def test_a_run_writes_json_junit_a_page_and_journals(tmp_path):
    out = tmp_path / "out"
    done = invoke("run", *FAST, "--client", "reference", "--client",
                  "wrong:ignores-the-top-level-error", "--out", out)  # fmt: skip
    assert done.exit_code == 1, done.output
    assert "fail          wrong:ignores-the-top-level-error reassignment/004" in done.output
    results = json.loads((out / "results.json").read_text())
    verdicts = {(each["client"], each["case"][:16]): each["verdict"] for each in results["results"]}
    assert verdicts == {
        ("reference", "negotiation/004-"): "pass",
        ("reference", "reassignment/004"): "pass",
        ("wrong:ignores-the-top-level-error", "negotiation/004-"): "pass",
        ("wrong:ignores-the-top-level-error", "reassignment/004"): "fail",
    }
    failed = next(each for each in results["results"] if each["verdict"] == "fail")
    broken = [each for each in failed["variants"][0]["findings"] if each["holds"] is False]
    assert broken[0]["says"] == "the call, or the partition, fails"
    suites = ET.parse(out / "junit.xml").getroot()
    assert [suite.get("failures") for suite in suites] == ["0", "1"]
    (failure,) = suites.iter("failure")
    assert "AlterPartitionReassignments" in (failure.text or "")
    journals = sorted((out / "journals").glob("*/*.jsonl"))
    assert len(journals) == 4
    with journals[0].open() as lines:
        assert any(entry.api_key == 18 for entry in read_journal(lines))


@pytest.mark.slow
def test_the_page_is_whole_and_its_links_lead_somewhere(tmp_path):
    invoke(
        "run", *FAST, "--client", "wrong:claims-success", "--client", "reference", "--out", tmp_path
    )
    page = Page((tmp_path / "report.html").read_text())  # checks links within the page
    verdicts = [link for link in page.links if "--" in link and link.startswith("#")]
    assert len(verdicts) == 4, "two cases of two clients"
    pages = [link for link in page.links if not link.startswith(("#", "https://"))]
    assert pages == ["clients/wrong-claims-success.html", "clients/reference.html"]
    for link in pages:
        Page((tmp_path / link).read_text())


def test_a_baseline_lets_known_failures_pass_and_tells_stale_ones(tmp_path):
    baseline = tmp_path / "known.json"
    run = ["run", *FAST, "--client", "wrong:ignores-the-top-level-error"]
    assert invoke(*run, "--write-baseline", baseline).exit_code == 1
    known = json.loads(baseline.read_text())
    ((client, (_,)),) = known.items()
    assert invoke(*run, "--baseline", baseline).exit_code == 0
    known[client].append("negotiation/004-an-api-the-broker-lacks")
    baseline.write_text(json.dumps(known))
    done = invoke(*run, "--baseline", baseline)
    assert done.exit_code == 0
    assert "stale in the baseline" in done.output
    baseline.write_text("{}")
    assert invoke(*run, "--baseline", baseline).exit_code == 1


def test_a_baseline_that_is_written_again_keeps_what_was_not_run(tmp_path):
    baseline = tmp_path / "known.json"
    known = {"elsewhere": ["x/001-y"], "reference": ["negotiation/004-an-api-the-broker-lacks"]}
    baseline.write_text(json.dumps(known))
    invoke("run", *FAST, "--client", "reference", "--write-baseline", baseline)
    assert json.loads(baseline.read_text()) == {"elsewhere": ["x/001-y"]}


def test_an_adapter_that_fails_is_an_error_of_the_run(tmp_path):
    source = tmp_path / "adapter.py"
    source.write_text(
        'import sys\nprint(\'{"client": "c"}\', flush=True)\n'
        'for line in sys.stdin: print(\'{"adapter_error": "mine"}\', flush=True)\n'
    )
    out = tmp_path / "out"
    done = invoke("run", *FAST, "--adapter", f"{sys.executable} {source}", "--out", str(out))
    assert done.exit_code == 3, done.output
    assert "which is not a verdict on the client" in done.output
    assert not re.search(r"^fail ", done.output, re.M)
    (result, *_) = json.loads((out / "results.json").read_text())["results"]
    assert (result["verdict"], result["why"]) == ("error", "the adapter failed: mine")
    assert '<error message="the adapter failed: mine"/>' in (out / "junit.xml").read_text()


def test_a_run_without_a_client_leaves_an_earlier_run(tmp_path, monkeypatch):
    (tmp_path / "results.json").write_text("an earlier run")

    def install(client):
        raise AbsentError("there is no network")

    monkeypatch.setattr("kspec.runner.clients.install", install)
    done = invoke("run", *FAST, "--client", "kcat", "--out", tmp_path)
    assert done.exit_code == 3
    assert "kcat is absent: there is no network" in done.output
    assert (tmp_path / "results.json").read_text() == "an earlier run"


@pytest.mark.slow
def test_an_adapter_of_ones_own_is_run():
    command = f"{sys.executable} -m kspec.defects claims-success"
    done = invoke("run", *FAST, "--adapter", command)
    assert done.exit_code == 1, done.output
    assert re.search(r"fail +adapter +reassignment/004", done.output)


def test_a_command_is_judged_by_the_wire_alone():
    call = f"{sys.executable} -m kproto admin topics --bootstrap-server {{bootstrap}} --list"
    done = invoke("run", "--case", "negotiation/001", "--command", call, "-v")
    assert done.exit_code == 0, done.output
    assert "judged by its traffic alone" in done.output


def test_cases_are_left_out():
    done = invoke("run", *FAST, "--exclude", "reassignment", "--client", "reference", "-v")
    assert done.exit_code == 0, done.output
    assert "negotiation/004" in done.output
    assert "reassignment/004" not in done.output


@pytest.mark.slow
@pytest.mark.parametrize("required", [["--require-coverage", "1"], ["--strict"]])
def test_a_client_that_does_less_falls_short_of_the_coverage(tmp_path, required):
    """A program that sends nothing breaks no rule, which must not count for it."""
    call = f"{sys.executable} -c pass {{bootstrap}}"
    run = ["run", "--case", "negotiation/004", "--command", call, "--out", tmp_path]
    done = invoke(*run)
    assert done.exit_code == 0
    assert "1 case unsupported by command: the client sent no request" in done.output
    done = invoke(*run, *required)
    assert done.exit_code == 1, done.output
    assert "of the cases were judged" in done.output
    (client,) = json.loads((tmp_path / "results.json").read_text())["clients"].values()
    assert client["coverage"] == {
        group: {"judged": 0, "played": 1} for group in ("all", "negotiation")
    }
    assert invoke("run", *FAST, "--client", "reference", "--strict").exit_code == 0


def test_a_report_has_the_name_that_an_adapter_gives_itself():
    command = f"{sys.executable} -m kspec.defects"
    done = invoke("run", "--case", "negotiation/004", "--adapter", command)
    assert re.search(r"adapter +reference", done.output), done.output


@pytest.mark.slow
def test_lists():
    cases = json.loads(invoke("list", "--json").output)
    assert {"id", "title", "source", "wrong"} <= set(cases[0])
    assert [each["id"] for each in json.loads(invoke("list", "--json", "framing").output)] == [
        each["id"] for each in cases if each["group"] == "framing"
    ]
    assert "franz-go" in invoke("clients").output
    assert "claims-success" in invoke("misbehaviours").output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "nowhere"], "no case matches 'nowhere'"),
        (["run", "--client", "telnet"], "'telnet' is not a known client"),
        (["run", "--client", "wrong:telnet"], "is not a defect"),
        (["run", "--case", "framing/999"], "no case matches"),
        (["run", "--case", "framin/003"], "did you mean framing/003 or "),
        (["run", "--exclude", "framing/999"], "no case matches"),
        (["run", "--case", "framing/001", "--exclude", "framing"], "every case is excluded"),
        (["run", "--client", "kcat@1.7.0"], "kcat has one release here"),
        (["run", "--client", "telnet@1"], "'telnet@1' is not a known client"),
        (["run", "--adapter", "no-such-program x"], "there is no program 'no-such-program'"),
        (["run", "--adapter", "'"], "No closing quotation"),
        (["run", "--adapter", "/"], "'/' is a folder, not a program"),
        (["run", "--command", ""], "--command names no program"),
        (["run", "--command", f"{sys.executable} -V"], "{bootstrap} is missing"),
        (["run", "--adapter", __file__], "is not executable; run chmod +x"),
        (["run", "--cases", str(Path(__file__).parent)], "has no cases; a case is a file"),
        (["report", "/", "--client", "mine", "--for-maintainers"], "there is no /results.json"),
        (["compare", __file__, __file__], "not a results.json"),
        (["compare", "/", "/"], "there is no /results.json"),
    ],
)
def test_bad_usage_is_one_line_and_two(monkeypatch, capsys, arguments, words):
    monkeypatch.setattr(sys, "argv", ["kspec", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


MALFORMED = """
import json, sys
print('{"client": "c", "version": "1"}', flush=True)
for line in sys.stdin:
    op = json.loads(line)["op"]
    if op == "list_topics":
        sys.stdout.buffer.write(BYTES)
    else:
        sys.stdout.buffer.write(b'{"ok": true, "result": null}' + bytes([10]))
    sys.stdout.flush()
"""
OTHER = """\
title: TITLE
source: KIP-1
about: a
steps:
  - call: CALL
must:
  - {says: it succeeds, result: CALL, success: true}
wrong: {by: claims-success}
"""


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (b'{"ok": true, "result": ["foo"]}\n{"ok": true, "result": null}\n', "answers no call"),
        (b'{"ok": true, "result": 5}\n', "Expected array, got int"),
        (b'{"ok": true, "resu', "the output ends in the middle of the answer to list_topics"),
        (b'{"ok": true, "raw": "\xff\x1b[31m"}\n', "not UTF-8"),
        (b'{"ok": true, "result": ' + b"[" * 9000 + b"]" * 9000 + b"}\n", "nested too deeply"),
        (b"x" * (17 << 20) + b"\n", "a line of more than 16777216 bytes"),
        (b"\n", "not JSON"),
    ],
    ids=["twice", "shape", "half", "utf-8", "deep", "huge", "empty"],
)
def test_a_malformed_line_is_an_error_of_its_case_and_the_others_go_on(tmp_path, written, told):
    adapter = tmp_path / "adapter.py"
    code = MALFORMED.replace("BYTES", repr(written) if len(written) < 99_999 else "b'x' * (17<<20)")
    if not written.endswith(b"\n"):
        code = code.replace(
            "    sys.stdout.flush()", "    sys.stdout.flush()\n    if op == 'list_topics': break"
        )
    adapter.write_text(code)
    folder = tmp_path / "x"
    folder.mkdir()
    for number, call in enumerate(("list_topics", "list_groups"), 1):
        text = OTHER.replace("TITLE", call).replace("CALL", call)
        (folder / f"00{number}-x.yaml").write_text(text)
    out = tmp_path / "out"
    done = invoke("run", "--cases", str(tmp_path), "--jobs", "1", "--out", str(out),
                  "--adapter", f"{sys.executable} {adapter}")  # fmt: skip
    assert done.exit_code == 3, done.output
    results = json.loads((out / "results.json").read_text())["results"]
    assert [each["verdict"] for each in results] == ["error", "pass"]
    assert told in results[0]["why"]
    assert results[0]["why"].isprintable()
    assert len(results[0]["why"]) < 1200


def test_a_page_that_cannot_be_made_leaves_the_others(tmp_path, monkeypatch):
    def as_junit(report):
        raise ValueError("no such time")

    monkeypatch.setattr("kspec.cli.as_junit", as_junit)
    out = tmp_path / "out"
    done = invoke("run", *FAST, "--client", "reference", "--out", str(out))
    assert done.exit_code == 3, done.output
    assert "junit.xml is not written: kspec failed: ValueError: no such time at" in done.output
    assert (out / "results.json").exists()
    assert (out / "report.html").exists()
    assert not (out / "junit.xml").exists()


def test_a_file_that_cannot_be_written_leaves_the_folder_as_it_was(tmp_path):
    out = tmp_path / "out"
    (out / "junit.xml").mkdir(parents=True)
    done = invoke("run", *FAST, "--client", "reference", "--out", str(out))
    assert done.exit_code == 3, done.output
    assert f"{out} is not written: {out}/junit.xml: not a regular file" in done.output
    assert [each.name for each in out.iterdir()] == ["junit.xml"]


def test_a_client_that_is_absent_fails_the_run(tmp_path, monkeypatch):
    """It is a run that did not do what it is for."""
    from kproto.errors import AbsentError
    from kspec.runner import clients

    def lacks(*_arguments: object, **_options: object) -> None:
        raise AbsentError("java is absent")

    monkeypatch.setattr(clients, "install", lacks)
    done = invoke("run", *FAST, "--client", "kafka-python")
    assert done.exit_code == 3, done.output
    assert "kafka-python is absent: java is absent" in done.output
