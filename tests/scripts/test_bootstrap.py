"""Set-up where something is lacking: what is tried, what is said, and when it is done again."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import bootstrap
from scripts.bootstrap import SetupError


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout of nothing but the files that decide what is installed."""
    root = tmp_path / "checkout"
    for name in ("pyproject.toml", "setup.py", "constraints.txt", "scripts/bootstrap.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / ".venv").mkdir()
    monkeypatch.setattr(bootstrap, "ROOT", root)
    monkeypatch.setattr(bootstrap, "VENV", root / ".venv")
    monkeypatch.setattr(bootstrap, "STAMP", root / ".venv" / ".kproto-stamp")
    return root


@pytest.fixture
def installed(checkout, monkeypatch):
    """The extras of every installation, where an environment is there already; the second value
    is those that cannot be had."""
    calls: list[list[str]] = []
    absent: set[str] = set()

    def install(extras, attempts=1):
        calls.append(extras)
        return not absent & set(extras)

    monkeypatch.setattr(bootstrap, "environment_works", lambda: True)
    monkeypatch.setattr(bootstrap, "install", install)
    monkeypatch.delenv("KPROTO_REQUIRE", raising=False)
    return calls, absent


def interpreter(folder: Path, name: str, prints: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho {prints}\n")
    path.chmod(0o755)
    return path


def test_an_old_python_looks_for_a_newer_one_on_the_path(tmp_path, monkeypatch):
    old = interpreter(tmp_path, "old", "3 8")
    new = interpreter(tmp_path, "python3.13", "3 13")
    monkeypatch.setattr(sys, "executable", str(old))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KPROTO_PYTHON", raising=False)
    assert bootstrap.choose_python() == str(new)


def test_no_python_new_enough_says_what_there_is_and_what_to_do(tmp_path, monkeypatch):
    old = interpreter(tmp_path, "old", "3 8")
    monkeypatch.setattr(sys, "executable", str(old))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KPROTO_PYTHON", raising=False)
    with pytest.raises(SetupError) as caught:
        bootstrap.choose_python()
    text = str(caught.value)
    assert "3.11 or newer" in text
    assert f"{old} (3.8)" in text
    assert "KPROTO_PYTHON" in text


def test_the_python_that_was_named_is_not_replaced_by_another(tmp_path, monkeypatch):
    monkeypatch.setenv("KPROTO_PYTHON", str(tmp_path / "nowhere"))
    with pytest.raises(SetupError, match="does not start"):
        bootstrap.choose_python()


@pytest.mark.parametrize("working", range(len(bootstrap.WAYS)))
def test_every_way_to_an_environment_is_tried_until_one_works(checkout, monkeypatch, working):
    tried: list[int] = []

    def way(number: int) -> Callable[[str], bool]:
        def attempt(python: str) -> bool:
            assert not bootstrap.VENV.exists(), "what a failed attempt left is in the way"
            bootstrap.VENV.mkdir()
            tried.append(number)
            return bool(number == working)

        return attempt

    monkeypatch.setattr(
        bootstrap, "WAYS", [(name, way(n)) for n, (name, _) in enumerate(bootstrap.WAYS)]
    )
    monkeypatch.setattr(bootstrap, "has_pip", lambda: True)
    bootstrap.make_environment(sys.executable)
    assert tried == list(range(working + 1))


def test_no_way_to_an_environment_names_what_is_missing(checkout, monkeypatch):
    monkeypatch.setattr(bootstrap, "WAYS", [("nothing", lambda python: False)])
    with pytest.raises(SetupError, match=r"python3-venv.*python3-pip.*virtualenv"):
        bootstrap.make_environment(sys.executable)
    assert not bootstrap.VENV.exists()


def test_a_second_set_up_installs_nothing_until_something_changed(checkout, installed):
    calls, _ = installed
    bootstrap.set_up(["dev", "control", "speed"])
    bootstrap.set_up(["dev", "control", "speed"])
    assert calls == [["dev", "control", "speed"]]
    (checkout / "pyproject.toml").write_text("changed")
    bootstrap.set_up(["dev", "control", "speed"])
    assert len(calls) == 2


def test_what_was_asked_for_once_is_kept(installed):
    calls, _ = installed
    bootstrap.set_up(["dev", "control", "bench"])
    bootstrap.set_up(["dev", "control"])
    assert len(calls) == 1


def test_an_extra_that_cannot_be_had_is_left_out_and_tried_again(installed, capsys):
    calls, absent = installed
    absent.add("clients")
    bootstrap.set_up(["dev", "control", "clients", "speed"])
    assert ["speed"] in calls
    assert "without clients" in capsys.readouterr().err
    before = len(calls)
    absent.clear()
    bootstrap.set_up(["dev", "control", "clients", "speed"])
    assert len(calls) > before


def test_an_extra_that_is_required_is_an_error(installed, monkeypatch):
    _, absent = installed
    absent.add("clients")
    monkeypatch.setenv("KPROTO_REQUIRE", "all")
    with pytest.raises(SetupError, match=r"kproto\[clients\]"):
        bootstrap.set_up(["dev", "control", "clients"])


def test_what_pip_says_is_shown_once_it_gave_up(monkeypatch, capsys):
    answers = [(False, "first"), (False, "\n".join(f"line {n}" for n in range(100)))]
    monkeypatch.setattr(bootstrap, "run_captured", lambda command: answers.pop(0))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    assert not bootstrap.install(["dev"], attempts=2)
    shown = capsys.readouterr().err
    assert shown.endswith("line 98\nline 99\n")
    assert "line 10\n" not in shown
    assert "first" not in shown
    answers.append((True, "a warning"))
    assert bootstrap.install(["dev"])
    assert capsys.readouterr().err == ""


def test_bytecode_is_written_where_python_would_not(checkout, monkeypatch):
    monkeypatch.setattr(bootstrap, "venv_python", lambda: sys.executable)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    source = checkout / "kproto" / "good.py"
    source.parent.mkdir()
    source.write_text("x = 1\n")
    (checkout / "kproto" / "bad.py").write_text("x =\n")
    bootstrap.compile_sources()
    (compiled,) = source.parent.glob("__pycache__/good.*.pyc")
    first = compiled.read_bytes()
    source.write_text("x = 22\n")
    os.utime(source, (1, 1))
    bootstrap.compile_sources()
    assert compiled.read_bytes() != first
