"""``wiredump compact`` about tables of Delta and Iceberg: what it has Spark do, and what it says of
the answers. (``test_lake`` compacts tables on Spark.)"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from wiredump.cli import cli

THERE = ("requests", "frames")
METRICS = {"numFilesAdded": 1, "numFilesRemoved": 9, "filesRemoved": {"totalSize": 700}}
COUNTS = {
    "rewritten_data_files_count": 9, "added_data_files_count": 1, "rewritten_bytes_count": 700,
    "failed_data_files_count": 0,
}  # fmt: skip


class Session:
    """Answers as the formats do, and keeps the statements with the settings of then."""

    def __init__(self) -> None:
        self.conf, self.read, self.catalog = Settings(), self, self
        self.statements: list[tuple[str, dict[str, Any]]] = []
        self.failures: list[str] = []

    def format(self, form: str) -> Session:
        assert form == "delta"
        return self

    def load(self, path: str) -> Session:
        if path.rpartition("/")[2] not in THERE:
            raise RuntimeError(f"[PATH_NOT_FOUND] Path does not exist: {path}")
        return self

    columns = ("run",)

    def tableExists(self, name: str) -> bool:
        return name.rpartition(".")[2] in THERE

    def sql(self, statement: str) -> Session:
        self.statements.append((statement, dict(self.conf)))
        if self.failures:
            raise RuntimeError(self.failures.pop())
        return self

    def collect(self) -> list[dict[str, Any]]:
        is_delta = self.statements[-1][0].startswith("OPTIMIZE")
        return [{"path": None, "metrics": METRICS} if is_delta else COUNTS]


class Settings(dict[str, Any]):
    def set(self, name: str, value: Any) -> None:
        self[name] = value

    def unset(self, name: str) -> None:
        del self[name]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    session = Session()

    @contextmanager
    def started(master: str | None, remote: str | None) -> Iterator[Session]:
        assert (master, remote) == ("local", None)
        yield session

    monkeypatch.setattr("wiredump.cli.compact.spark_session", started)
    return session


def compacted(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(cli, ["compact", *arguments, "--master", "local", "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_delta(session: Session) -> None:
    """Files below half of the target are small while it runs; a setting of the session stays."""
    setting = "spark.databricks.delta.optimize"
    session.conf.set(f"{setting}.maxFileSize", "5")
    made = {"merged": 9, "into": 1, "bytes": 700, "changed": []}
    wanted = ["--table-format", "delta", "--target-bytes", "1000", "--expire", "180h"]
    found = compacted("s3://lake/kafka", *wanted)
    assert found == {"out": "s3://lake/kafka", "tables": dict.fromkeys(sorted(THERE), made)}
    then = {f"{setting}.maxFileSize": 1000, f"{setting}.minFileSize": 500}
    assert sorted(session.statements, key=str) == [
        (statement.format(f"delta.`s3a://lake/kafka/{name}`"), then)
        for statement in ("OPTIMIZE {}", "VACUUM {} RETAIN 180.000000 HOURS")
        for name in sorted(THERE)
    ]
    assert session.conf == {f"{setting}.maxFileSize": "5"}


def test_a_table_that_another_writer_changes(session: Session) -> None:
    """It is compacted again, and only for this reason."""
    session.failures = ["[DELTA_CONCURRENT_DELETE_READ] ..."] * 3
    assert compacted("/lake", "--table-format", "delta")["tables"].keys() == set(THERE)
    assert len(session.statements) == len(THERE) + 3
    session.failures = ["o1.sql\n: conflicted with another concurrent Iceberg operation"] * 20
    arguments = ["compact", "lake.x", "--table-format", "iceberg", "--master", "local"]
    assert "concurrent Iceberg" in str(CliRunner().invoke(cli, arguments).exception)
    session.failures = ["the disk is full"]
    assert "the disk is full" in str(CliRunner().invoke(cli, arguments).exception)
    assert not session.failures


def test_iceberg(session: Session) -> None:
    wanted = ["--table-format", "iceberg", "--target-bytes", "1000", "--expire", "1h"]
    before = datetime.now(UTC)
    found = compacted("lake.prod.kafka", *wanted)
    assert {name: each["merged"] for name, each in found["tables"].items()} == {
        "requests": 9, "frames": 9,
    }  # fmt: skip
    statements = sorted(statement for statement, _ in session.statements)
    assert len(statements) == 2 * len(THERE)
    for name, statement in zip(sorted(THERE), statements, strict=False):
        assert statement.startswith("CALL lake.system.expire_snapshots(")
        assert f"table => 'prod.kafka.{name}'" in statement
        (older,) = re.findall(r"older_than => TIMESTAMP '(.*)'", statement)
        assert before <= datetime.fromisoformat(older) + timedelta(hours=1) <= datetime.now(UTC)
    for name, statement in zip(sorted(THERE), statements[len(THERE) :], strict=True):
        assert statement.startswith("CALL lake.system.rewrite_data_files(")
        assert f"table => 'prod.kafka.{name}'" in statement
        options = re.findall(r"'([\w-]+)', '(\d+)'", statement)
        assert dict(options) == {
            "target-file-size-bytes": "1000", "min-file-size-bytes": "500", "min-input-files": "2",
        }  # fmt: skip


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_no_tables(session: Session, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr("tests.wiredump.spark.test_lake_compaction.THERE", ())
    arguments = ["compact", "lake.none", "--table-format", form, "--master", "local"]
    refused = CliRunner().invoke(cli, arguments)
    assert "lake.none has no tables" in str(refused.exception)
    assert not session.statements


@pytest.mark.parametrize("option", ["--master", "--remote", "--expire"])
def test_options_of_tables(tmp_path: Path, option: str) -> None:
    refused = CliRunner().invoke(cli, ["compact", str(tmp_path), option, "168h"])
    assert refused.exit_code == 2
    assert "need --table-format delta or iceberg" in refused.output
