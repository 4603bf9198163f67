"""A capture that is cut or lacks bytes: every command says so in one line on standard error, with
counts, and changes neither its output nor its exit status."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.captures.reading import read
from tests.captures.test_captures import uncompressed
from tests.captures.test_damaged import snapped
from tests.captures.worse import HEADER, records_of
from wiredump.cli import cli
from wiredump.model import Anomaly
from wiredump.skipped import bytes_of
from wiredump.sources import open_sources

NAME = "kafka-4.4.0-admin"
LINE = "wiredump: incomplete capture: "
COUNT = "SELECT count(*) FROM requests"


def run(command: str, capture: Path, *more: str, out: Path) -> Result:
    arguments = {
        "show": ["show", str(capture), "--json"],
        "table": ["table", str(capture), "--out", str(out), "--json"],
        "audit": ["audit", str(capture), "--to", "kafka-4.4", "--json"],
        "report": ["report", str(capture), "--out", str(out)],
        "ask": ["ask", "errors", str(capture), "--format", "json"],
        "sql": ["sql", str(capture), COUNT, "--format", "json"],
        "extract": ["extract", str(capture), "--connection", "1", "--out", str(out)],
    }
    return CliRunner().invoke(cli, [*arguments[command], *more])


COMMANDS = ("show", "table", "audit", "report", "ask", "sql", "extract")


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    path = tmp_path / "cut.pcap"
    path.write_bytes(uncompressed(NAME)[:-20])
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_was_cut(command: str, cut: Path, tmp_path: Path) -> None:
    result = run(command, cut, out=tmp_path / "out")
    assert result.exit_code == 0
    (line,) = [each for each in result.stderr.splitlines() if each.startswith(LINE)]
    assert "1 truncated file" in line
    assert "snap length" not in line
    assert LINE not in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_a_whole_capture_is_not_mentioned(command: str, tmp_path: Path) -> None:
    path = tmp_path / "whole.pcap"
    path.write_bytes(uncompressed("mock-4.4"))
    result = run(command, path, out=tmp_path / "out")
    assert result.exit_code == 0
    assert LINE not in result.stderr


@pytest.mark.usefixtures("every_process")
@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_snap_length(jobs: str, tmp_path: Path) -> None:
    """The counts are those of the anomalies, and the line says what to do."""
    path = tmp_path / "snapped.pcap"
    path.write_bytes(snapped(NAME, 96))
    sources = open_sources([str(path)])
    anomalies = [item for item in sources if isinstance(item, Anomaly)]
    kinds = Counter(each.kind for each in anomalies)
    snaps = sum(each.reason.endswith(": snaplen") for each in anomalies)
    missing = sources.account["missing"]
    assert min(snaps, missing, kinds["cut"]) > 0
    result = run("table", path, "--jobs", jobs, out=tmp_path / "out")
    assert result.exit_code == 0
    assert f"{snaps:,} packets cut by a snap length, {missing:,} missing bytes" in result.stderr
    assert f"{kinds['cut']:,} incomplete frames" in result.stderr
    assert "`tcpdump -s 0`" in result.stderr
    assert result.stderr.count(LINE) == 1
    found = json.loads(result.stdout)
    assert found["bytes"]["missing"] == missing
    assert [*found] == ["out", "rows", "bytes", "skipped", "late", "run"]
    assert [*found["bytes"]] == ["payload", "frames", "retransmitted", "anomalies", "missing"]


def test_lost_packets(tmp_path: Path) -> None:
    capture = uncompressed(NAME)
    path = tmp_path / "lossy.pcap"
    records = [each for number, each in enumerate(records_of(capture)) if number % 40 != 20]
    path.write_bytes(capture[:HEADER] + b"".join(records))
    result = run("sql", path, out=tmp_path / "out")
    assert " missing bytes" in result.stderr
    assert "snap length" not in result.stderr


def test_tables_have_no_row_of_it(cut: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("table", cut, out=out)
    query = "SELECT what FROM account WHERE bytes IS NOT NULL"
    result = CliRunner().invoke(cli, ["sql", str(out), query, "--format", "json"])
    names = {json.loads(line)["what"] for line in result.stdout.splitlines()}
    assert names == {*bytes_of(read("mock-4.4").account), "lost: truncated"}
