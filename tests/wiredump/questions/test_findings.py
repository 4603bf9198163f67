"""``wiredump ask`` without a question: what is wrong comes first, and nothing is if all is well."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.full import drawn, either
from tests.support.toolchain import require_module
from tests.wiredump.questions.incident import Client, incident, quiet
from tests.wiredump.questions.situations import SITUATIONS, situation
from tests.wiredump.unread_captures import merged
from wiredump.cli import cli
from wiredump.questions.database import FolderTables
from wiredump.questions.partition_errors import partition_errors
from wiredump.questions.saved import FINDINGS, questions


def ask(*arguments: str) -> list[dict[str, Any]]:
    require_module("duckdb")
    result = CliRunner().invoke(cli, ["ask", *arguments, "--format", "json"])
    assert result.exit_code == 0, (result.output, result.exception)
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.slow
def test_what_was_planted_is_found(rng: random.Random, tmp_path: Path) -> None:
    """In incidents of all sizes, among the first ten findings."""
    path = tmp_path / "a.pcap"
    for seed in [rng.getrandbits(30) for _ in range(either(40, 2))]:
        made = incident(seed)
        path.write_bytes(made.capture)
        findings = ask(FINDINGS, str(path))
        first = [row["finding"] for row in findings if row["rank"] <= 10]
        for beginnings in made.planted:
            assert any(each.startswith(tuple(beginnings)) for each in first), (seed, first)
        assert all(row["command"].startswith("wiredump ") for row in findings)
    rows = ask(str(path))
    assert [row for row in rows if row["question"] == FINDINGS] == [
        {"question": FINDINGS, **row} for row in findings
    ]
    assert rows[0]["question"] == FINDINGS


@pytest.mark.slow
@pytest.mark.parametrize("name", drawn("situations", [*SITUATIONS], 4))
def test_the_first_finding_names_what_is_to_blame(
    name: str, rng: random.Random, tmp_path: Path
) -> None:
    """And no other one names anything else."""
    path = tmp_path / "a.pcap"
    for seed in [rng.getrandbits(30) for _ in range(either(10, 1))]:
        made = situation(name, seed)
        path.write_bytes(made.capture)
        findings = [row["finding"] for row in ask(FINDINGS, str(path))]
        assert findings, seed
        assert findings[0].startswith(made.found[0]), seed
        assert all(each.startswith(made.found) for each in findings), (seed, findings)


@pytest.mark.slow
def test_a_quiet_capture_has_no_finding(rng: random.Random, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    for seed in [rng.getrandbits(30) for _ in range(either(40, 2))]:
        clients = quiet(random.Random(seed))
        path.write_bytes(merged(*(client.line for client in clients)))
        assert not ask(FINDINGS, str(path)), seed
    shown = CliRunner().invoke(cli, ["ask", str(path)]).stdout
    assert shown.startswith("findings: What is wrong, most important first?\nNothing.\n")
    assert all(f"\n{name}: " in f"\n{shown}" for name in questions())


def test_a_join_is_late_beyond_the_rebalance_timeout(tmp_path: Path) -> None:
    """The session time-out, which the request has, too, is no limit of its wait."""
    path = tmp_path / "a.pcap"
    member = Client(1, "member")
    member.rebalance(1, seconds=30)
    member.rebalance(2, seconds=70)
    path.write_bytes(merged(member.line))
    (broker,) = ask("slow-brokers", str(path))
    assert broker["late"] == 1
    assert 10_000 <= broker["late_max_ms"] < 11_000


def test_errors_have_the_topic_and_partition_that_they_are_about() -> None:
    part = {"index": 1, "errorCode": 6}
    body = {
        "responses": [{"name": "t", "partitionResponses": [part, {"index": 2, "errorCode": 0}]}]
    }
    assert partition_errors(json.dumps(body)) == ["NOT_LEADER_OR_FOLLOWER/t/1"]
    assert partition_errors('{"errorCode": 47, "producerId": -1}') == ["INVALID_PRODUCER_EPOCH//"]
    topics = [{"name": "a", "errorCode": 3, "partitions": []}, {"name": "b", "errorCode": 0}]
    assert partition_errors(json.dumps({"topics": topics})) == ["UNKNOWN_TOPIC_OR_PARTITION/a/"]
    assert partition_errors(None) == partition_errors("{") == []


@pytest.mark.slow
def test_findings_about_tables_of_spark(tmp_path: Path, monkeypatch: Any) -> None:
    """A namespace or a URI is a source, although no file has that name. (The engine is DuckDB here;
    ``test_views`` asks Spark.)"""
    require_module("duckdb")
    (tmp_path / "a.pcap").write_bytes(incident(1).capture)
    folder = str(tmp_path / "tables")
    made = CliRunner().invoke(cli, ["table", str(tmp_path / "a.pcap"), "--out", folder])
    assert made.exit_code == 0, made.output
    read: list[str] = []

    @contextmanager
    def tables(sources: tuple[str, ...], *about: Any) -> Iterator[FolderTables]:
        read.extend(sources)
        yield FolderTables(folder)

    monkeypatch.setattr("wiredump.cli.answering.spark_tables", tables)
    for source in ("lake.kafka", "s3a://lake/kafka"):
        assert ask(source, "--spark") == ask(folder)
    assert read == ["lake.kafka", "s3a://lake/kafka"]
    refused = CliRunner().invoke(cli, ["ask", "slow-broker", "lake.kafka", "--spark"])
    assert "slow-brokers" in str(refused.exception)
