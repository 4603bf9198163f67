"""What ``write_znode`` and the control port do to znodes is what any client of ZooKeeper does."""

import json

import pytest

from kproto.znodes import EventType, ZnodeStore
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulated import simulated_cluster
from tests.znodes.conftest import Place

PLAN = '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[2,3]}]}'


def cluster_at(place: Place, *topics: str) -> Cluster:
    return simulated_cluster(3, topics=topics, reassignment="zookeeper", znodes=place.open())


def test_the_same_text_again_is_a_write(place: Place, store: ZnodeStore) -> None:
    cluster = cluster_at(place)
    Operations(cluster).write_znode("/a/b", "text")
    store.get("/a/b", watch=True)
    Operations(cluster).write_znode("/a/b", "text")
    assert store.get("/a/b").stat.version == 1
    assert [event.type for event in store.take_events()] == [EventType.NODE_DATA_CHANGED]
    znode = cluster.znodes.read("/a/b")
    assert znode is not None
    assert znode[1] == store.get("/a/b").stat == cluster.controller.state.znode_stats["/a/b"]


def test_the_same_plan_again_makes_the_controller_look() -> None:
    """KIP-236's older draft reads its legacy plan at every change."""
    cluster = simulated_cluster(4, topics=["foo=1,2"], reassignment="kip-236-old")
    Operations(cluster).write_znode("/admin/reassign_partitions", PLAN)
    before = cluster.znodes.read("/admin/reassign_partitions")
    assert before is not None
    Operations(cluster).write_znode("/admin/reassign_partitions", before[0])
    after = cluster.znodes.read("/admin/reassign_partitions")
    assert after is not None
    assert after[1].version > before[1].version


def test_deleting_what_is_not_there_fails(place: Place) -> None:
    with pytest.raises(ClusterError, match="NoNode for /a/b"):
        Operations(cluster_at(place)).write_znode("/a/b", None)


def test_a_change_of_configs_written_by_a_step_is_read(place: Place) -> None:
    cluster = cluster_at(place, "foo=1,2", "bar=1")
    for topic, value in (("foo", "7"), ("bar", "8"), ("foo", "9")):
        text = json.dumps({"version": 1, "config": {"retention.ms": value}})
        Operations(cluster).write_znode(f"/config/topics/{topic}", text)
        change = json.dumps({"version": 2, "entity_path": f"topics/{topic}"})
        Operations(cluster).append_znode("/config/changes/config_change_", change)
        assert cluster.configs.topic(topic, "retention.ms").value == value


def test_a_change_of_configs_is_read_once(place: Place) -> None:
    cluster = cluster_at(place, "foo=1,2")
    change = json.dumps({"version": 2, "entity_path": "topics/foo"})
    Operations(cluster).append_znode("/config/changes/config_change_", change)
    Operations(cluster).write_znode(
        "/config/topics/foo", '{"version":1,"config":{"retention.ms":"7"}}'
    )
    other = json.dumps({"version": 2, "entity_path": "topics/bar"})
    Operations(cluster).append_znode("/config/changes/config_change_", other)
    Operations(cluster).failover(2)
    assert cluster.configs.topic("foo", "retention.ms").value != "7"
