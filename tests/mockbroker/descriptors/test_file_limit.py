"""More clients than the process may have files open.

Those past the limit are closed with an entry in the journal, the others and the control port are
answered, and nothing is written to standard error.
"""

import asyncio
import errno
import json
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any, Final

import aiohttp
import pytest

import kproto
from mockbroker import MockCluster
from mockbroker.serving import acceptor
from tests.mockbroker.control.test_command_line import serving
from tests.mockbroker.descriptors.test_opened_files import CONTROL, ROOT
from tests.mockbroker.wire import PATIENCE
from tests.support.requests import request_of

LIMIT: Final = 256
ASKED: Final = kproto.encode_request(
    request_of("ApiVersions"), api_version=0, correlation_id=1, client_id="limit"
)
PEM: Final = ROOT / "tests/client/localhost.pem"
START: Final = """
import resource, sys
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[1])))
if sys.argv[2] == "asyncio":
    sys.modules["uvloop"] = None
from mockbroker.cli import main
main(sys.argv[3:])
"""


@contextmanager
def limited(loop: str, *words: str, limit: int = LIMIT) -> Iterator[tuple[Any, dict[str, Any]]]:
    """``mockbroker`` with a limit of open files, as after ``ulimit -n``, and its first line."""
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    process = subprocess.Popen(
        [sys.executable, "-c", START, str(limit), loop, *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        if not first:
            pytest.fail(process.communicate()[1])
        yield process, json.loads(first)
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


@asynccontextmanager
async def crowd(address: str, count: int) -> AsyncIterator[list[bool]]:
    """So many connections that each send a request; whether each was answered, in order."""
    host, _, port = address.rpartition(":")
    answered: list[bool] = []
    opened = []
    try:
        for _ in range(count):
            async with asyncio.timeout(PATIENCE):
                reader, writer = await asyncio.open_connection(host, int(port))
                opened.append(writer)
                writer.write(ASKED)
                try:
                    answered.append(len(await reader.readexactly(8)) == 8)
                except (asyncio.IncompleteReadError, ConnectionError):
                    answered.append(False)
        yield answered
    finally:
        for writer in opened:
            writer.close()


async def over_limit(session: aiohttp.ClientSession, url: str) -> list[dict[str, Any]]:
    async with session.get(url + "/journal?event=over-limit") as response:
        assert response.status == 200
        found: list[dict[str, Any]] = await response.json()
        return found


def stopped(process: Any) -> str:
    """Ends the process; what it has written to standard error after the line about the limit."""
    process.terminate()
    _, err = process.communicate(timeout=PATIENCE)
    lines = [line for line in err.splitlines() if "SASL passes through" not in line]
    assert len(lines) == 1, err
    assert f"the limit of {LIMIT} open files (ulimit -n) leaves room for" in lines[0]
    return str(lines[0])


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("kind", ["serve", "proxy"])
async def test_clients_past_the_limit_of_open_files_are_closed(kind: str, loop: str) -> None:
    words = ["serve", "--brokers", "1"]
    with ExitStack() as stack:
        if kind == "proxy":
            _, upstream = stack.enter_context(serving("--brokers", "1"))
            words = ["proxy", "--upstream", upstream["bootstrap"]]
        process, ready = stack.enter_context(limited(loop, *words, *CONTROL))
        async with crowd(ready["bootstrap"], LIMIT + 50) as answered:
            served = answered.index(False)
            assert served > (LIMIT - 120) // (2 if kind == "proxy" else 1)
            assert not any(answered[served:])
            async with aiohttp.ClientSession() as session:
                entries = await over_limit(session, ready["control"])
            assert len(entries) == len(answered) - served
            assert entries[0]["note"].startswith(f"the process may have {LIMIT} files open")
        async with asyncio.timeout(PATIENCE):
            again = [False]
            while again != [True]:  # the descriptors of those that have left are used again
                async with crowd(ready["bootstrap"], 1) as again:
                    pass
        assert "further ones are closed" in stopped(process)


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_connections_of_the_control_port_past_the_limit_are_closed(loop: str) -> None:
    with limited(loop, "serve", "--brokers", "1", *CONTROL) as (process, ready):
        host, _, port = ready["control"].removeprefix("http://").rpartition(":")
        idle = [socket.create_connection((host, int(port))) for _ in range(LIMIT + 50)]
        try:
            assert idle[-1].recv(1) == b""
        finally:
            for each in idle:
                each.close()
        async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE):
            while True:
                try:
                    entries = await over_limit(session, ready["control"])
                except aiohttp.ClientConnectionError:
                    continue
                break
        assert len(entries) >= 50
        assert entries[0]["note"].startswith("control port: the process may have")
        stopped(process)


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_tls_handshakes_count(loop: str) -> None:
    """Clients that never begin the handshake hold descriptors, too."""
    words = ("serve", "--brokers", "1", "--tls", str(PEM), *CONTROL)
    with limited(loop, *words) as (process, ready):
        host, _, port = ready["bootstrap"].rpartition(":")
        silent = [socket.create_connection((host, int(port))) for _ in range(LIMIT + 50)]
        try:
            assert silent[-1].recv(1) == b""
            async with aiohttp.ClientSession() as session:
                assert len(await over_limit(session, ready["control"])) >= 50
        finally:
            for each in silent:
                each.close()
        stopped(process)


@pytest.mark.slow
def test_connections_that_fit_the_limit_are_not_mentioned() -> None:
    with limited("asyncio", "serve", "--brokers", "2", "--max-connections", "50") as (process, _):
        process.terminate()
        assert process.communicate(timeout=PATIENCE)[1] == ""


@pytest.mark.slow
def test_the_default_connections_fit_a_usual_hard_limit() -> None:
    """Three brokers of a thousand connections, where the soft limit may be raised."""
    needed = 3 * 1000 + acceptor.SPARE_FOR_CLIENTS + 100
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < needed:
        pytest.skip(f"the hard limit of open files is below {needed}")
    with limited("asyncio", "serve", "--brokers", "3", limit=needed) as (process, _):
        process.terminate()
        assert process.communicate(timeout=PATIENCE)[1] == ""


async def test_without_any_descriptor_connections_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """When files use what is left for them, the listener waits without a traceback."""
    async with MockCluster(1) as mock:
        accept = socket.socket.accept
        failed: list[socket.socket] = []

        def fail_once(listening: socket.socket) -> Any:
            if not failed:
                failed.append(listening)
                raise OSError(errno.EMFILE, "Too many open files")
            return accept(listening)

        monkeypatch.setattr(acceptor, "_PAUSE_SECONDS", 0)
        monkeypatch.setattr(socket.socket, "accept", fail_once)
        for _ in range(3):
            async with crowd(mock.bootstrap, 1) as answered:
                assert answered == [True]
        entries = mock.journal.select(event="over-limit")
        assert [entry.note for entry in entries] == ["connections wait: Too many open files"]
