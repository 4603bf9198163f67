"""A controller of the ZooKeeper kind elects as soon as unclean elections are allowed.

Real 2.4.1 did so in a random program; the releases come from the methods that KafkaController has.
"""

from __future__ import annotations

import json

import pytest

from mockbroker.cluster import Cluster
from mockbroker.state.model import Partition

UNCLEAN = "unclean.leader.election.enable"
TOPIC, BROKER = 2, 4
SET = 0


def offline(reassignment: str) -> Cluster:
    """Two topics whose only member of the ISR is down; broker 1 is the controller."""
    cluster = Cluster(3, topics=["foo=2,1", "bar=2,3"], reassignment=reassignment)
    for topic, other in (("foo", 1), ("bar", 3)):
        cluster.leave_isr((topic, 0), other)
    cluster.stop_broker(2)
    assert [partition(cluster, topic).leader for topic in ("foo", "bar")] == [-1, -1]
    return cluster


def partition(cluster: Cluster, topic: str) -> Partition:
    return cluster.topics[topic].partitions[0]


def allow(cluster: Cluster, resource_type: int, name: str, value: str = "true") -> None:
    (result,) = cluster.incremental_alter_configs(
        [(resource_type, name, [(UNCLEAN, SET, value)])], validate_only=False
    )
    assert result.error_code == 0, result


@pytest.mark.parametrize(
    ("reassignment", "leader", "isr"),
    [("zookeeper", 1, (1,)), ("zookeeper-2.1", 1, (1,)), ("zookeeper-0.10", -1, (2,)),
     ("kip-455-new", 1, (1,)), ("kip-236-new", 1, (1,)), ("kraft", -1, (2,))],
)  # fmt: skip
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
def test_a_default_of_the_controllers_broker(name: str, elects: bool) -> None:
    cluster = offline("zookeeper")
    allow(cluster, BROKER, name)
    leaders = [partition(cluster, topic).leader for topic in ("foo", "bar")]
    assert leaders == ([1, 3] if elects else [-1, -1])


def test_a_config_that_a_tool_writes_to_zookeeper() -> None:
    cluster = offline("zookeeper")
    config = {"version": 1, "config": {UNCLEAN: "true"}}
    cluster.write_znode("/config/topics/foo", json.dumps(config))
    change = {"version": 2, "entity_path": "topics/foo"}
    cluster.write_znode("/config/changes/config_change_0000000000", json.dumps(change))
    cluster.react()
    assert partition(cluster, "foo").leader == 1
