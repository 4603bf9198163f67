"""A controller of the ZooKeeper kind elects as soon as unclean elections are allowed.

Real 2.4.1 did so in a random program; the releases come from the methods that KafkaController has.
"""

import json

import pytest

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import LeaderAndIsrSent
from mockbroker.simulation.state.cluster_parts import Partition
from tests.mockbroker.simulated import simulated_cluster

UNCLEAN = "unclean.leader.election.enable"
TOPIC, BROKER = 2, 4
SET = 0
UNCLEAN_ELECTION = 1


def offline(reassignment: str) -> Cluster:
    """Two topics whose only member of the ISR is down; broker 1 is the controller."""
    cluster = simulated_cluster(3, topics=["foo=2,1", "bar=2,3"], reassignment=reassignment)
    for topic, other in (("foo", 1), ("bar", 3)):
        Operations(cluster).leave_isr((topic, 0), other)
    Operations(cluster).stop_broker(2)
    assert [partition(cluster, topic).leader for topic in ("foo", "bar")] == [-1, -1]
    return cluster


def partition(cluster: Cluster, topic: str) -> Partition:
    return cluster.topics[topic].partitions[0]


def allow(cluster: Cluster, resource_type: int, name: str, value: str = "true") -> None:
    (result,) = cluster.config_changes.alter_incrementally(
        [(resource_type, name, [(UNCLEAN, SET, value)])], validate_only=False
    )
    assert result.error_code == 0, result


@pytest.mark.parametrize(
    ("reassignment", "leader", "isr"),
    [("zookeeper", 1, (1,)), ("zookeeper-2.1", 1, (1,)), ("zookeeper-0.10", -1, (2,)),
     ("kip-455-new", 1, (1,)), ("kip-236-new", 1, (1,)), ("kraft", -1, (2,))],
)  # fmt: skip
@pytest.mark.requirement("A-55")
def test_a_topic_that_allows_them(reassignment: str, leader: int, isr: tuple[int, ...]) -> None:
    cluster = offline(reassignment)
    allow(cluster, TOPIC, "foo", "false")
    assert partition(cluster, "foo").leader == -1
    epoch = partition(cluster, "foo").leader_epoch
    allow(cluster, TOPIC, "foo")
    found = partition(cluster, "foo")
    assert (found.leader, found.isr) == (leader, isr)
    assert found.leader_epoch == epoch + (leader == 1)
    assert partition(cluster, "bar").leader == -1


@pytest.mark.parametrize(("name", "elects"), [("", True), ("1", True), ("3", False)])
@pytest.mark.requirement("A-55")
def test_a_default_of_the_controllers_broker(name: str, elects: bool) -> None:
    cluster = offline("zookeeper")
    allow(cluster, BROKER, name)
    leaders = [partition(cluster, topic).leader for topic in ("foo", "bar")]
    assert leaders == ([1, 3] if elects else [-1, -1])


@pytest.mark.requirement("A-55")
def test_a_config_that_a_tool_writes_to_zookeeper() -> None:
    cluster = offline("zookeeper")
    config = {"version": 1, "config": {UNCLEAN: "true"}}
    Operations(cluster).write_znode("/config/topics/foo", json.dumps(config))
    change = {"version": 2, "entity_path": "topics/foo"}
    Operations(cluster).write_znode("/config/changes/config_change_0000000000", json.dumps(change))
    cluster.turns.react()
    assert partition(cluster, "foo").leader == 1


def elect_uncleanly(cluster: Cluster, topic: str) -> None:
    result = cluster.elections.elect(UNCLEAN_ELECTION, [(topic, [0])])
    assert result.topics[0].partitions[0].error_code == 0, result


@pytest.mark.requirement("K455-42", "K455-60")
@pytest.mark.parametrize(
    ("machine", "completes"),
    [("zookeeper-2.3", True), ("zookeeper-2.4", True), ("zookeeper-2.7", False),
     ("zookeeper", False)],
)  # fmt: skip
def test_the_elected_leader_is_the_whole_target(machine: str, completes: bool) -> None:
    cluster = simulated_cluster(4, topics=["foo=2"], reassignment=machine)
    Operations(cluster).stop_broker(2)
    submit(cluster, 3)
    assert partition(cluster, "foo").leader == -1
    elect_uncleanly(cluster, "foo")
    found = partition(cluster, "foo")
    assert (found.isr, found.leader) == ((3,), 3)
    assert found.replicas == ((3,) if completes else (3, 2))
    assert found.reassigning is not completes


