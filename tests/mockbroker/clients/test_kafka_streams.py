"""Kafka Streams against a mock cluster, with exactly-once semantics."""

import asyncio
import os
from pathlib import Path
from typing import Any, Final

import pytest

from mockbroker import MockCluster
from tests.mockbroker.clients.programs import run
from tests.mockbroker.wire import connect
from tests.support.full import drawn
from tests.support.maven import artifacts
from tests.support.requests import request_of
from tests.support.toolchain import require
from tests.tools import kafka_tools
from tests.tools.kafka_tools import JavaTools

pytestmark = [pytest.mark.slow, pytest.mark.java]

HERE: Final = Path(__file__).parent
_JACKSON: Final = "com.fasterxml.jackson.core:jackson-"
_LOGGING: Final = (("org.slf4j:slf4j-api", "1.7.36"), ("org.slf4j:slf4j-simple", "1.7.36"))
RELEASES: Final = {
    "3.9.2": (*((f"{_JACKSON}{each}", "2.16.2") for each in ("databind", "core", "annotations")),),
    "4.3.1": (
        *((f"{_JACKSON}{each}", "2.21.2") for each in ("databind", "core")),
        (f"{_JACKSON}annotations", "2.21"),
    ),
}
"""The last release of 3.x, and the newest of which Kafka Streams is on Maven Central; with what it
needs besides Kafka's jars. The stores are in memory: RocksDB is 70 MB."""
TOPICS: Final = ["in:4:3", "out:2:3"]
JAVA: Final = ("java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def class_path(release: str) -> str:
    names = ("kafka-streams", "kafka-clients")
    wanted = [(f"org.apache.kafka:{each}", release) for each in names]
    return os.pathsep.join(map(str, artifacts([*wanted, *_LOGGING, *RELEASES[release]])))


async def count_words(release: str, mock: MockCluster, protocol: str) -> str:
    """Run ``StreamsApplication.java``, and return its last line."""
    require("java", "maven")
    jars = await asyncio.to_thread(class_path, release)
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    program = str(HERE / "StreamsApplication.java")
    out = await run(*JAVA, logging, "-cp", jars, program, mock.bootstrap, protocol)
    return out.splitlines()[-1]


@pytest.mark.requirement("DP-TXN-10", "DP-TXN-15", "DP-TXNOFF-02", "DP-FETCH-06", "DP-GROUP-09")
@pytest.mark.parametrize(
    ("release", "profile"),
    drawn("Kafka Streams", [("3.9.2", "kafka-3.9"), ("4.3.1", "kafka-4.4")], 1),
)
async def test_exactly_once(release: str, profile: str) -> None:
    configs = {"group.min.session.timeout.ms": "1000"}
    async with MockCluster(3, topics=TOPICS, profile=profile, broker_configs=configs) as mock:
        protocol = "" if release.startswith("3.") else "classic"
        assert await count_words(release, mock, protocol) == "ok 560"


@pytest.mark.requirement("DP-STREAMS-03", "DP-STREAMS-05", "DP-STREAMS-13", "DP-STREAMS-17")
async def test_a_streams_group() -> None:
    configs = {
        "group.streams.heartbeat.interval.ms": "200",
        "group.streams.assignment.interval.ms": "0",
    }
    async with MockCluster(3, topics=TOPICS, profile="kafka-4.4", broker_configs=configs) as mock:
        assert await count_words("4.3.1", mock, "streams") == "ok 560"
        group = mock.group("counter")
        assert (group.type, group.state, group.members) == ("streams", "Empty", ())
        assert {"counter-by-word-repartition", "counter-counts-changelog"} <= {*mock.cluster.topics}


def plain_member(group: str, topic: str) -> Any:
    """A member that joins an application of one subtopology."""
    return request_of(
        "StreamsGroupHeartbeat",
        group_id=group,
        member_id="m",
        rebalance_timeout_ms=60_000,
        process_id="p",
        topology={"subtopology_id": "0", "source_topics": [topic]},
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
    )


@pytest.mark.requirement("DP-STREAMS-07", "DP-STREAMS-20")
async def test_kafkas_tool_describes_a_streams_group() -> None:
    require("java", "maven")
    main_class = "org.apache.kafka.tools.streams.StreamsGroupCommand"
    tool_jars = await asyncio.to_thread(kafka_tools.class_path, "4.3.1")
    async with MockCluster(1, topics=["foo:2:1"], profile="kafka-4.4") as mock:
        mock.set_offset("g", "foo-0", 0)  # makes the internal topic
        for name in ("foo-0", "foo-0", "foo-1"):
            mock.append(name, "x")
        async with connect(mock, 1) as wire:
            await wire.ask(plain_member("g", "foo"), 1)
        mock.set_offset("g", "foo-1", 0)
        with JavaTools(tool_jars, {"streams-groups": main_class}) as tools:

            async def run_tool(*arguments: str) -> list[list[str]]:
                given = ("--bootstrap-server", mock.bootstrap, *arguments)
                outcome = await tools.run("streams-groups", *given)
                assert outcome.code == 0, outcome
                return [line.split() for line in outcome.out.splitlines() if line]

            assert ["g", "Stable"] in (await run_tool("--list", "--state"))
            described = await run_tool("--describe", "--group", "g")
            assert sorted(row[1:4] for row in described[1:]) == [
                ["foo", "0", "2"],
                ["foo", "1", "1"],
            ]
            members = await run_tool("--describe", "--group", "g", "--members")
            assert members[1][:3] == ["g", "m", "p"]
