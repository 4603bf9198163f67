"""Saved questions about captures of real brokers: their answers are what the exchanges say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from kproto import dialect, error_codes
from tests.captures.reading import file_of, read
from tests.support.toolchain import require_module
from wiredump.cli import cli
from wiredump.questions.saved import questions

KAFKA = dialect("kafka")
EVERYDAY, ADMIN = "kafka-4.4.0-everyday-1", "kafka-4.4.0-admin"


def run(*arguments: str) -> str:
    require_module("duckdb")
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("tables") / "everyday"
    run("table", str(file_of(EVERYDAY)), "--out", str(out))
    return str(out)


def rows(name: str, source: str) -> list[dict[str, Any]]:
    text = run("ask", name, source, "--format", "json", "--limit", "100000")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(questions()))
def test_a_folder_and_its_capture_give_one_answer(name: str, folder: str) -> None:
    assert rows(name, folder) == rows(name, str(file_of(EVERYDAY)))


def codes(value: Any) -> Iterator[int]:
    """Every error code in a body's JSON."""
    if isinstance(value, list):
        for each in value:
            yield from codes(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name.endswith("rrorCode"):
                yield each
            yield from codes(each)


@pytest.mark.slow
def test_errors(folder: str) -> None:
    expected: Counter[tuple[str, str | None]] = Counter()
    for exchange in read(EVERYDAY).exchanges:
        response, version = exchange.response, exchange.response_version
        if response is not None and response.whole and version is not None:
            _, body = KAFKA.decode_response(
                response.raw, api_key=exchange.api_key, api_version=version
            )
            names = {
                error_codes.name(code) for code in codes(json.loads(body.to_json(version)))
            } - {"NONE"}
            expected.update((name, exchange.client_id) for name in names)
    found: Counter[tuple[str, str | None]] = Counter()
    for row in rows("errors", folder):
        found[row["error"], row["client_id"]] += row["responses"]
    assert found == expected
    assert found.total() > 5


def test_transactions(folder: str) -> None:
    """Each client of the capture's program commits one transaction and aborts another."""
    found = Counter((row["client_id"], row["outcome"]) for row in rows("transactions", folder))
    clients = {client for client, _ in found}
    assert clients >= {"confluent", "kafka-python", "aiokafka"}
    for client in clients:
        assert found[client, "committed"] == found[client, "aborted"] == 1


@pytest.mark.slow
def test_rebalances(folder: str) -> None:
    found = {(row["group_id"], row["protocol"]) for row in rows("rebalances", folder)}
    assert ("everyday-confluent-classic", "classic") in found
    assert ("everyday-confluent-consumer", "consumer") in found
    for row in rows("rebalances", folder):
        assert row["members"] >= 1
        assert row["took_ms"] >= 0


@pytest.mark.slow
def test_bytes_by_client_are_those_of_the_connections(folder: str) -> None:
    talkers = rows("top-talkers", folder)
    query = "select sum(request_bytes) s, sum(response_bytes) r from connections"
    (total,) = (json.loads(run("sql", folder, query, "--format", "json")),)
    assert sum(row["sent_bytes"] for row in talkers) == total["s"] > 0
    assert sum(row["received_bytes"] for row in talkers) == total["r"] > 0


def test_reassignments_and_elections() -> None:
    source = str(file_of(ADMIN))
    outcomes = Counter(row["outcome"] for row in rows("reassignments", source))
    assert outcomes["completed"] >= 5
    assert outcomes["refused"] >= 10
    assert {row["error"] for row in rows("elections", source)} == {"ELECTION_NOT_NEEDED"}


@pytest.mark.parametrize("name", sorted(questions()))
def test_a_question_says_what_it_asks(name: str) -> None:
    question = questions()[name]
    assert question.text.endswith("?")
    assert question.query.startswith(("SELECT", "WITH"))
    assert question.text in run("ask")
    assert run("ask", name, "--show") == question.query + "\n"


def test_an_answer_is_cut_at_the_limit_and_says_so(folder: str) -> None:
    require_module("duckdb")
    result = CliRunner().invoke(cli, ["ask", "versions", folder, "--limit", "2"])
    assert "more rows (--limit)" in result.stderr
    assert len(result.stdout.rstrip().splitlines()) == 4 + 2  # question, note, blank, heads
