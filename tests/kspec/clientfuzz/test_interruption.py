"""A run that ends before its time: what it met is told all the same, for what it is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kspec.clientfuzz.cli import fuzz
from kspec.clientfuzz.clients.reproducer import read_replay
from mockbroker import MockCluster
from tests.support.waiting import SECONDS, until

PROGRAM = Path(__file__).with_name("planted_client.py")
FAILS_LATER = """
import os, sys
count = int(open(sys.argv[2]).read()) if os.path.exists(sys.argv[2]) else 0
open(sys.argv[2], "w").write(str(count + 1))
if count == 2:
    sys.exit("no third time")
os.execv(sys.executable, [sys.executable, sys.argv[1], "crash"])
"""
"""A client that crashes, and comes up twice only."""


def processes_with(word: str) -> list[int]:
    """Those whose environment has it. A zombie's cannot be read, and it is not there."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            environment = (place / "environ").read_bytes()
        except OSError:
            continue
        if word.encode() in environment:
            found.append(int(place.name))
    return found


async def until_line(stream: asyncio.StreamReader, start: bytes) -> bytes:
    async with asyncio.timeout(SECONDS):
        while line := await stream.readline():
            if line.startswith(start):
                return line
    raise AssertionError(f"no line begins with {start!r}")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc who is there")
@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
async def test_what_was_met_is_written_and_no_client_is_left(tmp_path, which):
    mark = f"KPROTO_TEST_RUN={tmp_path}"
    name, _, value = mark.partition("=")
    command = f"{sys.executable} {PROGRAM} wrong"
    run = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mockbroker", "fuzz", "--command", command,
        "--cases", "1000000", "--kind", "cut", "--jobs", "2", "--timeout", "300",
        "--out", str(tmp_path / "out"),
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), name: value},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert run.stderr is not None
        await until_line(run.stderr, b"case ")
        assert len(processes_with(mark)) > 1
        run.send_signal(which)
        async with asyncio.timeout(SECONDS):
            said, problems = await run.communicate()
        assert run.returncode == 128 + which, problems.decode()
        assert b"Traceback" not in problems
        assert processes_with(mark) == []
    finally:
        if run.returncode is None:
            run.kill()
        for pid in processes_with(mark):
            os.kill(pid, signal.SIGKILL)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["ended"] == "interrupted"
    assert 0 < report["cases"] < 1000000
    # The signal ends clients, which no case is blamed for.
    assert {row["verdict"] for row in report["found"]} == {"wrong"}
    row = report["found"][0]
    assert (row["steady"], row["unconfirmed"]) == (False, True)
    folder = Path(row["reproducer"])
    assert read_replay(folder / "case.json").cause == row["cause"]
    assert "Unconfirmed" in (folder / "README.md").read_text()
    for told in ("interrupted", "0 findings, 1 unconfirmed", str(folder)):
        assert told in said.decode()


COUNTS = """
import json, sys
for number, _ in enumerate(sys.stdin):
    print(json.dumps({"ok": True}), flush=True)
    if number == 400:
        open(sys.argv[1], "w").close()
"""
"""A decoder that takes everything, and leaves a file after some more than a batch."""


async def ended_by(which: signal.Signals, run: asyncio.subprocess.Process) -> dict[str, Any]:
    """What the run prints as JSON when it is told to end."""
    run.send_signal(which)
    async with asyncio.timeout(SECONDS):
        said, problems = await run.communicate()
    assert run.returncode == 128 + which, problems.decode()
    assert b"Traceback" not in problems
    assert b"interrupted" in problems
    told: dict[str, Any] = json.loads(said)
    return told


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc who is there")
@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
async def test_a_differential_tells_of_its_whole_batches(tmp_path, which):
    program, enough = tmp_path / "decoder.py", tmp_path / "enough"
    program.write_text(COUNTS)
    run = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mockbroker", "fuzz", "diff", "--kafka", "", "--api", "46",
        "--decoder", f"{sys.executable} {program} {enough}", "--cases", "1000000", "--json",
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), "KPROTO_TEST_RUN": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        await until(enough.exists, "more than a batch was judged")
        told = await ended_by(which, run)
        assert processes_with(f"KPROTO_TEST_RUN={tmp_path}") == []
    finally:
        if run.returncode is None:
            run.kill()
    assert told["cases"] % 250 == 0
    assert 250 <= told["cases"] < 1000000
    assert told["findings"], "it takes what nobody takes"


@pytest.mark.slow
async def test_an_aimed_run_tells_of_its_whole_batches():
    async with MockCluster(brokers=1) as mock:
        run = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "mockbroker", "fuzz", "broker", mock.addresses[1],
            "--cases", "1000000", "--json",
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            await until(lambda: len(mock.journal) >= 400, "more than a batch was asked")
            told = await ended_by(signal.SIGINT, run)
        finally:
            if run.returncode is None:
                run.kill()
    assert told["cases"] % 50 == 0
    assert 50 <= told["cases"] < 1000000
    assert told["down"] is None


@pytest.mark.slow
def test_a_client_that_does_not_come_up_any_more_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    program = tmp_path / "twice.py"
    program.write_text(FAILS_LATER)
    command = f"{sys.executable} {program} {PROGRAM} {tmp_path / 'count'}"
    kinds = ["--kind", "null-forbidden", "--cases", "1000", "--timeout", "300"]
    out = tmp_path / "out"
    done = CliRunner().invoke(fuzz, ["--command", command, *kinds, "--out", str(out)])
    assert done.exit_code == 2, done.output
    assert "no third time" in done.output
    report = json.loads((out / "report.json").read_text())
    assert "no third time" in report["ended"]
    rows = [row for row in report["found"] if row["verdict"] == "crash"]
    assert rows
    for row in rows:
        assert row["unconfirmed"]
        assert (Path(row["reproducer"]) / "case.json").exists()


@pytest.mark.slow
def test_kinds_that_have_no_place_are_one_line(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    command = f"{sys.executable} {PROGRAM}"
    done = CliRunner().invoke(fuzz, ["--command", command, "--kind", "real", "--cases", "3"])
    assert done.exit_code == 2, done.output
    assert "none of these kinds has a place" in done.output
    assert isinstance(done.exception, SystemExit)
