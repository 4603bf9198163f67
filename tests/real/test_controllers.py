"""A controller of real Kafka and one of the mock, asked the same: what it offers, who is in the
quorum, and what it refuses."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    ApiVersionsRequest,
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
)
from kproto.messages.create_topics_request import CreatableTopic
from kproto.messages.describe_configs_request import DescribeConfigsResource
from kproto.messages.describe_quorum_request import PartitionData, TopicData
from mockbroker import MockCluster
from tests.mockbroker.wire import connected
from tests.real.kafka import RealKafka
from tests.support.toolchain import require

COMBINED = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
}
QUORUM = [TopicData(topic_name="__cluster_metadata", partitions=[PartitionData()])]
REQUESTS: list[tuple[Message, int]] = [
    (ApiVersionsRequest(client_software_name="w", client_software_version="1"), 3),
    (DescribeClusterRequest(endpoint_type=2), 1),
    (DescribeClusterRequest(endpoint_type=1), 1),
    (DescribeClusterRequest(endpoint_type=3), 1),
    (DescribeQuorumRequest(topics=QUORUM), 1),
    (CreateTopicsRequest(topics=[CreatableTopic(name="foo", num_partitions=1,
                                                replication_factor=1)]), 7),
    (CreateTopicsRequest(topics=[CreatableTopic(name="foo", num_partitions=1,
                                                replication_factor=1)]), 7),
    (AlterPartitionReassignmentsRequest(), 0),
    (DescribeConfigsRequest(resources=[DescribeConfigsResource(
        resource_type=4, resource_name="9", configuration_keys=None)]), 4),
]  # fmt: skip


def shown(request: Message, answer: Any) -> Any:
    """What both have to answer alike: ids, errors and versions."""
    if isinstance(request, ApiVersionsRequest):
        return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    if isinstance(request, DescribeClusterRequest):
        ids = [each.broker_id for each in answer.brokers]
        return answer.error_code, answer.error_message, answer.endpoint_type, ids
    if isinstance(request, DescribeQuorumRequest):
        (partition,) = answer.topics[0].partitions
        voters = [each.replica_id for each in partition.current_voters]
        return partition.error_code, partition.leader_id, voters
    if isinstance(request, CreateTopicsRequest):
        return [(each.error_code, each.error_message) for each in answer.topics]
    if isinstance(request, DescribeConfigsRequest):
        return [(each.error_code, each.error_message) for each in answer.results]
    return answer.error_code, answer.error_message


async def answers(mock: MockCluster, address: str) -> list[Any]:
    found = []
    async with connected(mock, address) as wire:
        for request, version in REQUESTS:
            found.append(shown(request, await wire.ask(request, version)))
    return found


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
async def test_a_controller_answers_as_kafkas(release: str, tmp_path: Path) -> None:
    require("java", "maven")
    kafka = RealKafka(release, tmp_path, zookeeper=False, broker_ids=(1,))
    profile = f"kafka-{release.rpartition('.')[0]}"
    async with MockCluster(1, profile=profile, broker_configs=COMBINED) as mock:
        own = await answers(mock, mock.bootstrap_of("CONTROLLER"))
        await asyncio.to_thread(kafka.__enter__)
        try:
            real = await answers(mock, kafka.zookeeper_address)  # the controller's
        finally:
            await asyncio.to_thread(kafka.close)
    assert own == real
    assert own[0][60]
    assert own[2][0] == ErrorCode.MISMATCHED_ENDPOINT_TYPE
