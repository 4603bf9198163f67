"""Telemetry on sockets: released clients push their metrics, and a tester reads them."""

import asyncio
import json
import struct
import uuid
from typing import Any

import pytest

from kproto.dialects import dialect
from mockbroker import MockCluster
from mockbroker.simulation.clients.telemetry.subscriptions import subscription_id
from tests.mockbroker.clients.test_java_clients import run_java
from tests.mockbroker.control.test_command_line import ask, ctl, serving
from tests.support.requests import request_of
from tests.support.toolchain import require, require_module
from tests.telemetry.protobuf import gauge, metrics_data

KAFKA = dialect("kafka")
SECONDS = 60
ALL = [("metrics", 0, "*"), ("interval.ms", 0, "100")]


def telemetry_cluster(profile: str = "kafka-4.4") -> MockCluster:
    mock = MockCluster(1, topics=["foo:1:1"], profile=profile, client_telemetry=True)
    (result,) = mock.cluster.config_changes.alter_incrementally([(16, "all", ALL)])
    assert result.error_code == 0
    return mock


def nothing_failed(mock: MockCluster) -> None:
    for event in ("malformed", "failed", "unimplemented"):
        assert not mock.journal.select(event=event)


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.requirement("TELEM-09", "TELEM-10", "TELEM-21")
async def test_a_java_producer_pushes_its_metrics() -> None:
    require("java", "maven")
    async with telemetry_cluster() as mock:
        shown = await run_java("4.4.0", "PushMetrics.java", mock.bootstrap)
        pushes = [each for each in mock.telemetry().pushes if each.client_id == "pusher"]
        assert {each.client_instance_id for each in pushes} == {shown}
        assert not [each.problem for each in pushes if each.problem]
        names = {metric.name for each in pushes for metric in each.metrics}
        assert any(name.startswith("org.apache.kafka.producer.") for name in names), names
        types = {metric.type for each in pushes for metric in each.metrics}
        assert types >= {"gauge", "sum"}
        nothing_failed(mock)


@pytest.mark.slow
@pytest.mark.requirement("TELEM-09", "TELEM-10", "TELEM-21")
async def test_a_librdkafka_producer_pushes_its_metrics() -> None:
    confluent_kafka: Any = require_module("confluent_kafka")
    async with telemetry_cluster() as mock:
        ended = asyncio.Event()

        def produce() -> None:
            producer = confluent_kafka.Producer(
                {"bootstrap.servers": mock.bootstrap, "client.id": "pusher"}
            )
            while not ended.is_set():
                producer.produce("foo", b"value")
                producer.poll(0.05)
            producer.flush(SECONDS)

        working = asyncio.create_task(asyncio.to_thread(produce))
        try:
            push = await mock.wait_for_push("org.apache.kafka.producer.", timeout=SECONDS)
            clients = {each.client_instance_id: each for each in mock.telemetry().clients}
        finally:
            ended.set()
            await working
        assert push.client_id == "pusher"
        assert "rdkafka" in (clients[push.client_instance_id].software or "")
        nothing_failed(mock)


@pytest.mark.requirement("TELEM-19")
async def test_a_client_that_goes_is_forgotten() -> None:
    async with telemetry_cluster() as mock:
        host, _, port = mock.bootstrap.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        request = request_of("GetTelemetrySubscriptions")
        writer.write(KAFKA.encode_request(request, api_version=0, correlation_id=1, client_id="c"))
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        await reader.readexactly(size)
        assert [each.client_id for each in mock.telemetry().clients] == ["c"]
        writer.close()
        await writer.wait_closed()
        async with asyncio.timeout(SECONDS):
            while mock.telemetry().clients:
                await asyncio.sleep(0.01)


async def test_waiting_for_a_push_ends() -> None:
    async with telemetry_cluster() as mock:
        with pytest.raises(TimeoutError, match="no push has a metric 'a' after 0 s; 0 pushes"):
            await mock.wait_for_push("a", timeout=0)


@pytest.mark.slow
def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--brokers", "1", "--profile", "kafka-4.4", "--clock", "manual")
    with serving(*options, "--client-telemetry", "--control", "127.0.0.1:0") as (_, ready):
        address, url = ready["bootstrap"], ready["control"]
        values = {"metrics": "org.", "interval.ms": "200", "match": "client_id=.*"}
        configs = [{"name": name, "value": value} for name, value in values.items()]
        resource = {"resource_type": 16, "resource_name": "s", "configs": configs}
        request = request_of("IncrementalAlterConfigs", resources=[resource])
        assert ask(address, request, 1).responses[0].error_code == 0
        instance_id = uuid.UUID(int=2)
        for data in (metrics_data(gauge("org.x", 1.5)), b"\x80"):
            push = request_of(
                "PushTelemetry",
                client_instance_id=instance_id,
                subscription_id=subscription_id((), 300_000, instance_id),
                metrics=data,
            )
            # Without a client id the subscription does not match.
            assert ask(address, push, 0).error_code == 0
        code, out, err = ctl(capsys, url, "telemetry")
        assert (code, err) == (0, "")
        shown = [line for line in out.splitlines() if not line.startswith("client ")]
        assert shown == [
            "subscription s  org. every 200 ms, clients client_id=.*",
            f"push 1  None to broker 1, {len(metrics_data(gauge('org.x', 1.5)))} bytes, none",
            "  org.x gauge 1.5",
            "push 2  None to broker 1, 1 bytes, none: resource_metrics: a number at byte 0 does "
            "not end",
        ]
        code, out, _ = ctl(capsys, url, "telemetry", "--json")
        assert [each["number"] for each in json.loads(out)["pushes"]] == [1, 2]
