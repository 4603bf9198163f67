"""A run that is told to end, in the midst of a play with a client that hangs: nobody is left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.waiting import SECONDS, until

HANGS = """
import os, subprocess, sys, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print('{"client": "c", "version": "1"}', flush=True)
sys.stdin.readline()
with open(sys.argv[1] + ".part", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(600)
"""


def is_there(pid: int) -> bool:
    """A zombie is not: nobody has to wait for the child of a child that was killed."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc who is there")
@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
async def test_a_run_that_is_told_to_end_leaves_no_process(tmp_path, which):
    adapter, told = tmp_path / "adapter.py", tmp_path / "pids"
    adapter.write_text(HANGS)
    run = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kspec", "run", "--case", "framing/001",
        "--case", "framing/002", "--out", str(tmp_path / "out"), "--jobs", "1", "--client",
        "reference", "--adapter", f"{sys.executable} {adapter} {told}",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        await until(told.exists, "the client has been asked")
        pids = [int(pid) for pid in told.read_text().split()]
        assert all(map(is_there, pids))
        run.send_signal(which)
        async with asyncio.timeout(SECONDS):
            _, said = await run.communicate()
        assert run.returncode == 128 + which, said.decode()
        assert said == b""
        document = json.loads((tmp_path / "out" / "results.json").read_text())
        verdicts = {(each["client"], each["verdict"]) for each in document["results"]}
        assert verdicts == {("reference", "pass"), ("adapter", "error")}
        assert len(document["results"]) == 4
        assert (tmp_path / "out" / "report.html").exists()
        await until(lambda: not any(map(is_there, pids)), "they end")
    finally:
        if run.returncode is None:
            run.kill()
        for pid in map(int, told.read_text().split() if told.exists() else ()):
            if is_there(pid):
                os.kill(pid, signal.SIGKILL)
