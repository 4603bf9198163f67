"""A stream on a Spark Connect server: the command is a client without Java, and batches run on the
server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.toolchain import require, require_module
from tests.wiredump.spark.knowing import knowing
from tests.wiredump.spark.rotating import difference, one_process, rotate
from wiredump.rows.schema import ON_REQUEST

pytestmark = [pytest.mark.slow, pytest.mark.java]
ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("connect_server.py")
SLOW = """#!/bin/sh
case "$*" in *foreach_batch_worker*) mkdir "{mark}" 2>/dev/null && sleep 12;; esac
exec "{python}" "$@"
"""
"""A Python that takes longer to begin the first stream than Spark waits for it."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    require("java")
    require_module("pyspark")
    require_module("grpc")
    slow = tmp_path / "slow-python"
    slow.write_text(SLOW.format(mark=tmp_path / "began", python=sys.executable))
    slow.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(slow)}
    with (
        (tmp_path / "server.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, str(PROGRAM)], cwd=tmp_path, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
        ) as running,
    ):  # fmt: skip
        assert running.stdout is not None
        port = running.stdout.readline().decode().strip()
        assert port.isdigit(), (tmp_path / "server.log").read_text()[-4000:]
        yield f"sc://127.0.0.1:{port}"
        assert running.stdin is not None
        running.stdin.close()
        running.wait(120)


def test_a_stream(server: str, tmp_path: Path) -> None:
    """By two commands, the second of which continues the first, and ends the stream. The first
    starts its query again, since Spark did not wait for Python."""
    files = rotate(knowing(), [15, 30], tmp_path / "in")
    command = [
        sys.executable, "-m", "wiredump", "spark", "--follow", str(tmp_path / "in"),
        "--out", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "checkpoint"),
        "--remote", server, "--partitions", "2", "--max-files", "1", "--json",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAVA_HOME": str(tmp_path)}
    for mode in ("--available-now", "--end"):
        done = subprocess.run(
            [*command, mode], env=environment, capture_output=True, text=True, timeout=600,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        if mode == "--available-now":
            assert "the query starts again" in done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert [line["batch"] for line in lines] == [2]
    every = one_process(files, tmp_path / "one")
    expected = {name: rows for name, rows in every.items() if name not in ON_REQUEST}
    assert difference(expected, tmp_path / "out") == {}
    rows = json.loads(done.stdout)["rows"]
    assert rows == {name: len(each) for name, each in expected.items()}
