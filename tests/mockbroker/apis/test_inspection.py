"""Handlers that show the metadata quorum and what has configs, and the one that moves replicas."""

from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.security.authorizer import Authorizer
from mockbroker.simulation.security.policy import OPEN, Security
from mockbroker.simulation.state.cluster_parts import LOG_DIR, Broker
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster

CLOSED = Security(authorizer=Authorizer(frozenset()))
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def broker(security: Security = OPEN) -> DirectBroker:
    brokers = [Broker(each, f"host-{each}", 9000 + each) for each in (1, 2, 3)]
    cluster = simulated_cluster(brokers, topics=["foo=1,2", "bar=1"], now_ms=5000)
    return DirectBroker(cluster, profile_name="kafka-4.4", security=security)


# ---- DescribeQuorum ------------------------------------------------------------------------------


def quorum(at: DirectBroker, version: int, name: str = "__cluster_metadata", index: int = 0) -> Any:
    topic = {"topic_name": name, "partition_index": index}
    return at.ask("DescribeQuorum", version, topics=[topic])


@pytest.mark.requirement("DP-API-55")
@pytest.mark.parametrize("version", range(3))
def test_the_controller_is_the_only_voter(version: int) -> None:
    at = broker()
    Operations(at.cluster).failover(2)
    Operations(at.cluster).stop_broker(3)
    answer = quorum(at, version)
    assert answer.error_code == 0
    ((partition,),) = [topic.partitions for topic in answer.topics]
    assert (partition.leader_id, partition.error_code) == (2, 0)
    assert partition.leader_epoch == at.cluster.state.controller_epoch
    end = len(at.cluster.log)
    assert partition.high_watermark == end
    times = (-1, -1) if version == 0 else (5000, 5000)
    assert [
        (each.replica_id, each.log_end_offset, each.last_fetch_timestamp,
         each.last_caught_up_timestamp)
        for each in [*partition.current_voters, *partition.observers]
    ] == [(2, end, *times), (1, end, *times)]  # fmt: skip
    assert [each.replica_id for each in partition.current_voters] == [2]
    nodes = [
        (each.node_id, each.listeners[0].host, each.listeners[0].port) for each in answer.nodes
    ]
    assert nodes == ([(2, "host-2", 9002)] if version >= 2 else [])


@pytest.mark.requirement("DP-API-55")
@pytest.mark.parametrize(("name", "index"), [("foo", 0), ("__cluster_metadata", 1)])
def test_no_other_partition_has_a_quorum(name: str, index: int) -> None:
    ((partition,),) = [topic.partitions for topic in quorum(broker(), 2, name, index).topics]
    assert partition.partition_index == index
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert partition.error_message == "This server does not host this topic-partition."


@pytest.mark.requirement("DP-API-55")
def test_describing_the_quorum_needs_describe_on_the_cluster() -> None:
    answer = quorum(broker(CLOSED), 2)
    assert (answer.error_code, answer.topics) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    assert answer.error_message == "Cluster authorization failed."


# ---- ListConfigResources -------------------------------------------------------------------------


def resources(at: DirectBroker, version: int, *kinds: int) -> tuple[int, list[tuple[int, str]]]:
    answer = at.ask("ListConfigResources", version, resource_types=list(kinds))
    found = [(each.resource_type, each.resource_name) for each in answer.config_resources]
    return answer.error_code, found


@pytest.mark.requirement("DP-API-74")
def test_config_resources_of_each_kind() -> None:
    at = broker()
    Operations(at.cluster).stop_broker(3)
    topics = [(TOPIC, "bar"), (TOPIC, "foo")]
    brokers = [(BROKER, "1"), (BROKER, "2")]
    loggers = [(LOGGER, "1"), (LOGGER, "2")]
    assert resources(at, 1) == (0, [*loggers, *brokers, *topics])
    assert resources(at, 1, TOPIC, GROUP) == (0, topics)
    assert resources(at, 1, METRICS, BROKER) == (0, brokers)
    changes = at.cluster.config_changes
    changes.alter_incrementally([(GROUP, "g", [("consumer.session.timeout.ms", 0, "50000")])])
    groups = [(GROUP, "g")]
    assert resources(at, 1) == (0, [*groups, *loggers, *brokers, *topics])
    assert resources(at, 1, GROUP) == (0, groups)
    changes.alter_incrementally([(GROUP, "g", [("consumer.session.timeout.ms", 1, None)])])
    assert resources(at, 1, GROUP) == (0, []), "its last config is gone"
    assert resources(at, 0) == (0, [])
    assert resources(at, 1, TOPIC, 64) == (ErrorCode.UNSUPPORTED_VERSION, [])


@pytest.mark.requirement("DP-API-74")
def test_listing_config_resources_needs_describe_configs_on_the_cluster() -> None:
    assert resources(broker(CLOSED), 1) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])


# ---- AlterReplicaLogDirs -------------------------------------------------------------------------


def moved(at: DirectBroker, version: int, path: str, *names: str) -> list[tuple[str, int]]:
    topics = [{"name": each, "partitions": [0]} for each in names]
    answer = at.ask("AlterReplicaLogDirs", version, path=path, topics=topics, broker_id=2)
    return [(each.topic_name, row.error_code) for each in answer.results for row in each.partitions]


@pytest.mark.requirement("DP-API-34")
@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_stays_in_its_directory(version: int) -> None:
    assert moved(broker(), version, LOG_DIR, "foo", "bar", "none") == [
        ("foo", ErrorCode.NONE),
        ("bar", ErrorCode.REPLICA_NOT_AVAILABLE),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert moved(broker(), version, "/other", "foo") == [("foo", ErrorCode.LOG_DIR_NOT_FOUND)]


@pytest.mark.requirement("DP-API-34")
def test_moving_replicas_needs_alter_on_the_cluster() -> None:
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert moved(broker(CLOSED), 2, LOG_DIR, "foo", "none") == [("foo", refused), ("none", refused)]
