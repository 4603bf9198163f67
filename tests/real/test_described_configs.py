"""DescribeConfigs of a broker and of a topic has the same configs as that of Kafka: names, values,
types, sources, synonyms, and whether they are read-only and sensitive."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

import kproto
from kproto.messages import CreateTopicsRequest, DescribeConfigsRequest
from kproto.messages.create_topics_request import CreatableTopic
from kproto.messages.describe_configs_request import DescribeConfigsResource
from mockbroker.simulation.releases.release import Release
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.real.kafka import RealKafka
from tests.support.full import FULL
from tests.support.toolchain import require

CLUSTERS: Final = {
    "4.4.0": "kafka-4.4", "3.9.2": "kafka-3.9", "2.8.2": "kafka-2.8-zk", "2.4.1": "kafka-2.4",
}  # fmt: skip
SAMPLE: Final = ("4.4.0", "2.4.1")
TOPIC, BROKER = 2, 4
PATIENCE: Final = 60.0

GIVEN: Final = {"log.retention.minutes": "90", "log.retention.hours": "5", "log.roll.hours": "7"}


class OneBroker(RealKafka):
    """A broker whose properties file has synonyms of other configs, too."""

    def given(self) -> dict[str, str]:
        return self._zookeeper_configs(1) if self.zookeeper else self._kraft_configs(1)

    def _kraft_configs(self, broker_id: int) -> dict[str, str]:
        return super()._kraft_configs(broker_id) | GIVEN

    def _zookeeper_configs(self, broker_id: int) -> dict[str, str]:
        return super()._zookeeper_configs(broker_id) | GIVEN

    def ask(self, body: Any, version: int) -> Any:
        frame = kproto.encode_request(body, api_version=version, correlation_id=1, client_id="c")
        with socket.create_connection(("127.0.0.1", self.ports[1]), PATIENCE) as connection:
            connection.sendall(frame)
            answer = connection.makefile("rb")
            size = answer.read(4)
            frame = size + answer.read(int.from_bytes(size, "big"))
        _, response = kproto.decode_response(frame, api_key=body.API_KEY, api_version=version)
        return response

    def create_topic(self) -> None:
        """Create a topic as soon as the broker is not fenced."""
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            answer = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 4)
            if answer.topics[0].error_code == 0:
                return
            time.sleep(0.1)
        raise AssertionError(answer)


def described(answer: Any) -> Mapping[str, tuple[Any, ...]]:
    (result,) = answer.results
    assert result.error_code == 0, result.error_message
    return {
        each.name: (
            each.value, each.read_only, each.config_source, each.is_sensitive, each.config_type,
            [(synonym.name, synonym.value, synonym.source) for synonym in each.synonyms],
        )
        for each in result.configs
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.parametrize("release", CLUSTERS if FULL else SAMPLE)
def test_described_configs_are_those_of_kafka(release: str, tmp_path: Path) -> None:
    require("java", "maven")
    line = tuple(int(each) for each in release.split(".")[:2])
    zookeeper = line < (3, 0)
    version = 4 if line >= (2, 6) else 2
    with OneBroker(release, tmp_path, zookeeper=zookeeper, broker_ids=(1,)) as kafka:
        kafka.create_topic()
        cluster = simulated_cluster(
            1, topics=["t:1:1"], release=Release(line), broker_configs=kafka.given(),
            reassignment="zookeeper" if zookeeper else "kraft",
        )  # fmt: skip
        mock = DirectBroker(cluster, profile_name=CLUSTERS[release])
        for kind, name in ((BROKER, "1"), (TOPIC, "t")):
            resource = DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=None
            )
            request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
            theirs = described(kafka.ask(request, version))
            assert len(theirs) > (25 if kind == TOPIC else 190)
            assert described(mock.ask(request, version)) == theirs
