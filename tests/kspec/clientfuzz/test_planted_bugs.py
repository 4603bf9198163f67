"""A client with a bug planted in it: the bug is found, made small, and found again by a replay; in
the same client without a bug nothing is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kspec.clientfuzz.cli import fuzz
from mockbroker.faults import read_faults
from tests.support.full import drawn

PROGRAM = Path(__file__).with_name("planted_client.py")
BUGS = {
    "crash": ("crash", "null-forbidden", "null-forbidden,text"),
    "hang": ("hang", "size", "size"),
    "memory": ("memory", "length-huge", "length-huge"),
    "cpu": ("cpu", "varint-long", "varint-long"),
    "wrong": ("wrong", "cut", "cut"),
    "stuck": ("stuck", "correlation-id", "correlation-id"),
}
"""Bug -> what it is found as, by which kind, and the kinds to try."""


def command(bug: str) -> list[str]:
    return ["--command", f"{sys.executable} {PROGRAM} {bug}", "--timeout", "300"]


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(fuzz, arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


@pytest.mark.slow
@pytest.mark.parametrize("bug", drawn("client bugs", sorted(BUGS), few=2))
def test_a_planted_bug_is_found_made_small_and_found_again(bug, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    verdict, kind, kinds = BUGS[bug]
    found = ["--seed", "3", "--cases", "8", "--kind", kinds, "--hang-after", "2"]
    code, output = run(*command(bug), *found, "--out", str(tmp_path))
    assert code == 1, output
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["cases"] == 8
    rows = [row for row in report["found"] if row["finding"] and row["steady"]]
    # A busy machine may add hangs: two seconds are short.
    assert {row["verdict"] for row in rows} <= {verdict, "hang"}
    rows = [row for row in rows if row["verdict"] == verdict]
    assert rows
    for row in rows:
        case = json.loads((Path(row["reproducer"]) / "case.json").read_text())
        assert len(case["mutation"]["changes"]) == 1, "it was not made small"
        assert not case["persistent"]
        assert case["mutation"]["kind"] == kind
        faults = (Path(row["reproducer"]) / "faults.json").read_text()
        assert len(read_faults(faults, source="faults.json")) == 1
    replayed = str(Path(rows[0]["reproducer"]) / "case.json")
    code, output = run(*command(bug), "--replay", replayed, "--hang-after", "2")
    assert code == 1, output
    assert output.startswith(f"{verdict}: ")
    assert "same cause" in output
    code, output = run(*command(""), "--replay", replayed, "--hang-after", "2")
    assert code == 0, output
    assert "different from the finding" in output


@pytest.mark.slow
def test_a_slip_is_told_with_its_place_and_fails_no_run(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    kinds = ["--kind", "text-invalid", "--cases", "8", "--out", str(tmp_path)]
    code, output = run(*command("slip"), *kinds)
    assert code == 0, output
    (row,) = json.loads((tmp_path / "report.json").read_text())["found"]
    assert (row["verdict"], row["finding"]) == ("internal-error", False)
    assert row["at"].endswith("planted_client.py _misread")


@pytest.mark.slow
def test_nothing_is_found_in_a_client_without_a_bug_and_it_is_never_restarted(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    code, output = run(*command(""), "--cases", "60", "--seed", "5", "--out", str(tmp_path))
    assert code == 0, output
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["restarts"] == 0
    assert [row for row in report["found"] if row["finding"]] == []
    assert report["verdicts"].get("fine", 0) >= 50


def test_what_makes_no_sense_is_one_line_and_exit_2(tmp_path):
    case = tmp_path / "case.json"
    case.write_text("{}")
    for arguments, said in (
        ((), "--client NAME or --command CMD"),
        (("--client", "x"), "'x' is not a known client"),
        (("--client", "kproto", "--command", "y"), "give either --client NAME"),
        (("--client", "kproto", "--api", "nonsense"), "is not an API of the dialect kafka"),
        (("--client", "kproto", "--kind", "nonsense"), "unknown nonsense"),
        (("--client", "kproto", "--replay", str(case)), "its format is not"),
        (("--client", "kproto", "--replay", str(tmp_path / "none")), "No such file"),
        (("--client", "kproto", "--cases", "0"), "not in the range"),
        (("--command", "/nowhere/at-all", "--cases", "1"), "there is no program"),
        (("--command", "node 'x", "--cases", "1"), "No closing quotation"),
    ):
        code, output = run(*arguments)
        assert code == 2, arguments
        assert said in output, arguments
        assert "Traceback" not in output


def test_the_lists():
    code, output = run("--list-clients")
    assert code == 0
    assert "franz-go" in output
    code, output = run("--list-kinds")
    assert code == 0
    assert "null-forbidden" in output
