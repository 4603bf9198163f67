"""The questions about a real Kafka with groups, transactions and TLS: the page has the answers."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tests.wiredump.questions.operations import CAPTURE, tables_of_operations
from wiredump.cli import cli
from wiredump.questions.saved import questions

PAGE: Final = Path(__file__).parents[3] / "docs" / "how-to" / "ask-a-capture.md"
SHOWN: Final = re.findall(
    r"```sh\nwiredump (ask (\S+) operations\.pcapng\.zst[^\n]*)\n```\n\n```text\n(.*?)```",
    PAGE.read_text(encoding="utf-8"),
    re.DOTALL,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tables_of_operations(tmp_path_factory.mktemp("tables"))


def printed(folder: str, *arguments: str) -> str:
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == 0, (result.output, result.exception)
    return "\n".join(line.rstrip() for line in result.stdout.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize(("command", "question", "text"), SHOWN, ids=[each[1] for each in SHOWN])
def test_the_page_has_the_answer(folder: str, command: str, question: str, text: str) -> None:
    """Most blocks leave out the question, which the page asks in its own words."""
    words = [folder if word.endswith(".zst") else word for word in shlex.split(command)]
    assert printed(folder, *words).endswith(text.rstrip())


def test_the_page_has_every_question() -> None:
    assert Counter(each[1] for each in SHOWN) == dict.fromkeys(questions(), 1)


def rows(folder: str, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(f"{folder}/{table}").to_pylist()
    return found


def test_tls_was_decrypted_and_the_account_closes(folder: str) -> None:
    account = {row["what"]: row["bytes"] for row in rows(folder, "account")}
    assert account["tls"] > 10_000
    assert account["payload"] == sum(
        account[what] for what in ("frames", "retransmitted", "anomalies", "tls")
    )
    assert "tls" not in {row["protocol"] for row in rows(folder, "connections")}


def test_what_the_programs_did_is_what_the_tables_say(folder: str) -> None:
    outcomes = Counter(
        (row["transactional_id"], row["client_id"], row["outcome"])
        for row in rows(folder, "transactions")
    )
    assert outcomes == {
        ("billing-1", "billing", "committed"): 1, ("billing-1", "billing", "aborted"): 1,
        ("ledger", "ledger-old", "fenced"): 2, ("ledger", "ledger-new", "committed"): 1,
        ("archive", "archive", "open"): 1,
    }  # fmt: skip
    groups = [
        (row["group_id"], row["protocol"], row["members"], row["members_joined"],
         row["members_left"], row["outcome"])
        for row in rows(folder, "groups")
    ]  # fmt: skip
    assert sorted(groups) == [
        ("analytics", "consumer", 1, 0, 1, "completed"),
        ("analytics", "consumer", 2, 2, 0, "completed"),
        ("shipping", "classic", 1, 0, 1, "completed"),
        ("shipping", "classic", 1, 1, 0, "completed"),
        ("shipping", "classic", 2, 1, 0, "completed"),
    ]
    throttled = {row["client_id"] for row in rows(folder, "requests") if row["throttle_time_ms"]}
    assert throttled == {"batch-loader"}
    bodies = [
        json.loads(row["body"])["throttleTimeMs"]
        for row in rows(folder, "bodies")
        if row["message"] == "ProduceResponse" and row["version"] >= 1
    ]
    assert sum(bodies) == sum(row["throttle_time_ms"] or 0 for row in rows(folder, "requests"))


@pytest.mark.slow
def test_several_processes_make_the_same_rows(folder: str, tmp_path: Path) -> None:
    out = str(tmp_path / "tables")
    tables = ("--tables", "groups,transactions", "--jobs", "2")
    made = CliRunner().invoke(cli, ["table", str(CAPTURE), "--out", out, *tables])
    assert made.exit_code == 0, made.output
    for table in ("groups", "transactions"):
        assert sorted(map(repr, rows(out, table))) == sorted(map(repr, rows(folder, table)))
