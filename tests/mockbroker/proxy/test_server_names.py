"""Brokers that share a listener, and are told apart by the host name that a client asks for."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.proxy.kafka_proxy import KafkaProxy, ProxyOptions
from mockbroker.proxy.server_names import NamePattern
from tests.mockbroker.proxy.conftest import address
from tests.mockbroker.simulation.security.test_tls import client_context, server_context
from tests.mockbroker.wire import PATIENCE, Wire

Proxied = Callable[..., Any]


async def call(proxy: KafkaProxy, name: str | None) -> Wire:
    """A connection to the only port, asking for that host."""
    context = client_context()
    context.check_hostname = False
    host, port = address(proxy.bootstrap)
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(
            host, port, ssl=context, server_hostname=name or host
        )
    return Wire(reader, writer, proxy.dialect)


@pytest.mark.requirement("DP-PROXY-31")
async def test_the_name_leads_to_the_broker(proxied: Proxied) -> None:
    async with MockCluster(brokers=3) as mock:
        proxy = await proxied(mock, tls=server_context(), sni=NamePattern("broker-{id}.kafka.test"))
        _, port = address(proxy.bootstrap)
        assert set(proxy.addresses.values()) == {proxy.bootstrap}
        mock.journal.clear()
        wires = []
        for name, node_id in [("broker-2.kafka.test", 2), ("BROKER-3.KAFKA.TEST", 3),
                              ("kafka.test", -1), (None, -1)]:  # fmt: skip
            wire = await call(proxy, name)
            wires.append(wire)
            body = await wire.ask("Metadata", 9, topics=[])
            assert [(each.node_id, each.host, each.port) for each in body.brokers] == [
                (n, f"broker-{n}.kafka.test", port) for n in (1, 2, 3)
            ]
            assert proxy.journal.select(api=3)[-1].broker_id == node_id
        asked = [each.broker_id for each in mock.journal.select(api=3, direction="request")]
        assert asked == [2, 3, 1, 1]
        connections = {row["name"]: row["connections"] for row in proxy.to_dict()["listeners"]}
        assert connections == {"bootstrap": 2, "broker 1": 0, "broker 2": 1, "broker 3": 1}
        assert len(proxy.connections) == 4
        # A step on one broker leaves the others.
        proxy.run_command("drop-upstream 2")
        assert await wires[0].closed() == b""
        await wires[1].ask("Metadata", 9, topics=[])
        for wire in wires:
            wire.writer.close()


@pytest.mark.requirement("DP-PROXY-31")
async def test_a_broker_that_nobody_knows(proxied: Proxied) -> None:
    async with MockCluster(brokers=1) as mock:
        proxy = await proxied(mock, tls=server_context(), sni=NamePattern("b{id}.test:9999"))
        wire = await call(proxy, "b7.test")
        assert await wire.closed() == b""
        events = proxy.journal.select(event="upstream-unreachable")
        assert [each.broker_id for each in events] == [7]
        wire = await call(proxy, "b1.test")
        body = await wire.ask("Metadata", 9, topics=[])
        assert [(each.host, each.port) for each in body.brokers] == [("b1.test", 9999)]
        wire.writer.close()


@pytest.mark.requirement("DP-PROXY-31")
def test_patterns() -> None:
    pattern = NamePattern("broker-{id}.kafka.test:19092")
    assert (pattern.host(12), pattern.port) == ("broker-12.kafka.test", 19092)
    assert NamePattern("{id}.test").port is None
    assert pattern.broker_id("broker-0.kafka.test") == 0
    for other in ("", "broker-.kafka.test", "broker-1xkafka.test", "broker-1.kafka.test.",
                  "xbroker-1.kafka.test", "broker--1.kafka.test"):  # fmt: skip
        assert pattern.broker_id(other) is None
    for wrong in ("kafka.test", "{id}-{id}.test", "{id}.test:99999"):
        with pytest.raises(ClusterError):
            NamePattern(wrong)
    pattern = NamePattern("{id}.test")
    for options in ({}, {"tls": server_context(), "advertise": ("host", None)}):
        with pytest.raises(ClusterError, match="brokers by host name need TLS"):
            ProxyOptions(upstream=[("a", 1)], sni=pattern, **options)  # type: ignore[arg-type]


async def test_the_number_of_brokers_is_bounded_without_listeners_too(proxied: Proxied) -> None:
    async with MockCluster(brokers=2) as mock:
        options = {"tls": server_context(), "sni": NamePattern("broker-{id}.test")}
        proxy = await proxied(mock, max_targets=3, **options)
        proxy._endpoint_for("", "broker", 3, "h", 9092)
        with pytest.raises(ClusterError, match="names more than 3 brokers and controllers"):
            proxy._endpoint_for("", "broker", 4, "h", 9092)
        assert set(proxy.brokers) == {1, 2, 3}
