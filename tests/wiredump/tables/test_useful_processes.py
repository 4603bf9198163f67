"""How many processes a capture is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.wiredump.spark.made_up import capture
from wiredump import native
from wiredump.cli import cli
from wiredump.tables import useful_processes as module
from wiredump.tables.work import Work


@pytest.fixture
def kilobyte(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process for each of these."""
    monkeypatch.setattr(module, "_BYTES_A_PROCESS", 1 << 10)


def made(folder: Path, connections: int, exchanges: int = 4) -> str:
    place = folder / f"{connections}.pcap"
    place.write_bytes(capture(4, connections=connections, exchanges=exchanges, kind="pcap"))
    return str(place)


def useful_processes(paths: list[str], most: int, **more: Any) -> int:
    tables = more.pop("tables", ("requests", "batches"))
    work = Work(out="", paths=dict(enumerate(paths)), tables=tables, **more)
    return module.useful_processes(work, most)


@pytest.mark.usefixtures("kilobyte")
def test_one_for_a_kilobyte(tmp_path: Path) -> None:
    path = made(tmp_path, 5)
    size = Path(path).stat().st_size >> 10
    assert size > 3
    assert [useful_processes([path], most) for most in (1, 2, 3)] == [1, 2, 3]
    assert useful_processes([path], size + 5) == size
    assert useful_processes([path, path], 2 * size + 5) >= 2 * size


def test_one_for_small_captures(tmp_path: Path) -> None:
    assert useful_processes([made(tmp_path, 5)], 8) == 1


@pytest.mark.usefixtures("kilobyte")
def test_many_for_a_single_connection(tmp_path: Path) -> None:
    assert useful_processes([made(tmp_path, 1, exchanges=90)], 2) == 2


@pytest.mark.usefixtures("kilobyte")
def test_one_where_nothing_is_decoded(tmp_path: Path) -> None:
    path = made(tmp_path, 5)
    for more in ({"bodies": False}, {"tables": ("frames",)}):
        with native.using(native.built()):
            expected = 1 if native.built() is not None else 3
            assert useful_processes([path], 3, **more) == expected
        with native.using(None):
            assert useful_processes([path], 3, **more) == 3
    assert useful_processes([path], 3, tables=("frames", "packets")) == 3
    assert useful_processes([path], 3, tables=("frames",), keylog="keys") == 3


@pytest.mark.usefixtures("kilobyte")
def test_journals_do_not_count(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_text('{"sequence": 1}\n' * 4096)
    assert useful_processes([str(journal)], 4) == 1
    assert useful_processes(["-"], 4) == 4, "which is refused later"


def test_rotated_captures_are_for_one(tmp_path: Path) -> None:
    arguments = [
        "table",
        made(tmp_path, 5),
        "--out",
        str(tmp_path / "out"),
        "--rotated",
        "--jobs=2",
    ]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    assert "--rotated and --jobs cannot be combined" in str(result.exception)