def submit(cluster: Cluster, broker_id: int) -> None:
    """A plan, which every release with ZooKeeper takes."""
    rows = [{"topic": "foo", "partition": 0, "replicas": [broker_id]}]
    Operations(cluster).write_znode(
        "/admin/reassign_partitions", json.dumps({"version": 1, "partitions": rows})
    )
    cluster.turns.react()


@pytest.mark.requirement("REL-22")
@pytest.mark.parametrize(
    ("machine", "recorded"),
    [("zookeeper", True), ("zookeeper-3.2", True), ("zookeeper-3.0", False)],
)
def test_the_znode_says_that_the_leader_recovers(machine: str, recorded: bool) -> None:
    cluster = offline(machine)
    elect_uncleanly(cluster, "bar")
    path = "/brokers/topics/bar/partitions/0/state"
    assert json.loads(cluster.state.znodes[path]).get("leader_recovery_state", 0) == recorded
    sent = [each.change for each in cluster.log if isinstance(each.change, LeaderAndIsrSent)]
    assert (sent[-1].topic, sent[-1].recovering) == ("bar", True)
    Operations(cluster).start_broker(2)
    assert partition(cluster, "bar").recovering
    Operations(cluster).join_isr(("bar", 0), 2)
    assert not partition(cluster, "bar").recovering
    assert "leader_recovery_state" not in json.loads(cluster.state.znodes[path])


def test_a_new_controller_reads_that_the_leader_recovers() -> None:
    cluster = offline("zookeeper")
    elect_uncleanly(cluster, "bar")
    Operations(cluster).failover(3)
    assert partition(cluster, "bar").recovering


def vacated() -> Cluster:
    """A reassignment that added broker 3 was replaced while 3, alone in sync, led the partition."""
    cluster = simulated_cluster(4, topics=["foo=2", "bar=1"], reassignment="zookeeper")
    Operations(cluster).stop_broker(2)
    submit(cluster, 3)
    elect_uncleanly(cluster, "foo")
    cluster.reassignments.alter([("foo", [(0, [2, 1])])])
    found = partition(cluster, "foo")
    assert (found.leader, found.isr, found.replicas) == (-1, (3,), (2, 1))
    return cluster


def test_no_unclean_election_while_a_broker_of_the_isr_is_live() -> None:
    cluster = vacated()
    result = cluster.elections.elect(UNCLEAN_ELECTION, [("foo", [0])])
    assert result.topics[0].partitions[0].error_code == 83
    Operations(cluster).stop_broker(3)
    elect_uncleanly(cluster, "foo")
    assert partition(cluster, "foo").leader == 1


def test_a_partition_without_its_leading_replica_counts_as_online() -> None:
    cluster = simulated_cluster(4, topics=["foo=1,4"], reassignment="zookeeper")
    Operations(cluster).stop_broker(2)
    Operations(cluster).leave_isr(("foo", 0), 4)
    cluster.reassignments.alter([("foo", [(0, [3, 4])])])
    Operations(cluster).join_isr(("foo", 0), 3)
    Operations(cluster).stop_broker(1)
    assert partition(cluster, "foo").leader == 3
    cluster.reassignments.alter([("foo", [(0, None)])])
    assert (partition(cluster, "foo").leader, partition(cluster, "foo").isr) == (-1, (3,))
    cluster.reassignments.alter([("foo", [(0, [4, 3])])])
    Operations(cluster).start_broker(2)
    assert partition(cluster, "foo").leader == -1
    Operations(cluster).stop_broker(2)
    assert partition(cluster, "foo").leader == 3


def test_a_preferred_election_elects_no_other_replica() -> None:
    cluster = simulated_cluster(3, topics=["foo=1,2"], reassignment="zookeeper")
    for broker in (1, 2):
        Operations(cluster).stop_broker(broker)
    Operations(cluster).start_broker(1)
    assert cluster.elections.elect(0, [("foo", [0])]).topics[0].partitions[0].error_code == 80
    assert partition(cluster, "foo").leader == -1
