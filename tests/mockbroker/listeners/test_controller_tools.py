"""Kafka's own tools with ``--bootstrap-controller``, of 3.9 and of the newest release, against
controllers of the mock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from mockbroker import MockCluster
from mockbroker.proxy.kafka_proxy import KafkaProxy, ProxyOptions, UpstreamListener
from tests.mockbroker.clients.tools import Tools
from tests.mockbroker.proxy.conftest import address
from tests.support.toolchain import require
from tests.tools.kafka_tools import NEWEST, KafkaTools

pytestmark = [pytest.mark.slow, pytest.mark.java]

PROFILES = {"3.9.2": ("kafka-3.9",), NEWEST: ("kafka-3.9", "kafka-4.4")}
"""The clusters that the tools of a release are run against."""
COMBINED = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
}


@pytest.fixture(scope="module", params=PROFILES)
def kafka(request: pytest.FixtureRequest) -> Iterator[tuple[str, KafkaTools]]:
    require("java", "maven")
    with KafkaTools(request.param) as tools:
        yield request.param, tools


class ControllerTools(Tools):
    """The tools, with the controllers as bootstrap."""

    async def run(self, tool: str, *arguments: str, text: str = "") -> list[str]:
        return await self.bare(
            tool, "--bootstrap-controller", self.bootstrap, *arguments, text=text
        )


async def check_tools(
    kafka: tuple[str, KafkaTools], mock: MockCluster, nodes: list[int], bootstrap: str
) -> None:
    tools = ControllerTools(kafka, mock)
    tools.bootstrap = bootstrap
    status = dict(line.split(":", 1) for line in await tools.run(
        "metadata-quorum", "describe", "--status"))  # fmt: skip
    assert status["LeaderId"].strip() == str(nodes[0])
    assert status["ClusterId"].strip() == mock.cluster.state.cluster_id
    for node in nodes:
        assert str(node) in status["CurrentVoters"]
    rows = [
        line.split() for line in await tools.run("metadata-quorum", "describe", "--replication")
    ]
    found = {int(row[0]): row[-1] for row in rows[1:]}
    assert {each for each, role in found.items() if role != "Observer"} == {*nodes}
    assert found[nodes[0]] == "Leader"
    assert {each for each, role in found.items() if role == "Observer"} == {1, 2, 3} - {*nodes}

    features = "\n".join(await tools.run("features", "describe"))
    for name, level in mock.cluster.features.finalized.items():
        assert name in features
        assert level or name != "metadata.version"

    described = "\n".join(await tools.run(
        "configs", "--describe", "--all", "--entity-type", "brokers",
        "--entity-name", str(nodes[0])))  # fmt: skip
    assert "num.partitions=" in described
    await tools.run("configs", "--alter", "--entity-type", "brokers", "--entity-default",
                    "--add-config", "log.cleaner.threads=2")  # fmt: skip
    described = "\n".join(await tools.run(
        "configs", "--describe", "--entity-type", "brokers", "--entity-default"))  # fmt: skip
    assert "log.cleaner.threads=2" in described
    keys = {each.api_key for each in mock.journal.select(direction="request")}
    assert {18, tools.since_4(44, 33), 32, 55, 60} <= keys
    assert {each.listener for each in mock.journal.select(direction="request")} == {"CONTROLLER"}


async def test_controllers_apart_from_brokers(kafka: tuple[str, KafkaTools]) -> None:
    for profile in PROFILES[kafka[0]]:
        async with MockCluster(3, controllers=2, profile=profile) as mock:
            await check_tools(kafka, mock, [3000, 3001], mock.bootstrap_of("CONTROLLER"))


@pytest.mark.requirement("DP-PROXY-58")
async def test_brokers_that_are_controllers_through_a_proxy(kafka: tuple[str, KafkaTools]) -> None:
    for profile in PROFILES[kafka[0]]:
        async with MockCluster(3, profile=profile, broker_configs=COMBINED) as mock:
            listeners = [
                UpstreamListener(name, [address(mock.bootstrap_of(name))])
                for name in ("PLAINTEXT", "CONTROLLER")
            ]
            async with KafkaProxy(ProxyOptions(listeners=listeners)) as proxy:
                mock.journal.clear()  # the proxy's own requests, at both listeners
                bootstrap = proxy.listeners["CONTROLLER"]["bootstrap"]
                await check_tools(kafka, mock, [1, 2, 3], bootstrap)


async def test_reassignments_through_the_active_controller() -> None:
    """The tool of 3.9 does not have the option."""
    require("java", "maven")
    async with MockCluster(3, controllers=3, topics=["foo=1,2"]) as mock:
        mock.failover(2)
        with KafkaTools(NEWEST) as java:
            tools = ControllerTools((NEWEST, java), mock)
            tools.bootstrap = mock.listeners[3000]["CONTROLLER"]
            async with asyncio.timeout(60):
                lines = await tools.run("reassign-partitions", "--list")
        assert lines == ["No partition reassignments found."]
        asked = mock.journal.select(api=46, direction="request")
        assert [each.broker_id for each in asked] == [3001]
