"""A parent that does not read stderr does not block the process."""

import fcntl
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

import pytest

from mockbroker.cli.background_stderr import background_stderr

SECONDS = 30


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for each in (reader, writer):
        with suppress(OSError):
            os.close(each)


def fill(writer: int) -> None:
    """Fill the pipe, and leave its blocking mode as it was."""
    flags = fcntl.fcntl(writer, fcntl.F_GETFL)
    fcntl.fcntl(writer, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b"." * 4096)
    fcntl.fcntl(writer, fcntl.F_SETFL, flags)


def test_lines_beyond_the_bound_are_counted_and_reported_once(pipe, monkeypatch):
    reader, writer = pipe
    lines = 50_000
    with os.fdopen(writer, "w", closefd=False) as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with background_stderr(max_bytes=200_000):
            for number in range(lines):
                print(f"line {number:06}", file=sys.stderr)
            text = b""
            while b"because stderr" not in text:
                text += os.read(reader, 1 << 16)
        os.close(writer)
    while data := os.read(reader, 1 << 16):
        text += data
    written = text.decode().splitlines()
    kept = [each for each in written if each.startswith("line ")]
    (line,) = [each for each in written if "because stderr" in each]
    assert line == f"mockbroker: dropped {lines - len(kept)} lines because stderr was not read"
    numbers = [int(each.removeprefix("line ")) for each in kept]
    # What the pipe takes meanwhile makes room for later lines: the gap may be in the middle.
    assert numbers[0] == 0
    assert all(one < next_ for one, next_ in pairwise(numbers))


def test_a_stderr_that_is_not_a_file_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with background_stderr():
        assert sys.stderr is None


@pytest.mark.slow  # a process
def test_a_full_pipe_does_not_block_the_control_port(pipe: tuple[int, int]) -> None:
    _, writer = pipe
    fill(writer)
    command = [
        sys.executable, "-m", "mockbroker", "serve", "--profile", "kafka-2.4",
        "--topic", "foo=1,2", "--control", "127.0.0.1:0",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writer, text=True)
    assert process.stdout is not None
    try:
        url = json.loads(process.stdout.readline())["control"]
        znode = {"path": "/admin/reassign_partitions", "text": "no JSON"}  # a warning
        request = urllib.request.Request(
            f"{url}/write-znode", json.dumps(znode).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            kinds = [each["kind"] for each in json.load(answer)["actions"]]
        assert "Warned" in kinds
        with urllib.request.urlopen(f"{url}/state", timeout=SECONDS) as answer:
            assert json.load(answer)["controller"] == 1
        process.terminate()
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
