"""What docs/how-to/fuzz-your-client.md tells of released clients: each of its files is a case that
a mock cluster can play, and is named there; one of them is played."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kspec.client_catalog import CLIENTS
from kspec.clientfuzz.cli import fuzz
from kspec.clientfuzz.clients.judge import FINDINGS, OBSERVATIONS
from kspec.clientfuzz.clients.reproducer import read_replay
from mockbroker.faults import faults_of
from tests.support.full import either

FOLDER = Path("kspec/clientfuzz/findings")
PAGE = Path("docs/how-to/fuzz-your-client.md")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_finding_can_be_played_and_is_documented(path):
    known = read_replay(path)
    assert known.verdict in FINDINGS.keys() | OBSERVATIONS.keys()
    assert known.client in {client.name for client in CLIENTS}
    (rule,) = faults_of([known.case.rule()])
    assert rule.api == known.case.api_key
    assert len(known.case.changes) + bool(known.case.delivery) <= 1, "it was not made small"
    assert str(path) in PAGE.read_text("utf-8")
    assert path.stat().st_size < 8192


@pytest.mark.slow
def test_kafka_python_a_bounded_run_that_finds_nothing_grave_and_repeats_itself(
    tmp_path, monkeypatch
):
    """Of a seed: the same cases, and the process lives through all of them."""
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    cases, reports = either(40, sampled=16), []
    for number in range(2):
        out = tmp_path / str(number)
        arguments = ["--client", "kafka-python", "--seed", "4", "--cases", str(cases)]
        arguments += ["--api", "46,60"]
        done = CliRunner().invoke(fuzz, [*arguments, "--out", str(out)])
        assert done.exit_code in (0, 1), done.output
        reports.append(json.loads((out / "report.json").read_text()))
    for report in reports:
        assert report["cases"] == cases
        assert report["restarts"] == 0
        assert {"crash", "hang", "memory", "stuck"}.isdisjoint(report["verdicts"])
        assert report["verdicts"]["fine"] > cases // 2
    first, second = ({(row["case"], row["cause"]) for row in each["found"]} for each in reports)
    assert first == second


@pytest.mark.slow
def test_kafka_python_takes_an_answer_about_no_topic_for_success(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    replay = str(FOLDER / "kafka-python-topics-of-an-empty-answer.json")
    done = CliRunner().invoke(fuzz, ["--client", "kafka-python", "--replay", replay])
    assert done.exit_code == 1, done.output
    assert done.output.startswith("wrong: ")
    assert "same cause" in done.output
