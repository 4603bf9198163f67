"""``--on-bad-file``: files of which nothing can be read, beside a capture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.wiredump.spark.fake_session import FakeSession
from tests.wiredump.spark.fake_session import session as session
from tests.wiredump.spark.knowing import knowing
from tests.wiredump.spark.pipeline import load, single
from wiredump.spark import run
from wiredump.spark.bad_files import BadFileError, OnBadFile
from wiredump.tables.reading import InputError, TableFolder

TABLES_HERE = ("connections", "requests", "frames")


@pytest.fixture
def captures(tmp_path: Path) -> list[str]:
    """A capture between junk, a file that does not exist, and a folder."""
    folder = tmp_path / "in"
    (folder / "folder.pcap").mkdir(parents=True)
    (folder / "a.pcap").write_bytes(knowing())
    (folder / "junk.pcap").write_bytes(bytes(5000))
    return [str(folder / name) for name in ("junk.pcap", "a.pcap", "none.pcap", "folder.pcap")]


@pytest.mark.parametrize("bad", ["junk.pcap", "none.pcap", "folder.pcap"])
def test_nothing_is_written(
    session: FakeSession, captures: list[str], tmp_path: Path, bad: str
) -> None:
    chosen = [each for each in captures if Path(each).name in (bad, "a.pcap")]
    with pytest.raises(BadFileError, match=f"{bad}: nothing could be read: "):
        run(session, chosen, out=str(tmp_path / "out"), tables=TABLES_HERE)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        TableFolder(str(tmp_path / "out"))


@pytest.mark.parametrize("policy", ["skip", "quarantine"])
def test_the_others_are_written(
    session: FakeSession, captures: list[str], tmp_path: Path, policy: OnBadFile
) -> None:
    """And the same run again, once with a file that was moved."""
    expected = single(captures[1:2], tmp_path / "one", tables=("requests",))
    out = tmp_path / "out"
    for _ in range(2):
        made = run(
            session, captures, out=str(out), tables=TABLES_HERE, on_bad_file=policy, run="mine"  # type: ignore[arg-type]
        )  # fmt: skip
        assert set(made.unread) == {each for each in captures if "a.pcap" not in each}
        found = load(out, ("requests",))["requests"]
        assert len(found) == len(expected["requests"]) == made.rows["requests"]
    moved = [json.loads(each.read_bytes()) for each in out.glob("_quarantine/*.json")]
    assert len(moved) == (3 if policy == "quarantine" else 0)
    assert Path(captures[0]).exists() == (policy == "skip")
    assert len(list(out.glob("_quarantine/*-junk.pcap"))) == len(moved) // 3
