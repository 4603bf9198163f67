"""``wiredump spark``: what it says where it cannot run, and what it prints where it can."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.toolchain import require, require_module
from tests.wiredump.commands import wiredump
from tests.wiredump.spark import made_up
from tests.wiredump.spark.pipeline import LOCAL, load, single
from wiredump.rows.schema import ON_REQUEST
from wiredump.tables.run import derived_run


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "a.pcap"
    path.write_bytes(made_up.capture(11, kind="pcap"))
    return path


def spark_process(
    capture: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``wiredump spark`` on the capture as a process of its own."""
    root = str(Path(__file__).parents[3])
    return subprocess.run(
        [sys.executable, "-m", "wiredump", "spark", str(capture), *arguments],
        env={**os.environ, "PYTHONPATH": root, **environment}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip


def test_without_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, capture: Path
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pyspark" else found(name)
    )
    code, _, err = wiredump(capsys, "spark", str(capture), "--out", str(capture.parent / "out"))
    assert code == 1
    assert err.count("\n") == 1
    assert "pip install 'kproto[spark]'" in err


@pytest.mark.slow
def test_without_java(capture: Path) -> None:
    """As a process of its own: in this one, Spark may run already."""
    require_module("pyspark")
    out = capture.parent / "out"
    done = spark_process(capture, "--out", str(out), JAVA_HOME=str(capture.parent))
    assert done.returncode == 1
    err = done.stderr
    assert err.count("\n") == 1
    assert "Java" in err
    assert "wiredump table" in err
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("-", "--out", "x"), "standard input"),
        (("a", "--out", "x", "--tables", "frame"), "no table 'frame'"),
        (("a", "--out", "x", "--split-bytes", "0"), "0 is not in the range"),
    ],
)
def test_wrong_usage(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], problem: str
) -> None:
    code, _, err = wiredump(capsys, "spark", *arguments)
    assert code == 2
    assert problem in err


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    require_module("pyspark")
    code, _, err = wiredump(capsys, "spark", str(tmp_path / "no.pcap"), "--out", str(tmp_path))
    assert code == 1
    assert "no.pcap" in err


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.parametrize("where", [("--master", "local[1]"), ("--remote", "local[1]")])
def test_tables_are_those_of_wiredump_table(capture: Path, where: tuple[str, str]) -> None:
    """As a process of its own; through a Spark Connect server, too."""
    require("java")
    require_module("pyspark")
    if where[0] == "--remote":
        require_module("grpc")
    out = capture.parent / "out"
    done = spark_process(
        capture, "--out", str(out), "--json", "--split-bytes", "8000", "--partitions", "2", *where
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    expected = single([str(capture)], capture.parent / "one")
    assert load(out) == expected
    assert {name: told["rows"][name] for name in LOCAL if name not in ON_REQUEST} == {
        name: len(rows) for name, rows in expected.items() if name not in ON_REQUEST
    }
    assert told["again"] == []
    assert told["run"] == derived_run([str(capture)])
    assert all((out / name / f"run={told['run']}").is_dir() for name in told["rows"])
    printed = "Spark's master is " + ("local[1]" if where[0] == "--master" else "localhost")
    assert f"wiredump: {printed}\n" in done.stderr
