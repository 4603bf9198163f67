"""Kafka's own Java producer and consumer, of two releases, against a mock cluster."""

import asyncio
from pathlib import Path

import pytest

from mockbroker import MockCluster
from tests.mockbroker.clients.programs import run
from tests.mockbroker.simulation.fetching.fetching import append
from tests.real.jars import class_path
from tests.support.full import drawn
from tests.support.toolchain import require

HERE = Path(__file__).parent
TOPIC = "foo=1,2,3/2,3,1/3,1,2/1,2,3"


async def run_java(release: str, program: str, bootstrap: str) -> str:
    """Run a program with the clients of a release, and return its last line."""
    jars = await asyncio.to_thread(class_path, release)
    options = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    out = await run("java", *options, logging, "-cp", jars, str(HERE / program), bootstrap)
    return out.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.requirement("DP-LISTOFF-08", "DP-GROUP-09")
@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
async def test_the_java_clients(release: str) -> None:
    require("java", "maven")
    async with MockCluster(
        3, topics=[TOPIC], profile=f"kafka-{release.rpartition('.')[0]}"
    ) as mock:
        assert await run_java(release, "RoundTrip.java", mock.bootstrap) == "ok 60"


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.requirement("DP-TXN-10", "DP-TXN-15", "DP-TXN-48", "DP-TXNOFF-02", "DP-TXN-05")
@pytest.mark.parametrize("release", drawn("Java transactions", ["3.9.2", "4.4.0"], 1))
async def test_the_java_transactions(release: str) -> None:
    require("java", "maven")
    profile = f"kafka-{release.rpartition('.')[0]}"
    async with MockCluster(3, topics=[TOPIC, "bar:1:3"], profile=profile) as mock:
        assert await run_java(release, "Transactions.java", mock.bootstrap) == "ok 15"


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.requirement(
    "DP-CGH-18", "DP-MIGRATE-02", "DP-MIGRATE-03", "DP-MIGRATE-04", "DP-RECON-07"
)
@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
async def test_java_consumers_of_both_protocols(release: str) -> None:
    require("java", "maven")
    configs = {
        "group.consumer.heartbeat.interval.ms": "200",
        "group.consumer.assignment.interval.ms": "0",
    }
    async with MockCluster(3, topics=[TOPIC], profile="kafka-4.4", broker_configs=configs) as mock:
        assert await run_java(release, "ConsumerGroups.java", mock.bootstrap) == "ok"


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.requirement("DP-SHARE-05", "DP-SHARE-10", "DP-SHARE-12", "DP-SHARE-27")
async def test_java_share_consumers() -> None:
    require("java", "maven")
    configs = {
        "group.share.heartbeat.interval.ms": "200",
        "group.share.assignment.interval.ms": "0",
    }
    topics = ["foo:1:1", "bar:2:1"]
    async with MockCluster(2, topics=topics, profile="kafka-4.4", broker_configs=configs) as mock:
        mock.cluster.config_changes.alter_incrementally(
            [(32, "g", [("share.auto.offset.reset", 0, "earliest")])]
        )
        append(mock.cluster, *(b"%d" % each for each in range(10)), tp=("foo", 0))
        for index in (0, 1):
            append(mock.cluster, *(b"%d" % each for each in range(5)), tp=("bar", index))
        counts = ", ".join(f"{each}={1 + (each % 2 == 0)}" for each in range(10))
        line = await run_java("4.4.0", "ShareConsumers.java", mock.bootstrap)
        assert line == f"{{{counts}}} 10"
        view = mock.group("g")
        assert view is not None
        assert view.share_partitions is not None
        # What was stored last names the offset at which the partition began then, so that what is
        # loaded when the group has no more sessions still has the records behind it.
        in_flight = {each.state for part in view.share_partitions for each in part.in_flight}
        assert (view.state, in_flight) == ("Empty", {"Acknowledged"})
