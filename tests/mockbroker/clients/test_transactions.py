"""Transactional producers and readers of committed records, of every client that has them.

The adapters in ``transactions`` and ``go/transactions`` run a client's commands, which
``transactions/words.py`` lists. What happens, and what has to come of it, is here. kafka-go is
absent: 0.4.51 has no transactional producer, and its reader of committed records stops at the last
stable offset but returns aborted records and markers.
"""

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from kspec import client_catalog
from kspec.runner.install import install
from mockbroker import MockCluster
from tests.mockbroker.clients.programs import run as run_program
from tests.mockbroker.clients.test_go_clients import build
from tests.real.jars import class_path
from tests.support.full import drawn
from tests.support.toolchain import require, require_module

pytestmark = pytest.mark.slow

HERE: Final = Path(__file__).parent
ADAPTERS: Final = HERE / "transactions"
PATIENCE: Final = 60.0
TIMEOUT_MS: Final = 60_000
CHECK_MS: Final = 60_000
"""How often coordinators look for transactions that are too old, before 2.5."""
PROFILES: Final = ("kafka-2.4", "kafka-3.9", "kafka-4.4")
TOPICS: Final = ["foo:1:3", "bar:1:3"]


class CommandFailed(Exception):
    """An answer of an adapter: the client's own error."""


class Adapter:
    """A running program."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def __call__(self, *words: str) -> list[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{' '.join(words)}\n".encode())
        async with asyncio.timeout(PATIENCE):
            line = (await self._process.stdout.readline()).decode()
        verdict, *result = line.split() or ["none"]
        if verdict != "ok":
            raise CommandFailed(f"{' '.join(words)}: {line}")
        return result


@asynccontextmanager
async def started(
    command: Sequence[str], mock: MockCluster, folder: Path | None
) -> AsyncIterator[Adapter]:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=folder
    )
    try:
        adapter = Adapter(process)
        await adapter("connect", mock.bootstrap)
        yield adapter
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


# ---- how each client is started ------------------------------------------------------------------

Command = tuple[Sequence[str], Path | None]


async def python(name: str, module: str) -> Command:
    require_module(module)
    program = f"tests.mockbroker.clients.transactions.{name}"
    return (sys.executable, "-W", "ignore", "-m", program), None


async def node(name: str) -> Command:
    require("node", "npm")
    folder = (await asyncio.to_thread(install, client_catalog.client("kafkajs"))).cwd
    # A program on the command line finds the packages of its working directory.
    source = "".join((ADAPTERS / each).read_text("utf-8") for each in ("words.mjs", f"{name}.mjs"))
    return ("node", "--input-type=module", "-e", source), folder


async def go(name: str, folder: Path) -> Command:
    require("go")
    return (str(await asyncio.to_thread(build, f"transactions/{name}", folder)),), None


async def java(release: str) -> Command:
    require("java", "maven")
    jars = await asyncio.to_thread(class_path, release)
    options = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    program = str(ADAPTERS / "TransactionCommands.java")
    return ("java", *options, logging, "-cp", jars, program), None


@dataclass(frozen=True, slots=True)
class Client:
    """``command`` is what starts its adapter. ``profiles`` are of releases that it works with."""

    name: str
    command: Callable[[Path], Awaitable[Command]]
    profiles: Sequence[str] = PROFILES


CLIENTS: Final = {
    "python": (
        Client("confluent-kafka", lambda _: python("confluent", "confluent_kafka")),
        Client("kafka-python", lambda _: python("kafka_python", "kafka")),
        Client("aiokafka", lambda _: python("aiokafka_client", "aiokafka")),
    ),
    "node": (
        Client("kafkajs", lambda _: node("kafkajs")),
        Client("platformatic", lambda _: node("platformatic"), PROFILES[1:]),
    ),
    "go": (
        Client("franz-go", lambda folder: go("franz", folder)),
        Client("sarama", lambda folder: go("sarama", folder)),
    ),
    # Those of before 2.5 do not take the member that Java's clients send with offsets.
    "java": (
        Client("java-3.9.2", lambda _: java("3.9.2"), PROFILES[1:]),
        Client("java-4.4.0", lambda _: java("4.4.0"), PROFILES[1:]),
    ),
}
"""By language. The seed draws one of each, and one of its profiles; a full run has all."""


def cases() -> Iterator[Any]:
    for language, clients in CLIENTS.items():
        marks = [getattr(pytest.mark, language)] if language != "python" else []
        for client in drawn(f"{language} clients with transactions", clients, 1):
            for profile in drawn(f"profiles of {client.name}", client.profiles, 1):
                yield pytest.param(client, profile, id=f"{client.name}-{profile}", marks=marks)


# ---- what happens --------------------------------------------------------------------------------


async def commit_and_abort(run: Adapter) -> None:
    """The records of an aborted transaction are hidden from readers of committed records only."""
    await run("open", "first", "pay", str(TIMEOUT_MS))
    for value, end in (("kept", "commit"), ("dropped", "abort"), ("kept-too", "commit")):
        await run("begin", "first")
        await run("send", "first", "foo", value)
        await run(end, "first")
    assert await run("read", "foo", "read_committed", "kept-too") == ["kept", "kept-too"]
    everything = await run("read", "foo", "read_uncommitted", "kept-too")
    assert everything == ["kept", "dropped", "kept-too"]


async def consume_transform_produce(run: Adapter, mock: MockCluster) -> None:
    """Offsets go with the records: neither is there after an abort, both are after a commit."""
    for end, committed in (("abort", list[int]()), ("commit", [5])):
        await run("open", "mover", "move", str(TIMEOUT_MS), "movers", "foo")
        await run("begin", "mover")
        await run("move", "mover", "bar", "kept-too")
        await run(end, "mover")
        await mock.wait_for_transaction("move", state=f"Complete{end.title()}", timeout=PATIENCE)
        # Past the last record, or past the marker behind it.
        found = [min(each, 5) for each in mock.committed("movers").values()]
        assert found == committed
        await run("close", "mover")
    assert await run("read", "bar", "read_committed", "kept-too") == ["kept", "kept-too"]


async def fence(run: Adapter) -> None:
    """A second producer of the same transactional id aborts the first one's transaction."""
    await run("begin", "first")
    await run("send", "first", "bar", "zombie")
    await run("open", "second", "pay", str(TIMEOUT_MS))
    await run("begin", "second")
    with pytest.raises(CommandFailed):
        await run("commit", "first")
    await run("send", "second", "bar", "successor")
    await run("commit", "second")


