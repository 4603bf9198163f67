"""Who answers what is the controller's: everybody with forwarding, one broker without (A-53).

Without forwarding a broker that is not the controller says NOT_CONTROLLER(41): where there is no
place at the top of the answer, of everything it was asked about.
"""

import pytest

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.broker import DirectBroker
from tests.support.requests import request_of

ZK, KRAFT = "kafka-3.9-zk", "kafka-3.9"
NOT_CONTROLLER = "This is not the correct controller for this cluster."


def asked(profile: str) -> DirectBroker:
    return DirectBroker(Cluster(topics=["foo=1,2,3/2,3,1", "bar:1:1"]), profile_name=profile)


ALTER = request_of(
    "AlterPartitionReassignments",
    topics=[
        {
            "name": "foo",
            "partitions": [
                {"partition_index": 1, "replicas": [3, 2]},
                {"partition_index": 0, "replicas": None},
            ],
        },
        {"name": "none", "partitions": []},
    ],
)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.requirement("K183-06")
def test_elect(version: int) -> None:
    answer = asked(ZK).ask("ElectLeaders", version, topic="foo", partitions=[1, 7], broker_id=2)
    assert answer.error_code == 0
    assert [
        (t.topic, [(p.partition_id, p.error_code) for p in t.partition_result])
        for t in answer.replica_election_results
    ] == [("foo", [(1, 41), (7, 41)])]
    every = asked(ZK).ask("ElectLeaders", version, topic_partitions=None, broker_id=2)
    assert sorted(
        (t.topic, p.partition_id, p.error_code)
        for t in every.replica_election_results
        for p in t.partition_result
    ) == [("bar", 0, 41), ("foo", 0, 41), ("foo", 1, 41)]


CREATE = request_of("CreateTopics", name="new", num_partitions=1, replication_factor=1)
GROW = request_of("CreatePartitions", name="foo", count=4, assignments=None, timeout_ms=1000)


@pytest.mark.parametrize("profile", [KRAFT, "kafka-4.4"])
def test_forwarding_never_says_41(profile: str) -> None:
    broker = asked(profile)
    answer = broker.ask(ALTER, 0, broker_id=2)
    assert [p.error_code for p in answer.responses[0].partitions] == [0, 85]
    assert broker.ask("ListPartitionReassignments", 0, broker_id=3).error_code == 0
    assert broker.ask(CREATE, 7, broker_id=3).topics[0].error_code == 0
    assert broker.ask(GROW, 3, broker_id=3).results[0].error_code == 0
    deletion = request_of("DeleteTopics", topic_names=["new"], timeout_ms=1000)
    assert broker.ask(deletion, 5, broker_id=2).responses[0].error_code == 0


def test_topic_configs_go_to_any_broker() -> None:
    """ZooKeeper brokers write them themselves."""
    broker = asked(ZK)
    body = request_of(
        "IncrementalAlterConfigs",
        resource_type=2,
        resource_name="foo",
        name="retention.ms",
        config_operation=0,
        value="1",
    )
    assert broker.ask(body, 1, broker_id=2).responses[0].error_code == 0
    assert broker.cluster.configs.topic("foo", "retention.ms").value == "1"


def test_after_a_failover_the_other_broker_answers() -> None:
    broker = asked(ZK)
    Operations(broker.cluster).failover(2)
    assert broker.ask(ALTER, 0, broker_id=1).error_code == 41
    assert broker.ask(ALTER, 0, broker_id=2).error_code == 0


@pytest.mark.parametrize("profile", [ZK, KRAFT])
@pytest.mark.requirement("A-53")
def test_the_controller_that_clients_are_shown(profile: str) -> None:
    broker = asked(profile)
    Operations(broker.cluster).failover(3)
    shown = broker.ask("Metadata", 12, topics=[]).controller_id
    described = shown if profile == ZK else broker.ask("DescribeCluster", 0).controller_id
    assert shown == described
    if profile == ZK:
        assert shown == 3
    else:
        assert shown in broker.cluster.brokers
