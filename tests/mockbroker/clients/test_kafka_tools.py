"""Kafka's own command-line tools that produce, consume and administer groups, of two releases.

What a tool prints is compared with what the mock cluster holds. ``VerifiableProducer`` and
``VerifiableConsumer``, of which Kafka's system tests are made, run in processes of their own, since
they end their JVM.
"""

import asyncio
import json
import re
from asyncio.subprocess import DEVNULL, PIPE
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from mockbroker import MockCluster
from mockbroker.simulation.log.batches.record_documents import LoggedRecord
from tests.mockbroker.clients.programs import run
from tests.mockbroker.clients.tools import Tools
from tests.support.full import drawn
from tests.support.toolchain import require
from tests.tools.kafka_tools import RELEASES, KafkaTools, class_path

pytestmark = [pytest.mark.slow, pytest.mark.java]

TOPIC_OF_ONE: Final = "foo=1"
TOPIC: Final = "foo=1,2,3/2,3,1/3,1,2/1,2,3"
PARTITIONS: Final = 4
PATIENCE: Final = 60.0
JAVA: Final = ("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@pytest.fixture(scope="module", params=drawn("kafka's tools", [*RELEASES], 1))
def kafka(request: pytest.FixtureRequest) -> Iterator[tuple[str, KafkaTools]]:
    require("java", "maven")
    with KafkaTools(request.param) as tools:
        yield request.param, tools


def cluster(release: str) -> MockCluster:
    return MockCluster(3, topics=[TOPIC], profile=f"kafka-{release.rpartition('.')[0]}")


def by_place(records: list[LoggedRecord]) -> dict[tuple[int, int], bytes | None]:
    return {(each.partition, each.offset): each.value for each in records}


def ends(mock: MockCluster) -> dict[int, int]:
    counts = dict.fromkeys(range(PARTITIONS), 0)
    for each in mock.records("foo"):
        counts[each.partition] += 1
    return counts


# ---- VerifiableProducer and VerifiableConsumer ---------------------------------------------------


def events(out: str, name: str) -> list[dict[str, Any]]:
    """The events of that name that a verifiable tool printed, a line each."""
    return [found for line in out.splitlines() if (found := json.loads(line))["name"] == name]


@asynccontextmanager
async def verifiable_consumer(
    release: str, mock: MockCluster, group: str
) -> AsyncIterator[Callable[[], Any]]:
    """A member of the group until the block ends; yields a call that ends it and returns what it
    printed."""
    process = await asyncio.create_subprocess_exec(
        *JAVA, "-cp", class_path(release), "org.apache.kafka.tools.VerifiableConsumer",
        "--bootstrap-server", mock.bootstrap, "--topic", "foo", "--group-id", group,
        "--reset-policy", "earliest", "--verbose", "--group-instance-id", "one",
        stdout=PIPE, stderr=DEVNULL,
    )  # fmt: skip
    printed = asyncio.ensure_future(process.communicate())

    async def end() -> str:
        process.terminate()
        async with asyncio.timeout(PATIENCE):
            out, _ = await printed
        return out.decode()

    try:
        yield end
    finally:
        if process.returncode is None:
            process.kill()
        await printed


@pytest.mark.requirement("DP-GROUP-09", "DP-OFFSET-23", "DP-MIGRATE-08")
async def test_what_the_verifiable_producer_sent_is_what_the_consumer_reads(kafka):
    release, _ = kafka
    async with cluster(release) as mock:
        tools = Tools(kafka, mock)
        out = await run(
            *JAVA, "-cp", class_path(release), "org.apache.kafka.tools.VerifiableProducer",
            "--bootstrap-server", mock.bootstrap, "--topic", "foo", "--max-messages", "300",
            "--acks", "-1", "--repeating-keys", "20",
        )  # fmt: skip
        sent = {
            (each["partition"], each["offset"]): each["value"].encode()
            for each in events(out, "producer_send_success")
        }
        (total,) = events(out, "tool_data")
        assert (total["sent"], total["acked"], len(sent)) == (300, 300, 300)
        assert sent == by_place(mock.records("foo"))

        async with verifiable_consumer(release, mock, "readers") as end:
            async with asyncio.timeout(PATIENCE):
                while sum(mock.committed("readers").values()) < 300:
                    await asyncio.sleep(0.05)
            (member,) = mock.groups()["readers"].members
            (row,) = await tools.table(
                "consumer-groups", "--describe", "--group", "readers", "--members"
            )
            assert row["CONSUMER-ID"] == member.member_id
            assert (row["HOST"], row["#PARTITIONS"]) == ("/127.0.0.1", "4")
            printed = await end()
        read = {
            (each["partition"], each["offset"]): each["value"].encode()
            for each in events(printed, "record_data")
        }
        assert read == sent
        assert all(each["success"] for each in events(printed, "offsets_committed"))
        assert {index: mock.committed("readers")["foo", index] for index in ends(mock)} == ends(
            mock
        )


# ---- consoles, offsets and groups ----------------------------------------------------------------


@pytest.mark.requirement("DP-OFFSET-13", "DP-OFFSET-20", "DP-OFFSET-24", "DP-LISTOFF-08")
async def test_a_group_reads_again_after_its_offsets_were_reset(kafka, tmp_path):
    release, _ = kafka
    async with cluster(release) as mock:
        tools = Tools(kafka, mock)
        reader = tools.since_4("--reader-property", "--property")
        await tools.run(
            "console-producer", "--topic", "foo", reader, "parse.key=true",
            reader, "parse.headers=true",
            text="".join(f"h:{i}\tk{i}\tv{i}\n" for i in range(30)),
        )  # fmt: skip
        everything = sorted(
            f"Partition:{each.partition}\tOffset:{each.offset}\th:{i}\tk{i}\tv{i}"
            for i, each in enumerate(sorted(mock.records("foo"), key=number))
            if each.headers == (("h", b"%d" % i),)
        )
        assert len(everything) == 30

        assert await consume(tools) == everything
        assert await tools.run("consumer-groups", "--list") == ["readers"]
        described = await tools.table("consumer-groups", "--describe", "--group", "readers")
        assert {
            int(row["PARTITION"]): (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"])
            for row in described
        } == {index: (str(end), str(end), "0") for index, end in ends(mock).items() if end}

        every = ("--group", "readers", "--topic", "foo")
        reset = await tools.table(
            "consumer-groups", "--reset-offsets", "--to-earliest", "--execute", *every
        )
        assert {row["PARTITION"]: row["NEW-OFFSET"] for row in reset} == dict.fromkeys("0123", "0")
        assert await consume(tools) == everything

        end = ends(mock)[0]
        assert await tools.run("get-offsets", "--topic", "foo") == [
            f"foo:{index}:{each}" for index, each in ends(mock).items()
        ]
        plan = tmp_path / "delete.json"
        plan.write_text(
            json.dumps(
                {"version": 1, "partitions": [{"topic": "foo", "partition": 0, "offset": end - 1}]}
            )
        )
        deleted = await tools.run("delete-records", "--offset-json-file", str(plan))
        assert deleted[-1] == f"partition: foo-0\tlow_watermark: {end - 1}"
        found = await tools.run("get-offsets", "--topic-partitions", "foo:0", "--time", "earliest")
        assert found == [f"foo:0:{end - 1}"]

        await tools.run("consumer-groups", "--delete-offsets", *every)
        assert mock.committed("readers") == {}
        await tools.run("consumer-groups", "--reset-offsets", "--to-latest", "--execute", *every)
        await tools.run("consumer-groups", "--delete", "--group", "readers")
        assert mock.groups() == {}


def number(record: LoggedRecord) -> int:
    """Of the record with the value v7: 7."""
    return int((record.value or b"")[1:])


async def consume(tools: Tools) -> list[str]:
    """What the console consumer prints of 30 records, in order."""
    shown = tools.since_4("--formatter-property", "--property")
    printed = ("partition", "offset", "key", "headers")
    lines = await tools.run(
        "console-consumer", "--topic", "foo", "--group", "readers", "--max-messages", "30",
        "--from-beginning", "--timeout-ms", "30000",
        *(word for name in printed for word in (shown, f"print.{name}=true")),
    )  # fmt: skip
    return sorted(lines)


# ---- measurements --------------------------------------------------------------------------------


async def test_the_tools_that_measure(kafka: tuple[str, KafkaTools]) -> None:
    release, _ = kafka
    async with cluster(release) as mock:
        tools = Tools(kafka, mock)
        produced = await tools.bare(
            "producer-performance", "--topic", "foo", "--num-records", "2000",
            "--record-size", "100", "--throughput", "-1",
            tools.since_4("--command-property", "--producer-props"),
            f"bootstrap.servers={mock.bootstrap}",
        )  # fmt: skip
        assert re.match(r"2000 records sent, ", produced[-1])
        assert sum(ends(mock).values()) == 2000
        consumed = await tools.run(
            "consumer-performance", "--topic", "foo",
            tools.since_4("--num-records", "--messages"), "2000",
        )  # fmt: skip
        names, cells = (line.split(", ") for line in consumed[-2:])
        assert dict(zip(names, cells, strict=True))["data.consumed.in.nMsg"] == "2000"
        values = (mock.bootstrap, "foo", "100", "all", "50")
        options = ("--bootstrap-server", "--topic", "--num-records", "--producer-acks",
                   "--record-size")  # fmt: skip
        named = [word for pair in zip(options, values, strict=True) for word in pair]
        latency = await tools.bare(
            "end-to-end-latency", *(values if release.startswith("3.") else named)
        )
        assert re.match(r"Percentiles: 50th = \d+, 99th = \d+, 99.9th = \d+", latency[-1])
        assert sum(ends(mock).values()) == 2100


async def test_features_and_the_quorum(kafka: tuple[str, KafkaTools]) -> None:
    async with cluster(kafka[0]) as mock:
        tools = Tools(kafka, mock)
        name, level = tools.since_4(("transaction.version", 1), ("kraft.version", 1))
        kind = tools.since_4("downgrade", "upgrade")
        printed = await tools.run("features", kind, "--feature", f"{name}={level}")
        assert printed[-1].startswith(f"{name} was {kind}d to {level}"), printed
        rows = [line.split() for line in await tools.run("features", "describe")]
        levels = {row[1]: row[row.index("FinalizedVersionLevel:") + 1] for row in rows}
        assert levels[name] == str(level)
        assert mock.cluster.features.level(name) == level
        lines = dict(
            line.split(":", 1)
            for line in await tools.run("metadata-quorum", "describe", "--status")
            if ":" in line
        )
        assert lines["LeaderId"].strip() == "1"


@pytest.mark.requirement("TOKEN-14")
async def test_delegation_tokens(kafka: tuple[str, KafkaTools], tmp_path: Path) -> None:
    """The tool uses Java's Admin; with the token as its own login it may only describe topics."""
    mechanism = "SCRAM-SHA-512"

    def login(name: str, secret: str, more: str = "") -> tuple[str, str]:
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        path = tmp_path / f"{name}.properties"
        path.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
            f'sasl.jaas.config={module} required username="{name}" password="{secret}"{more};\n'
        )
        return "--command-config", str(path)

    async with MockCluster(
        1, topics=[TOPIC_OF_ONE], profile=f"kafka-{kafka[0].rpartition('.')[0]}",
        sasl=[f"{mechanism}:alice:secret"], broker_configs={"delegation.token.secret.key": "key"},
    ) as mock:  # fmt: skip
        tools = Tools(kafka, mock)
        alice = login("alice", "secret")
        await tools.run(
            "delegation-tokens", *alice, "--create", "--max-life-time-period", "3600000",
            "--renewer-principal", "User:bob",
        )  # fmt: skip
        (token,) = mock.cluster.tokens.all
        assert (token.owner, token.renewers) == ("User:alice", ("User:bob",))
        assert token.max_ms - token.issued_ms == 3_600_000
        secret = b64encode(mock.cluster.tokens.hmac_of(token.token_id)).decode()
        owner = ("--owner-principal", "User:alice")
        shown = await tools.run("delegation-tokens", *alice, "--describe", *owner)
        assert shown[-1].split()[:5] == [
            token.token_id, secret, "User:alice", "User:alice", "[User:bob]",
        ]  # fmt: skip
        holder = login(token.token_id, secret, ' tokenauth="true"')
        assert await tools.run("topics", *holder, "--list") == ["foo"]
        refused = await kafka[1].run(
            "delegation-tokens", "--bootstrap-server", mock.bootstrap, *holder, "--create",
            "--max-life-time-period", "-1",
        )  # fmt: skip
        assert refused.code == 1
        assert "UnsupportedByAuthenticationException" in refused.err
        period = ("--renew-time-period", "60000")
        await tools.run("delegation-tokens", *alice, "--renew", "--hmac", secret, *period)
        (renewed,) = mock.cluster.tokens.all
        assert renewed.expires_ms < token.expires_ms
        period = ("--expiry-time-period", "-1")
        await tools.run("delegation-tokens", *alice, "--expire", "--hmac", secret, *period)
        assert mock.cluster.tokens.all == ()
