"""An upstream with several listeners, one of them of controllers: clients keep to theirs."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from mockbroker import MockCluster
from mockbroker.cli import cli
from mockbroker.errors import ClusterError
from mockbroker.faults.rule import Fault
from mockbroker.options.addresses import parse_endpoint
from mockbroker.proxy.kafka_proxy import KafkaProxy, ProxyOptions, UpstreamListener
from tests.mockbroker.proxy.conftest import address
from tests.mockbroker.wire import connected
from tests.support.ports import free_ports

PEM = Path(__file__).parents[2] / "client" / "localhost.pem"
PROTOCOLS = {"INTERNAL": "PLAINTEXT", "EXTERNAL": "SSL", "CONTROLLER": "PLAINTEXT"}
CONFIGS = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": ",".join(f"{name}://127.0.0.1:0" for name in PROTOCOLS),
    "listener.security.protocol.map": ",".join(map(":".join, PROTOCOLS.items())),
    "inter.broker.listener.name": "INTERNAL",
    "ssl.keystore.location": str(PEM),
}


def upstreams(mock: MockCluster) -> list[UpstreamListener]:
    return [
        UpstreamListener(name, [address(mock.bootstrap_of(name))], protocol)
        for name, protocol in PROTOCOLS.items()
    ]


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(PEM))


@asynccontextmanager
async def proxied() -> AsyncIterator[tuple[MockCluster, KafkaProxy]]:
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(PEM)
    unnamed = trusting()
    unnamed.check_hostname = False
    async with MockCluster(3, topics=["foo:1:3"], broker_configs=CONFIGS) as mock:
        options = ProxyOptions(listeners=upstreams(mock), tls=served, upstream_tls=unnamed)
        async with KafkaProxy(options) as proxy:
            yield mock, proxy


@pytest.mark.requirement("DP-PROXY-58")
async def test_clients_keep_to_the_listener_that_they_came_in_on() -> None:
    async with proxied() as (mock, proxy):
        found = proxy.listeners
        ports = {
            name: {parse_endpoint(at) for at in each["brokers"].values()}
            for name, each in found.items()
        }
        assert len(set().union(*ports.values())) == 6
        for name, tls in (("INTERNAL", None), ("EXTERNAL", trusting())):
            async with connected(mock, found[name]["bootstrap"], tls=tls) as wire:
                metadata = await wire.ask("Metadata", 8, topics=None)
            assert {(each.host, each.port) for each in metadata.brokers} == ports[name]
            mock.journal.clear()
            async with connected(mock, found[name]["brokers"]["2"], tls=tls) as wire:
                await wire.ask("Metadata", 8, topics=None)
            (entry,) = mock.journal.select(api=3, direction="request")
            assert (entry.broker_id, entry.listener) == (2, name)


@pytest.mark.requirement("DP-PROXY-58")
async def test_controllers_are_reached_from_controllers_and_from_brokers() -> None:
    async with proxied() as (mock, proxy):
        own = {
            each["address"]
            for each in proxy.to_dict()["listeners"]
            if each["name"].startswith("controller")
        }
        assert len(own) == 3
        async with connected(mock, proxy.listeners["CONTROLLER"]["bootstrap"]) as wire:
            cluster = await wire.ask("DescribeCluster", 1, endpoint_type=2)
        assert {f"{each.host}:{each.port}" for each in cluster.brokers} == own
        async with connected(mock, proxy.bootstrap) as wire:
            topic = {"topic_name": "__cluster_metadata", "partition_index": 0}
            quorum = await wire.ask("DescribeQuorum", 2, topics=[topic])
        assert len(quorum.nodes) == 3
        for node in quorum.nodes:
            (listener,) = node.listeners
            assert f"{listener.host}:{listener.port}" in own
            mock.journal.clear()
            async with connected(mock, f"{listener.host}:{listener.port}") as wire:
                await wire.ask("DescribeCluster", 1, endpoint_type=2)
            (entry,) = mock.journal.select(api=60, direction="request")
            assert (entry.broker_id, entry.listener) == (node.node_id, "CONTROLLER")


@pytest.mark.requirement("DP-PROXY-58", "DP-CTL-63")
async def test_rules_and_speeds_select_a_listener() -> None:
    async with proxied() as (mock, proxy):
        proxy.run_command("set-latency 40ms 2/EXTERNAL")
        speeds = {
            (each["node_id"], each["listener"]): each["latency_ms"]
            for each in proxy.to_dict()["listeners"]
        }
        assert {place for place, latency in speeds.items() if latency} == {(2, "EXTERNAL")}
        with pytest.raises(ClusterError, match="nothing listens as 9; the brokers are -1, 1, 2, 3"):
            proxy.run_command("set-latency 40ms 9")
        proxy.run_command("refuse-upstream 2")
        refused = [each["listener"] for each in proxy.to_dict()["listeners"] if each["refused"]]
        assert sorted(refused) == sorted(PROTOCOLS)
        proxy.run_command("allow-upstream 2")
        (rule,) = proxy.load_faults([Fault(api=3, listener="EXTERNAL", error=29)])
        async with connected(mock, proxy.listeners["INTERNAL"]["brokers"]["1"]) as wire:
            await wire.ask("Metadata", 8, topics=None)
        assert rule.hits == 0
        address = proxy.listeners["EXTERNAL"]["brokers"]["1"]
        async with connected(mock, address, tls=trusting()) as wire:
            await wire.ask("Metadata", 8, topics=None)
        assert rule.hits == 1
        requests = proxy.journal.select(api=3, direction="request")
        assert [each.listener for each in requests] == ["INTERNAL", "EXTERNAL"]


@pytest.mark.requirement("DP-PROXY-58")
async def test_ports_of_a_further_listener_are_above() -> None:
    (port,) = free_ports(1)
    base = port - 1
    async with MockCluster(1, broker_configs=CONFIGS) as mock:
        options = ProxyOptions(
            listeners=upstreams(mock)[::2], broker_port_base=base, advertise=("h", 5000)
        )
        async with KafkaProxy(options) as proxy:
            assert proxy.addresses == {1: f"127.0.0.1:{base + 1}"}
            names = list(proxy.listeners)
            assert proxy._endpoint_for(names[0], "broker", 1, "u", 9092) == ("h", 5001)
            assert proxy._endpoint_for(names[1], "broker", 2, "u", 9093) == ("h", 5102)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--upstream", "a:1", "--upstream", "b:2"], "several --upstream need names"),
        (["--upstream", "A=a:1", "--upstream", "a=b:2"], "two listeners of the upstream have"),
        (["--upstream", "A=TLS://a:1"], "use NAME=PROTOCOL://HOST:PORT with the protocol PLAIN"),
        (["--upstream", "SSL://a:1"], "use NAME=PROTOCOL://HOST:PORT"),
        (["--upstream", "A=SSL://a:1"], "listener A is SSL; say which authorities have signed its"),
        (["--upstream", "A="], "use HOST:PORT, or several with commas between"),
    ],
)
def test_refusals(words: list[str], problem: str) -> None:
    result = CliRunner().invoke(cli, ["proxy", *words])
    text = re.sub(r"\s+", " ", result.output)
    assert (result.exit_code, problem in text) == (2, True), text
