"""Elections as people meet them: on the command line, and by released clients."""

import json
import socket
from typing import Any

import pytest

import kproto
from mockbroker import MockCluster
from tests.mockbroker.control.test_command_line import ctl, serving
from tests.mockbroker.serving.test_real_clients import (
    in_thread,
    kafka_python_admin,
    librdkafka_admin,
    nothing_went_wrong,
    sent,
)
from tests.support.toolchain import require_module

PATIENCE = 30


def open_to(address: str) -> socket.socket:
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def ask(sock: socket.socket, topic: str) -> None:
    """The election of partition 0, in KIP-183's own layout."""
    request: Any = kproto.dialect("kip-183").message("ElectPreferredLeadersRequest")
    wanted = [request.STRUCTS["TopicPartitions"](topic=topic, partition_id=[0])]
    body = request(topic_partitions=wanted, timeout_ms=60_000)
    sock.sendall(kproto.encode_request(body, api_version=0, correlation_id=1))


def hear(sock: socket.socket) -> list[int]:
    """The error codes of the partitions."""
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        chunk = sock.recv(65536)
        assert chunk, "closed"
        data += chunk
    _, body = kproto.decode_response(data, api_key=43, api_version=0)
    answer: Any = body
    return [
        row.error_code for each in answer.replica_election_results for row in each.partition_result
    ]


@pytest.mark.slow
def test_serve_and_ctl(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--profile", "kip-183", "--clock", "manual", "--propagation", "200ms",
               "--busy-elections", "error", "--topic", "foo=1,2,3", "--topic", "bar=1,2,3",
               "--control", "127.0.0.1:0"]  # fmt: skip
    with serving(*options) as (_, ready):

        def do(*words: str) -> str:
            code, out, err = ctl(capsys, ready["control"], *words)
            assert (code, err) == (0, "")
            return out

        for step in ("stop-broker 1", "start-broker 1", "join-isr foo-0 1", "failover 1"):
            do(*step.split())
        do("advance", "1s")
        assert "ElectionsHeld" in do("hold-elections")
        broker = ready["brokers"]["1"]
        with open_to(broker) as first, open_to(broker) as second:
            ask(first, "foo")
            while "ElectionEnqueued" not in do("log"):
                pass
            ask(second, "bar")
            assert hear(second) == [7], "busy is an error here"
            assert "ElectionProcessed" in do("release-elections")
            assert json.loads(do("state", "--json"))["topics"]["foo"]["0"]["leader"] == 1
            journal = do("journal", "--api", "43", "--json")
            assert len(json.loads(journal)) == 3, "two requests, and the answer to the second"
            do("advance", "200ms")
            assert hear(first) == [0]
        assert "PropagationChanged" in do("propagation", "0ms")
        code, _, err = ctl(capsys, ready["control"], "release-elections")
        assert (code, err) == (1, "mockbroker: elections are not held back\n")


async def led_by_another(mock: MockCluster) -> None:
    await mock.stop_broker(1)
    await mock.start_broker(1)
    mock.join_isr("foo-0", 1)
    mock.failover(1)
    mock.set_propagation(50)


@pytest.mark.parametrize("profile", ["kip-183", "kafka-2.3", "kafka-2.4", "kafka-3.9-zk"])
async def test_kafka_python(profile: str) -> None:
    """It waits until the broker has heard of the new leader."""
    kafka: Any = require_module("kafka")
    async with MockCluster(topics=["foo=1,2,3"], profile=profile) as mock:
        await led_by_another(mock)
        admin = await in_thread(lambda: kafka_python_admin(kafka, mock))
        try:
            for _ in range(2):
                await in_thread(lambda: admin.elect_leaders(0, {"foo": [0]}))
                seen = mock.cluster.controller.metadata_view(1).topics["foo"].partitions[0]
                assert seen.leader == 1
        finally:
            await in_thread(admin.close)
        assert len(sent(mock, 43)) == 2
        nothing_went_wrong(mock)


@pytest.mark.parametrize("profile", ["kip-183", "kafka-2.4", "kafka-3.9-zk"])
async def test_librdkafka(profile: str) -> None:
    package: Any = require_module("confluent_kafka")
    module: Any = require_module("confluent_kafka.admin")
    async with MockCluster(topics=["foo=1,2,3", "bar=2,1"], profile=profile) as mock:
        await led_by_another(mock)
        admin = librdkafka_admin(module, mock)
        partitions = [package.TopicPartition(name, 0) for name in ("foo", "bar", "nope")]
        preferred = package.ElectionType.PREFERRED
        result = await in_thread(
            lambda: admin.elect_leaders(preferred, partitions).result(PATIENCE)
        )
        codes = {each.topic: error and error.code() for each, error in result.items()}
        needless = None if profile == "kip-183" else 84
        assert codes == {"foo": None, "bar": needless, "nope": 3}
        nothing_went_wrong(mock)
