"""``mockbroker proxy``: what it prints, what it refuses, and the files it writes."""

import asyncio
import json
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kproto.client import Admin, Connection
from kproto.journal import read_journal
from mockbroker import MockCluster
from mockbroker.cli.proxy import proxy as command
from tests.mockbroker.proxy.conftest import address
from tests.mockbroker.wire import PATIENCE
from tests.support.requests import request_of


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[tuple[dict[str, Any], list[str]]]:
    """The first line of a proxy in a process of its own, and, at the end, its stderr."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mockbroker", "proxy", *arguments, "--exit-with-parent",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    said: list[str] = []
    try:
        async with asyncio.timeout(60):
            line = await process.stdout.readline()
        if not line:
            raise AssertionError((await process.stderr.read()).decode())
        yield json.loads(line), said
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            said += (await process.stderr.read()).decode().splitlines()
            await process.wait()
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.requirement("DP-PROXY-24", "DP-PROXY-56")
async def test_it_runs_until_it_is_stopped(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    async with MockCluster(brokers=2, profile="kafka-4.4") as mock:
        options = ("--upstream", mock.bootstrap, "--profile", "kafka-2.4", "--journal", str(file))
        async with running(*options) as (first, said):
            assert sorted(first["brokers"]) == ["1", "2"]
            host, port = address(first["bootstrap"])
            async with await Connection.open(host, port) as connection:
                body = await connection.request(request_of("Metadata", topics=[]))
            assert {str(each.node_id): f"{each.host}:{each.port}" for each in body.brokers} == (
                first["brokers"]
            )
    assert [each for each in said if "SASL passes through" in each]
    lost = [each for each in said if each.startswith("mockbroker: --profile kafka-2.4: ")]
    assert any("topic ids" in each for each in lost)
    entries = list(read_journal(file.read_text().splitlines(keepends=True)))
    assert [each.api_key for each in entries if each.direction == "response"] == [18, 18, 3]
    assert all(each.decode().body is not None for each in entries if each.direction != "event")


@pytest.mark.slow
@pytest.mark.requirement("DP-PROXY-34")
async def test_it_serves_apis_that_the_cluster_lacks() -> None:
    async with MockCluster(brokers=2, topics=["foo=1,2"], profile="kafka-2.3") as mock:
        options = ("--upstream", mock.bootstrap, "--serve", "45,46", "--control", "127.0.0.1:0")
        async with running(*options) as (first, said):
            async with Admin(first["bootstrap"]) as admin:
                await admin.alter_partition_reassignments({("foo", 0): [2, 1]}).all()
                assert list(await admin.list_partition_reassignments()) == []

            def state() -> Any:
                with urllib.request.urlopen(first["serve_control"] + "/state", timeout=60) as body:
                    return json.loads(body.read())

            partitions = (await asyncio.to_thread(state))["topics"]["foo"]
            assert [each["replicas"] for each in partitions.values()] == [[2, 1]]
        assert any("ALTER_PARTITION_REASSIGNMENTS" in each for each in said)
        nowhere = mock.bootstrap
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mockbroker", "proxy", "--upstream", nowhere, "--serve", "46",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert (process.returncode, out) == (1, b"")
    assert b"needs the upstream's brokers and topics" in err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "Missing option '--upstream'"),
        (["--upstream", ""], "use HOST:PORT"),
        (["--upstream", "a:b"], "the port must be a number"),
        (["--upstream", "a", "--profile", "kafka-9.9"], "kafka-9.9"),
        (["--upstream", "a", "--feature", "x"], "such as transaction.version=1"),
        (["--upstream", "a", "--sni", "x"], "names no broker; use a host such as broker-{id}"),
        (["--upstream", "a", "--sni", "{id}.test"], "brokers by host name need TLS"),
        (["--upstream", "a", "--serve", "45,x"], "use API keys with commas between"),
        (["--upstream", "a", "--serve", "18"], "is about the connection to the upstream"),
        (["--upstream", "a", "--serve", "46", "--serve-profile", "kafka-9.9"], "kafka-9.9"),
        (["--upstream", "a", "--journal", "x.txt"], "the extension must be .jsonl or .pcapng"),
        (["--upstream", "a", "--upstream-tls", "none.pem"], "cannot be used"),
        (["--upstream", "a", "--upstream-tls-any-name"], "needs --upstream-tls"),
        (["--upstream", "a", "--upstream-tls-cert", "x"], "needs --upstream-tls"),
        (["--upstream", "a", "--tls-client-ca", "x"], "--tls-client-ca needs --tls"),
    ],
)
def test_what_cannot_be_is_a_usage_error(arguments: list[str], problem: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert problem in result.output
