"""Progress: there for who waits at a terminal, and in nobody's way."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from wiredump.cli.progress import Bar, reading, status


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "capture"
    path.write_bytes(bytes(1000))
    return str(path)


def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """No fixture: pytest would put its own streams in place before the test."""
    found = Terminal()
    monkeypatch.setattr("sys.stderr", found)
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return found


def test_nothing_where_nobody_looks(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    bar = Bar([file], clock=clock)
    clock.now = 10
    bar.update(5)
    bar.close()
    with reading([file]) as count, status("reading tables"):
        count(5)
    assert capsys.readouterr() == ("", "")


def test_the_bar_comes_when_nothing_else_does(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_a_terminal(monkeypatch)
    clock = Clock()
    bar = Bar([file], clock=clock)
    clock.now = 0.5
    bar.update(100)
    assert terminal.getvalue() == ""
    clock.now = 1.5
    bar.update(500)
    assert "reading" in terminal.getvalue()
    before = len(terminal.getvalue())
    bar.hide()  # a line is written
    assert terminal.getvalue()[before:], "the bar was not taken away"
    gone = terminal.getvalue()
    bar.update(600)
    assert terminal.getvalue() == gone, "too soon after the line"
    clock.now = 3
    bar.update(700)
    assert terminal.getvalue() != gone
    bar.close()
    gone = terminal.getvalue()
    clock.now = 99
    bar.update(1000)
    assert terminal.getvalue() == gone


def test_no_bar_over_a_pager(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_a_terminal(monkeypatch)
    monkeypatch.setattr("sys.stdout", io.StringIO())  # no file, and no terminal
    clock = Clock()
    bar = Bar([file], clock=clock)
    clock.now = 10
    bar.update(500)
    bar.close()
    assert terminal.getvalue() == ""


def test_bytes_are_counted_and_work_is_named(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_a_terminal(monkeypatch)
    with reading([file]) as count:
        count(500)
    assert "0.5/1.0 kB" in terminal.getvalue()
    with status("reading tables"):
        pass
    assert "reading tables" in terminal.getvalue()
