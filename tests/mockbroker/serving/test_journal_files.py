"""``--journal FILE``: the same said as JSON lines and as a capture, and the capture opened by
Wireshark's own tshark."""

import asyncio
import contextlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kproto.journal import Entry, Journal
from mockbroker import MockCluster
from mockbroker.cli import cli
from mockbroker.cli.journals import journal_file, journal_sink
from mockbroker.errors import ClusterError
from tests.support.toolchain import absent, require_module
from wiredump.model import Exchange
from wiredump.sources import open_sources

SECONDS = 30

MISREAD_BY_TSHARK = {45, 46}
"""Seen with 4.0.17: it stops in the midst of the requests of KIP-455, as brokers take them."""


def several(stack: contextlib.ExitStack, *paths: Path) -> Callable[[Entry], None]:
    sinks = [stack.enter_context(journal_sink(path)) for path in paths]

    def sink(entry: Entry) -> None:
        for each in sinks:
            each(entry)

    return sink


async def record(folder: Path, profile: str) -> tuple[Path, Path, MockCluster]:
    """What two clients and a mock say, in a file of either kind."""
    kafka: Any = require_module("kafka")
    confluent: Any = require_module("confluent_kafka.admin")

    def session(bootstrap: str) -> None:
        admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap, client_id="python")
        try:
            admin.describe_topics(["foo"])
            with contextlib.suppress(kafka.errors.KafkaError):
                admin.alter_partition_reassignments({kafka.TopicPartition("foo", 0): [2, 1]})
            admin.list_partition_reassignments()
        finally:
            admin.close()
        other = confluent.AdminClient({"bootstrap.servers": bootstrap, "client.id": "c"})
        other.list_topics(topic="foo", timeout=10)
        other.create_topics([confluent.NewTopic("new", 1, 1)])["new"].result(10)

    lines, packets = folder / "said.jsonl", folder / "said.pcapng"
    with contextlib.ExitStack() as stack:
        journal = Journal(sink=several(stack, lines, packets))
        async with MockCluster(
            brokers=2, topics=["foo=1,2"], profile=profile, journal=journal
        ) as mock:
            work = asyncio.to_thread(session, mock.bootstrap)
            await asyncio.wait_for(work, SECONDS)
    return lines, packets, mock


def told(path: Path) -> list[Any]:
    """Every exchange, without what a capture cannot know: where in the journal it stood."""
    return sorted(
        (
            each.connection.client, each.request.offset if each.request else -1,
            each.api_key, each.api_version, each.response_version, each.correlation_id,
            each.client_id, str(each.software), each.latency_ns,
            each.request.raw if each.request else b"",
            each.response.raw if each.response else b"",
        )
        for each in open_sources([str(path)])
        if isinstance(each, Exchange)
    )  # fmt: skip


async def test_both_kinds_tell_the_same_exchanges(tmp_path: Path) -> None:
    lines, packets, mock = await record(tmp_path, "kafka-2.4")
    exchanges = told(lines)
    assert len(exchanges) == len(mock.journal.select(direction="request"))
    assert {each[4] for each in exchanges if each[2:4] == (18, 4)} == {0}  # one fell back
    assert told(packets) == exchanges


@pytest.mark.slow
async def test_tshark_reads_the_capture_as_kafka(tmp_path: Path) -> None:
    """At versions that this Wireshark knows: each request and response, and nothing malformed."""
    if shutil.which("tshark") is None:
        absent("tshark", "install Wireshark's tshark (Debian: tshark)")
    _, packets, mock = await record(tmp_path, "kafka-2.4")
    command = [
        "tshark", "-r", str(packets), "-d", "tcp.port==9092,kafka", "-T", "fields",
        "-e", "kafka.api_key", "-e", "kafka.correlation_id", "-e", "_ws.malformed",
        "-e", "_ws.expert.message", "-Y", "kafka",
    ]  # fmt: skip
    shown = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=60, check=True
    )
    rows = [line.split("\t") for line in shown.stdout.splitlines()]
    said = [entry for entry in mock.journal if entry.direction != "event"]
    assert [row[1] for row in rows] == [str(entry.correlation_id) for entry in said]
    judged = [
        (row, entry)
        for row, entry in zip(rows, said, strict=True)
        if entry.api_key not in MISREAD_BY_TSHARK and "Unsupported" not in row[3]
    ]
    assert [row[0] for row, _ in judged] == [str(entry.api_key) for _, entry in judged]
    assert not [row for row, _ in judged if row[2]]
    assert {entry.api_key for _, entry in judged} >= {3, 18, 19}


def test_other_endings_are_bad_usage() -> None:
    with pytest.raises(ClusterError, match=r"must be \.jsonl or \.pcapng"):
        journal_file("said.txt")
    result = CliRunner().invoke(cli, ["serve", "--journal", "said.pcap"])
    assert result.exit_code == 2
    assert "must be .jsonl or .pcapng" in result.output
