"""``--journal`` of every command that has it: on a full disk, over an existing file, to devices.

The options are found by walking the commands.
"""

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kproto.cli.outputs import OutputStreamType
from mockbroker import MockCluster
from tests.outputs.conditions import read_from
from tests.outputs.output_options import options
from wiredump.sources import open_sources

ROOT = Path(__file__).parents[2]
SECONDS = 60
NOTICE = "SASL passes through"
"""What the proxy says when it starts."""
API_VERSIONS = bytes.fromhex("0000000b0012000000000001000178")
COMMANDS = [
    each.command.split()[1]
    for each in options()
    if each.kind is OutputStreamType and each.command.startswith("mockbroker ")
]
EXTENSIONS = ["jsonl", "pcapng"]

pytestmark = pytest.mark.slow


def limited(limit: int | None) -> None:
    if limit is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))


@contextmanager
def running(words: Sequence[str], limit: int | None = None) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "mockbroker", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, preexec_fn=lambda: limited(limit),
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


@asynccontextmanager
async def words_of(command: str) -> AsyncIterator[list[str]]:
    if command == "serve":
        yield ["serve", "--brokers", "1"]
        return
    async with MockCluster(brokers=1) as mock:
        yield [command, "--upstream", mock.bootstrap]


def ready(process: subprocess.Popen[str]) -> tuple[str, int]:
    assert process.stdout is not None
    first: dict[str, Any] = json.loads(process.stdout.readline())
    host, _, port = first["bootstrap"].partition(",")[0].rpartition(":")
    return host, int(port)


def ask(address: tuple[str, int], times: int) -> None:
    """ApiVersions, so often that each is answered."""
    with socket.create_connection(address, SECONDS) as connection:
        for _ in range(times):
            connection.sendall(API_VERSIONS)
            size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL))
            assert len(connection.recv(size, socket.MSG_WAITALL)) == size


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.terminate()
    _, err = process.communicate(timeout=SECONDS)
    lines = err.splitlines(keepends=True)
    return process.returncode, "".join(line for line in lines if NOTICE not in line)


async def served(words: Sequence[str], times: int, limit: int | None = None) -> tuple[int, str]:
    """Serve so many requests, then stop; return the exit status and standard error."""

    def work() -> tuple[int, str]:
        with running(words, limit) as process:
            ask(ready(process), times)
            return end(process)

    return await asyncio.to_thread(work)


def test_the_commands_are_known() -> None:
    assert COMMANDS == ["proxy", "serve"]


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("command", COMMANDS)
async def test_a_full_disk_is_one_line_and_the_broker_goes_on(command, extension, tmp_path):
    journal = tmp_path / f"traffic.{extension}"
    async with words_of(command) as words:
        code, err = await served([*words, "--journal", str(journal)], 60, limit=4096)
    assert (code, err) == (
        1, f"mockbroker: --journal: {journal}: File too large; the file ends here\n"
    )  # fmt: skip
    assert 1000 < journal.stat().st_size <= 4096
    found = open_sources([str(journal)])
    assert len(list(found)) > 3
    assert found.account.get("damage: truncated", 0) == 0  # it ends after an entry


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("command", COMMANDS)
async def test_a_file_that_is_not_empty_is_refused_unless_it_may_be_overwritten(
    command: str, extension: str, tmp_path: Path
) -> None:
    journal = tmp_path / f"traffic.{extension}"
    journal.write_text("an earlier journal")
    async with words_of(command) as words:
        words += ["--journal", str(journal)]
        with running(words) as process:
            out, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, out, err.count("\n")) == (2, "", 1)
        assert "is not empty: name another file, or add --overwrite-journal" in err
        assert journal.read_text() == "an earlier journal"
        assert await served([*words, "--overwrite-journal"], 2) == (0, "")
    assert len(list(open_sources([str(journal)]))) >= 2


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("command", COMMANDS)
async def test_pipes_and_devices(command: str, extension: str, tmp_path: Path) -> None:
    fifo, full = tmp_path / f"fifo.{extension}", tmp_path / f"full.{extension}"
    os.mkfifo(fifo)
    full.symlink_to("/dev/full")
    async with words_of(command) as words:
        with read_from(fifo) as received:
            assert await served([*words, "--journal", str(fifo)], 3) == (0, "")
        (tmp_path / f"copy.{extension}").write_bytes(received[0])
        assert len(list(open_sources([str(tmp_path / f"copy.{extension}")]))) >= 3
        if not Path("/dev/full").exists():
            return
        if extension == "jsonl":
            code, err = await served([*words, "--journal", str(full)], 1)
        else:  # its beginning cannot be written
            with running([*words, "--journal", str(full)]) as process:
                _, err = process.communicate(timeout=SECONDS)
            code = process.returncode
    assert code in (1, 2)
    assert (err.count("\n"), f"{full}: No space left on device" in err) == (1, True)
    assert full.is_symlink()


@pytest.mark.parametrize("command", COMMANDS)
async def test_what_cannot_be_a_journal_is_refused(command: str, tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    for where in ("folder.jsonl", "none/a.jsonl"):
        words = [command, "--journal", str(tmp_path / where)]
        words += ["--upstream", "127.0.0.1:9"] * (command == "proxy")
        with running(words) as process:
            out, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, out, err.count("\n")) == (2, "", 1)
        assert str(tmp_path / where) in err
