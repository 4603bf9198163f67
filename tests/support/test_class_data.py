"""An archive of loaded classes is there whole or not at all, and one process at a time makes it."""

import fcntl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.class_data import ClassData

WRITES = """#!/bin/sh
echo "$0 $*" >> {log}
printf half > "$4"
{then}
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """It stands for a JVM: the ``jcmd`` below asks nothing of it."""
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as running:
        yield running
        running.kill()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def jcmd(monkeypatch: pytest.MonkeyPatch, log: Path, then: str) -> None:
    program = log.with_name("jcmd")
    program.write_text(WRITES.format(log=log, then=then), "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(log.parent), prepend=":")


def archives(folder: Path) -> list[str]:
    return [each.read_text("utf-8") for each in folder.rglob("*.jsa")]


def test_an_archive_is_made_once(monkeypatch, tmp_path, process, log):
    jcmd(monkeypatch, log, 'printf " and half" >> "$4"')
    data = ClassData(tmp_path / "broker")
    assert data.options() == ()
    for _ in range(2):
        data.keep_of(process)
    assert archives(tmp_path) == ["half and half"]
    assert len(log.read_text("utf-8").splitlines()) == 1
    assert "-Xshare:auto" in data.options()


def test_half_an_archive_is_none(monkeypatch, tmp_path, process, log):
    jcmd(monkeypatch, log, "exit 1")
    data = ClassData(tmp_path / "broker")
    data.keep_of(process)
    assert log.exists()
    assert archives(tmp_path) == []
    assert data.options() == ()


def test_no_archive_is_made_while_another_process_makes_it(monkeypatch, tmp_path, process, log):
    jcmd(monkeypatch, log, "")
    data = ClassData(tmp_path / "broker")
    data.keep_of(process)
    (archive,) = tmp_path.glob("*.jsa")
    archive.unlink()
    (lock,) = tmp_path.glob("*.lock")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        data.keep_of(process)
        assert archives(tmp_path) == []
    data.keep_of(process)
    assert archives(tmp_path) == ["half"]
