"""An audit by several processes is that of one, whatever they read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.captures.reading import file_of
from tests.wiredump.spark.made_up import capture
from wiredump.cli import cli
from wiredump.readers.share import Share
from wiredump.tables import jobs as table_jobs

LOG = next((Path(__file__).parents[2] / "captures/request_logs").glob("*.log*"))


def told(*arguments: str) -> tuple[int, Any]:
    result = CliRunner().invoke(cli, ["audit", *arguments, "--to", "kafka-4.1", "--json"])
    assert result.exit_code in (0, 1), result.output
    return result.exit_code, json.loads(result.stdout)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares one after the other: starting processes takes seconds."""
    monkeypatch.setattr(
        table_jobs,
        "share_out",
        lambda task, jobs, progress: [task(Share(each, jobs), progress) for each in range(jobs)],
    )


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process", "every_process")
@pytest.mark.parametrize("jobs", ["2", "5"])
def test_captures_and_a_log(jobs: str, tmp_path: Path) -> None:
    torn = tmp_path / "a.pcap"
    torn.write_bytes(capture(8, connections=6, exchanges=6))
    names = ("kafka-2.4.1-everyday-1", "kafka-4.4.0-admin")
    for paths in ([str(file_of(name)) for name in names], [str(torn), str(LOG)]):
        one = told(*paths)
        assert one[1]["clients"]
        assert told(*paths, "--jobs", jobs) == one


@pytest.mark.slow
@pytest.mark.usefixtures("every_process")
def test_processes_of_their_own() -> None:
    path = str(file_of("kafka-2.4.1-everyday-1"))
    assert told(path, "--jobs", "2") == told(path)


def test_what_cannot_be_shared_out_is_said() -> None:
    result = CliRunner().invoke(cli, ["audit", "-", "--to", "kafka-4.1", "--jobs", "2"])
    assert result.exception is not None
    assert "only one process can read standard input" in str(result.exception)
