"""KRaft controllers that clients reach: apart from brokers, or brokers that are both."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from kproto.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
    FetchRequest,
    MetadataRequest,
)
from kproto.messages.create_topics_request import CreatableTopic
from kproto.messages.describe_quorum_request import PartitionData, TopicData
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.schema.releases import load_controllers
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.running.recorded_requests import RecordedRequests
from tests.mockbroker.wire import Wire, connected

COMBINED = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
}
QUORUM = DescribeQuorumRequest(
    topics=[TopicData(topic_name="__cluster_metadata", partitions=[PartitionData()])]
)


async def described(wire: Wire) -> dict[int, str]:
    """The controllers, as a controller lists them."""
    answer = await wire.ask(DescribeClusterRequest(endpoint_type=2), 1)
    assert (answer.error_code, answer.endpoint_type) == (0, 2)
    return {each.broker_id: f"{each.host}:{each.port}" for each in answer.brokers}


@pytest.mark.parametrize("profile", ["kafka-3.7", "kafka-3.9", "kafka-4.4"])
async def test_controllers_apart_from_brokers(profile: str) -> None:
    async with MockCluster(2, controllers=3, profile=profile) as mock:
        assert [*mock.listeners] == [1, 2, 3000, 3001, 3002]
        assert mock.bootstrap == ",".join(mock.addresses.values())
        addresses = {each: mock.listeners[each]["CONTROLLER"] for each in (3000, 3001, 3002)}
        assert mock.bootstrap_of("CONTROLLER") == ",".join(addresses.values())
        for node_id, address in addresses.items():
            async with connected(mock, address) as wire:
                assert await described(wire) == addresses
                offered = await wire.ask(ApiVersionsRequest(
                    client_software_name="w", client_software_version="1"), 3)  # fmt: skip
                assert {
                    each.api_key: (each.min_version, each.max_version) for each in offered.api_keys
                } == {
                    key: (each.lowest, each.highest)
                    for key, each in load_controllers()[profile].apis.items()
                }
                quorum = await wire.ask(QUORUM, 1)
                (partition,) = quorum.topics[0].partitions
                if node_id == 3000:
                    assert partition.leader_id == 3000
                    assert {each.replica_id for each in partition.current_voters} == {*addresses}
                    assert [each.replica_id for each in partition.observers] == [1, 2]
                else:
                    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert {each.broker_id for each in mock.journal.select(direction="request")} == {*addresses}


async def test_the_active_controller_changes_the_cluster_and_others_refuse() -> None:
    async with MockCluster(2, controllers=2) as mock:
        created = []
        for node_id in (3001, 3000):
            async with connected(mock, mock.listeners[node_id]["CONTROLLER"]) as wire:
                topic = CreatableTopic(name="foo", num_partitions=1, replication_factor=1)
                answer = await wire.ask(CreateTopicsRequest(topics=[topic]), 7)
                created.append([each.error_code for each in answer.topics])
        assert created == [[ErrorCode.NOT_CONTROLLER], [0]]
        assert [*mock.cluster.topics] == ["foo"]
        mock.failover(2)
        assert mock.cluster.quorum.leader_id == 3001
        async with connected(mock, mock.listeners[3001]["CONTROLLER"]) as wire:
            (partition,) = (await wire.ask(QUORUM, 1)).topics[0].partitions
            assert partition.leader_id == 3001


async def test_the_metadata_log_and_records_are_not_served_by_controllers() -> None:
    async with MockCluster(1, controllers=1, topics=["foo:1:1"]) as mock:
        async with connected(mock, mock.listeners[3000]["CONTROLLER"]) as wire:
            topic = FetchTopic(topic="foo", partitions=[FetchPartition(partition=0)])
            answer = await wire.ask(FetchRequest(topics=[topic]), 12)
            assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
            wire.send(wire.frame(MetadataRequest(topics=None), 12))
            assert await wire.closed() == b""
        events = [each.event for each in mock.journal.select(broker_id=3000)]
        assert {"unimplemented", "unsupported"} <= {*events}


async def test_brokers_that_are_controllers() -> None:
    async with MockCluster(3, broker_configs=COMBINED) as mock:
        expected = {each: mock.listeners[each]["CONTROLLER"] for each in (1, 2, 3)}
        async with connected(mock, expected[2]) as wire:
            assert await described(wire) == expected
            refused = await wire.ask(DescribeClusterRequest(endpoint_type=1), 1)
            assert refused.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
            assert refused.error_message == (
                "The request was sent to an endpoint of type CONTROLLER, "
                "but we wanted an endpoint of type BROKER"
            )
        async with connected(mock, mock.addresses[2]) as wire:
            assert {each.node_id for each in (await brokers(wire)).brokers} == {1, 2, 3}
            refused = await wire.ask(DescribeClusterRequest(endpoint_type=2), 1)
            assert refused.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
            answer = await wire.ask(QUORUM, 2)
            (partition,) = answer.topics[0].partitions
            assert partition.leader_id == 1
            assert partition.observers == []
            nodes = {
                node.node_id: [(each.name, f"{each.host}:{each.port}") for each in node.listeners]
                for node in answer.nodes
            }
            assert nodes == {each: [("CONTROLLER", at)] for each, at in expected.items()}
        await mock.stop_broker(1)
        assert mock.cluster.quorum.leader_id == mock.cluster.state.controller_id != 1


async def brokers(wire: Wire) -> Any:
    return await wire.ask(MetadataRequest(topics=[]), 12)


async def test_rules_and_assertions_select_a_controller() -> None:
    async with MockCluster(1, controllers=2) as mock:
        rule = mock.fault(broker=3001, listener="CONTROLLER", api="DescribeCluster", error=41)
        codes = []
        for node_id in (3000, 3001):
            async with connected(mock, mock.listeners[node_id]["CONTROLLER"]) as wire:
                answer = await wire.ask(DescribeClusterRequest(endpoint_type=2), 1)
                codes.append(answer.error_code)
        assert (codes, rule.hits) == ([0, 41], 1)
        recorded = RecordedRequests(mock.journal)
        recorded.assert_requested("DescribeCluster", times=1, broker_id=3001, listener="CONTROLLER")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"profile": "kafka-2.4", "controllers": 1}, "a cluster with ZooKeeper has no KRaft"),
        ({"controllers": 1, "broker_configs": COMBINED}, "broker 1 is a controller by process"),
        ({"controllers": 1, "broker_configs": {"controller.listener.names": "C",
          "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"}},
         "Controller listener with name C defined in controller.listener.names not found"),
    ],
)  # fmt: skip
def test_controllers_that_cannot_be(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ClusterError) as refused:
        MockCluster(1, **options)
    assert problem in str(refused.value)


async def test_a_client_that_stays_learns_who_is_active() -> None:
    """The response cache does not outlive a failover."""
    async with (
        MockCluster(2, controllers=2) as mock,
        connected(mock, mock.listeners[3001]["CONTROLLER"]) as wire,
    ):
        active = []
        for successor in (2, 1):
            for _ in range(2):
                answer = await wire.ask(DescribeClusterRequest(endpoint_type=2), 1)
                active.append(answer.controller_id)
            mock.failover(successor)
        assert active == [3000, 3000, 3001, 3001]


async def test_refusals_of_features_name_the_controller_apart() -> None:
    async with MockCluster(1, controllers=1) as mock:
        async with connected(mock, mock.bootstrap_of("CONTROLLER")) as wire:
            answer = await wire.ask(
                "UpdateFeatures", 1, feature="nothing", max_version_level=1, upgrade_type=1
            )
        assert "Local controller 3000 does not support this feature." in answer.error_message
