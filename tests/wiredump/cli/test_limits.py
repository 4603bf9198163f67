"""What wiredump does not read because of limits of its own is named as that, by every command."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import click
import pytest

from kproto.capture import container
from kproto.capture.packets import ethernet_frame
from tests.wiredump.cli.test_damage import COMMANDS, run
from tests.wiredump.steps.arrangements import Arrangement
from wiredump.cli import cli
from wiredump.model import Anomaly
from wiredump.sources import open_sources

LIMIT = "reassembly-limit"


def limited_commands() -> set[str]:
    """The commands that read sources and have limits, whatever commands there are."""
    context = click.Context(cli)
    found = set()
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        options = {each.name for each in command.params}
        assert ("memory" in options) == ("max_decompressed" in options), name
        if "memory" in options:
            found.add(name)
    return found


def test_every_command_with_limits_is_in_these_tests() -> None:
    assert limited_commands() - {"spark"} <= set(COMMANDS)


@pytest.fixture
def reversed_(tmp_path: Path) -> Path:
    """More segments in reverse than a memory of 1 MB keeps: 257 bytes each, in a quarter of it."""
    path = tmp_path / "reversed.pcap"
    path.write_bytes(Arrangement(segment=1, order="reversed").capture(1_200))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted(limited_commands() - {"spark"}))
def test_bytes_beyond_the_reassembly_limit_are_not_missing(
    command: str, reversed_: Path, tmp_path: Path
) -> None:
    more = ["--memory", "1MB"]
    result = run(command, reversed_, *more, out=tmp_path / "out")
    assert "bytes beyond the reassembly limit: more arrived behind them than is kept" in (
        result.stderr
    )
    assert not re.search("[0-9] missing byte", result.stderr)
    without = run(command, reversed_, out=tmp_path / "without")
    assert "reassembly limit" not in without.stderr
    assert not re.search("[0-9] missing byte", without.stderr)


def test_the_account_has_them(reversed_: Path) -> None:
    sources = open_sources([str(reversed_)], memory=1_000_000)
    items = list(sources)
    beyond = sources.account[f"damage: {LIMIT}"]
    waiting = 1_000_000 // 4 // 257
    assert beyond == 1_200 - waiting - 1
    assert sources.account["missing"] == 0
    named = [each for each in items if isinstance(each, Anomaly) and each.kind == LIMIT]
    assert sum(each.missing for each in named) == beyond
    assert sum(each.size for each in named) == beyond  # they were captured later


@pytest.mark.parametrize("command", sorted(limited_commands() - {"spark"}))
def test_a_capture_beyond_the_limit_of_decompressed_bytes(command: str, tmp_path: Path) -> None:
    small = Arrangement(answers="in order").packets(20)
    start = 1_700_000_000 * 10**9
    packets = [ethernet_frame(bytes(1_000))] * 3_000
    records = [
        container.pcap_record(start + at, each)
        for at, each in enumerate([*(each for each in small), *packets])
    ]
    path = tmp_path / "bomb.pcap.gz"
    path.write_bytes(gzip.compress(container.pcap_header(1) + b"".join(records)))
    limited = run(command, path, "--max-decompressed", "1MB", out=tmp_path / "out")
    assert "1 file beyond the limit of decompressed bytes" in limited.stderr
    whole = run(command, path, out=tmp_path / "whole")
    assert "limit of decompressed bytes" not in whole.stderr


def test_a_journal_beyond_the_limit_of_decompressed_bytes(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl.gz"
    line = (
        b'{"sequence": 0, "timestamp_ns": 0, "broker_id": 1, "connection_id": 0, '
        b'"direction": "event", "event": "connected"}\n'
    )
    path.write_bytes(gzip.compress(line * 40_000))
    result = run("show", path, "--max-decompressed", "1MB", out=tmp_path)
    assert "1 file beyond the limit of decompressed bytes" in result.stderr
