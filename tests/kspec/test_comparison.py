"""Two runs compared: every kind of change, and which clients are taken for the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kspec.cli import commands
from kspec.judge import Verdict
from kspec.report import as_json
from kspec.results import Greeting, Report
from kspec.runner.files import load_cases
from tests.kspec.made_report import made

KINDS = {
    ("pass", "fail"): "broken",
    ("unsupported", "fail"): "broken",
    ("fail", "unsupported"): "no longer judged",
    ("pass", "unsupported"): "no longer judged",
    ("fail", "non-strict"): "fixed",
    ("unsupported", "pass"): "newly judged",
    ("non-strict", "pass"): "stricter",
    ("pass", "non-strict"): "laxer",
    ("pass", "informational"): None,
    ("fail", "fail"): None,
}


def write(path: Path, clients: Mapping[str, str], verdicts: Sequence[Verdict]) -> list[str]:
    """Write the results.json of a run in which each client has the same verdicts."""
    cases = load_cases()[: len(verdicts)]
    report = Report(
        clients=list(clients),
        cases=cases,
        results=[
            made(name, case, verdict)
            for name in clients
            for case, verdict in zip(cases, verdicts, strict=True)
        ],
        greetings={name: Greeting(name, version) for name, version in clients.items()},
    )
    path.write_text(as_json(report))
    return [case.id for case in cases]


def compare(tmp_path: Path, *options: str) -> Result:
    words = ["compare", str(tmp_path / "old.json"), str(tmp_path / "new.json"), *options]
    return CliRunner().invoke(commands, words)


def test_every_change_of_a_verdict_has_its_kind(tmp_path):
    before, after = zip(*KINDS, strict=True)
    cases = write(tmp_path / "old.json", {"franz-go@1.0": "v1.0"}, before)
    write(tmp_path / "new.json", {"franz-go": "v1.1"}, after)
    done = compare(tmp_path, "--json")
    assert done.exit_code == 1, "something is broken"
    (found,) = json.loads(done.output)
    assert (found["old"], found["new"], found["compared"]) == ("franz-go@1.0", "franz-go", 10)
    assert {each["case"]: each["kind"] for each in found["changes"]} == {
        case: kind for case, kind in zip(cases, KINDS.values(), strict=True) if kind
    }
    head, *rows = compare(tmp_path).output.splitlines()
    assert head == (
        "franz-go@1.0 v1.0 -> franz-go v1.1, 10 cases: 2 broken, 2 no longer judged, 1 fixed,"
        " 1 newly judged, 1 stricter, 1 laxer"
    )
    assert rows[0].split()[0] == "broken"


def test_improvements_exit_with_0(tmp_path):
    write(tmp_path / "old.json", {"a": "1"}, ["fail", "non-strict"])
    write(tmp_path / "new.json", {"b": "2"}, ["pass", "pass"])
    done = compare(tmp_path)
    assert done.exit_code == 0
    assert done.output.startswith("a 1 -> b 2, 2 cases: 1 fixed, 1 stricter\n")


def test_clients_are_paired_whatever_their_release(tmp_path):
    write(tmp_path / "old.json", {"@platformatic/kafka": "1", "x@2": "2", "gone": "1"}, ["pass"])
    write(tmp_path / "new.json", {"@platformatic/kafka@3": "3", "x": "4", "come": "1"}, ["pass"])
    lines = compare(tmp_path).output.splitlines()
    assert lines == [
        "@platformatic/kafka 1 -> @platformatic/kafka@3, 1 case: the same",
        "x@2 -> x 4, 1 case: the same",
    ]


def test_runs_without_a_common_client_are_refused(tmp_path):
    write(tmp_path / "old.json", {"a": "1", "b": "1"}, ["pass"])
    write(tmp_path / "new.json", {"c": "1"}, ["pass"])
    with pytest.raises(Exception, match="no client in common"):
        CliRunner().invoke(
            commands,
            ["compare", str(tmp_path / "old.json"), str(tmp_path / "new.json")],
            standalone_mode=False,
            catch_exceptions=False,
        )
