"""``--on-bad-file``: files of which nothing can be read, beside a capture."""

from __future__ import annotations

import errno
import importlib
import json
import shutil
from pathlib import Path

import pytest

from tests.support.toolchain import require_module
from tests.wiredump.commands import wiredump
from tests.wiredump.spark import made_up
from tests.wiredump.spark.fake_session import FakeSession
from tests.wiredump.spark.fake_session import session as session
from tests.wiredump.spark.fake_streams import start
from tests.wiredump.spark.knowing import knowing
from tests.wiredump.spark.pipeline import load, single
from tests.wiredump.spark.rotating import (
    difference,
    follow,
    one_process,
    rotate,
    so_far,
    to_the_end,
)
from wiredump.spark import rotation, run
from wiredump.spark.bad_files import BadFileError, OnBadFile
from wiredump.spark.rotation import FaultError
from wiredump.spark.stream_folder import StreamFolder
from wiredump.spark.streaming import Stream
from wiredump.tables.reading import InputError, TableFolder

TABLES_HERE = ("connections", "requests", "frames")
JOURNAL = b'{"sequence":1}\n'


@pytest.fixture
def captures(tmp_path: Path) -> list[str]:
    """A capture between junk, a file that does not exist, a folder, and a journal of no entry."""
    folder = tmp_path / "in"
    (folder / "folder.pcap").mkdir(parents=True)
    (folder / "a.pcap").write_bytes(knowing())
    (folder / "junk.pcap").write_bytes(bytes(5000))
    (folder / "journal.jsonl").write_bytes(JOURNAL)
    names = ("junk.pcap", "a.pcap", "none.pcap", "folder.pcap", "journal.jsonl")
    return [str(folder / name) for name in names]


@pytest.mark.parametrize("bad", ["junk.pcap", "none.pcap", "folder.pcap", "journal.jsonl"])
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
    assert len(moved) == (4 if policy == "quarantine" else 0)
    assert Path(captures[0]).exists() == (policy == "skip")
    assert len(list(out.glob("_quarantine/*-junk.pcap"))) == len(moved) // 4


def bad_files(stream: Stream) -> list[str]:
    return [each.file.path for noted in StreamFolder(stream.folder).noted() for each in noted.bad]


@pytest.mark.parametrize("policy", ["fail", "skip", "quarantine"])
def test_a_stream_and_a_bad_journal(
    session: FakeSession, tmp_path: Path, policy: OnBadFile
) -> None:
    """Beside captures, in a batch of its own or in theirs."""
    files = rotate(made_up.capture(9, kind="pcap"), [30, 60], tmp_path / "in")
    bad = tmp_path / "in" / "s.jsonl"
    bad.write_bytes(JOURNAL)
    for most in (1, 9):
        stream = follow(tmp_path / "in", tmp_path / str(most), max_files=most, on_bad_file=policy)
        if policy == "fail":
            with pytest.raises(FaultError, match=r"s\.jsonl: line 1: not a journal entry"):
                to_the_end(session, stream)
            continue
        to_the_end(session, stream)
        assert difference(one_process(files, tmp_path / "one"), tmp_path / str(most) / "out") == {}
        found = [
            each.file.path for noted in StreamFolder(stream.folder).noted() for each in noted.bad
        ]
        assert found == [str(bad)]
        assert bad.exists() == (policy == "skip")
        bad.write_bytes(JOURNAL)


def test_a_stream_and_a_file_that_cannot_be_opened(
    session: FakeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is bad once, and not looked for again."""
    files = rotate(made_up.capture(9, kind="pcap"), [30, 60], tmp_path / "in")
    real = rotation.known_kind

    def refused(path: str) -> object:
        if path == str(files[2]):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(rotation, "known_kind", refused)
    with pytest.raises(FaultError, match=r"r\.pcap2 cannot be read: Permission denied"):
        so_far(session, follow(tmp_path / "in", tmp_path / "fail"))
    stream = follow(tmp_path / "in", tmp_path, on_bad_file="skip", closed=True)
    so_far(session, stream)
    to_the_end(session, stream)
    assert bad_files(stream) == [str(files[2])]
    assert difference(one_process(files[:2], tmp_path / "one"), tmp_path / "out") == {}


@pytest.mark.parametrize(("policy", "expected"), [("fail", 4), ("skip", 3), ("quarantine", 3)])
def test_exit_codes(
    session: FakeSession, captures: list[str], tmp_path: Path, policy: str, expected: int,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Of the command, for junk in a batch and a late file in a stream; 0 without either."""
    require_module("pyspark")
    module = importlib.import_module("wiredump.spark.session")
    monkeypatch.setattr(module, "start", lambda *_, **__: session)
    monkeypatch.setattr(module, "master_of", lambda _: "none")
    monkeypatch.setattr("wiredump.spark.streaming.Stream.start", start)

    def code(*arguments: str) -> int:
        ended, _, err = wiredump(capsys, "spark", *arguments, "--tables", "requests")
        named = [line for line in err.splitlines() if "junk.pcap" in line or "r.pcap " in line]
        assert bool(named) == (ended != 0)
        return ended

    batch = ("--out", str(tmp_path / "batch"), "--on-bad-file", policy)
    assert code(*captures[:2], *batch) == expected
    assert code(captures[1], *batch, "--run", "good", "--mode", "append") == 0
    files = rotate(made_up.capture(9, kind="pcap", back=0.0), [30, 60], tmp_path / "all")
    (tmp_path / "rotated").mkdir()
    stream = (
        "--follow", str(tmp_path / "rotated"), "--checkpoint", str(tmp_path / "checkpoint"),
        "--out", str(tmp_path / "stream"), "--on-bad-file", policy, "--available-now",
        "--progress", str(tmp_path / "lines"),
    )  # fmt: skip
    for path in files[1:]:
        shutil.copy(path, tmp_path / "rotated")
    assert code(*stream) == 0
    shutil.copy(files[0], tmp_path / "rotated")
    assert code(*stream) == expected
    assert (tmp_path / "stream" / "_quarantine").exists() == (policy == "quarantine")