async def time_out(run: Adapter, mock: MockCluster) -> None:
    """The coordinator aborts a transaction that lasts too long on the cluster's clock."""
    await run("open", "late", "late", str(TIMEOUT_MS))
    await run("begin", "late")
    await run("send", "late", "bar", "late")
    mock.advance(TIMEOUT_MS + CHECK_MS)
    await mock.wait_for_transaction("late", state="CompleteAbort", timeout=PATIENCE)
    with pytest.raises(CommandFailed):
        await run("commit", "late")
    await run("begin", "second")
    await run("send", "second", "bar", "last")
    await run("commit", "second")
    found = await run("read", "bar", "read_committed", "last")
    assert found == ["kept", "kept-too", "successor", "last"]


@pytest.mark.requirement(
    "DP-TXN-05", "DP-TXN-10", "DP-TXN-15", "DP-TXN-18", "DP-TXN-48", "DP-TXNOFF-02"
)
@pytest.mark.parametrize(("client", "profile"), list(cases()))
async def test_transactions(client: Client, profile: str, tmp_path: Path) -> None:
    command, folder = await client.command(tmp_path)
    async with (
        MockCluster(3, topics=TOPICS, profile=profile) as mock,
        started(command, mock, folder) as run,
    ):
        await commit_and_abort(run)
        await consume_transform_produce(run, mock)
        await fence(run)
        await time_out(run, mock)


# ---- a client that only reads --------------------------------------------------------------------


def abort_a_record(mock: MockCluster) -> None:
    """Write a record of an aborted transaction, and one behind it."""
    dropped = {
        "records": [{"value": "dropped"}],
        "transactional": True,
        "producer_id": 4000,
        "producer_epoch": 0,
        "base_sequence": 0,
    }
    mock.append("foo-0", json.dumps(dropped))
    mock.write_marker("foo-0", 4000, "abort")
    mock.append("foo-0", "kept")


@pytest.mark.requirement("DP-TXN-48")
async def test_kcat_reads_by_isolation_level() -> None:
    require("kcat")
    kcat = shutil.which("kcat") or "kcat"
    async with MockCluster(1, topics=["foo:1:1"]) as mock:
        abort_a_record(mock)
        for level, values in (("committed", ["kept"]), ("uncommitted", ["dropped", "kept"])):
            options = ("-X", f"isolation.level=read_{level}")
            out = await run_program(
                kcat, "-b", mock.bootstrap, "-C", "-t", "foo", "-e", "-q", *options
            )
            assert out.splitlines() == values
