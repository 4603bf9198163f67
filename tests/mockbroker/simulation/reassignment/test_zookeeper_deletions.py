"""Deleting topics that are under reassignment, and topics that cannot be deleted yet.

Of the latter a stopped broker has replicas. ``tests/tools/test_zookeeper_era.py`` compares what
Kafka's tools of the ZooKeeper era see of them with Kafka 2.4.1, which no broker returns to.
"""

import pytest

from kproto.error_codes import ErrorCode
from kproto.schema.model import ZERO_UUID
from kproto.znodes import EmbeddedStore, ZnodeTree
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.releases.facts import ZOOKEEPER_CONTROLLER
from mockbroker.simulation.state.cluster_state import replay
from mockbroker.simulation.topics.administration import NewTopic
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.zookeeper_story import (
    FOO,
    STATE,
    TOPIC,
    ZK,
    alter,
    cluster_of,
    listed,
    planned,
    story,
    submit,
)

MARK = "/admin/delete_topics/foo"


@pytest.mark.parametrize("by_znode", [True, False])
def test_a_topic_waits_for_every_stopped_broker_that_has_something_of_it(by_znode: bool) -> None:
    tree = ZnodeTree()
    user = EmbeddedStore(tree, lambda: 0)
    mine = EmbeddedStore(tree, lambda: 0)
    cluster = simulated_cluster(
        4, topics=["foo=1,3/2,4", "bar=1,2"], reassignment=ZK, znodes=mine, cluster_id="c"
    )
    for broker in (3, 4):
        Operations(cluster).stop_broker(broker)
    if by_znode:
        user.create(MARK, b"")
        cluster.turns.react()
    else:
        cluster.topics.delete([("foo", ZERO_UUID)])
        cluster.turns.react()
    for last in (False, True):
        assert list(cluster.topics) == ["bar"]
        assert user.exists(MARK) is not None
        assert user.exists(f"{TOPIC}/partitions/1/state") is not None
        assert _create(cluster) == ErrorCode.TOPIC_ALREADY_EXISTS
        Operations(cluster).failover(2 if not last else 1)
        Operations(cluster).start_broker(4 if last else 3)
        cluster.turns.react()
    assert user.exists(MARK) is None
    assert user.exists(TOPIC) is None
    assert list(cluster.topics) == ["bar"]
    replayed = replay("c", cluster.log)
    assert (replayed.topics, replayed.znodes) == (cluster.state.topics, cluster.state.znodes)
    assert _create(cluster) == ErrorCode.NONE
    assert user.exists(TOPIC) is not None


def _create(cluster: Cluster) -> int:
    (result,) = cluster.topics.create([NewTopic("foo", 1, 1)])
    return result.error_code


@pytest.mark.requirement("A-54")
@pytest.mark.parametrize("by_znode", [True, False], ids=["by znode", "by request"])
@pytest.mark.parametrize("name", [name for _, name in ZOOKEEPER_CONTROLLER.values])
def test_a_topic_does_not_wait_for_its_reassignments(name: str, by_znode: bool) -> None:
    """Seen so on 1.1.1, 2.3.1, 2.4.1, 2.8.2 and 3.9.2: its replicas, old and new, are stopped at
    once. What the plan says of it stays there."""
    cluster = cluster_of(reassignment=name)
    submit(cluster, {FOO: [4, 5, 6]})
    Operations(cluster).join_isr(FOO, 4)
    replicas = cluster.topics.partition(*FOO).replicas
    since = len(cluster.log)
    if by_znode:
        Operations(cluster).write_znode(MARK, "")
    else:
        (gone,) = cluster.topics.delete([("foo", ZERO_UUID)])
        assert gone.error_code == ErrorCode.NONE
    assert "foo" not in cluster.topics
    assert not {MARK, TOPIC, STATE} & set(cluster.state.znodes)
    told = [line for line in story(cluster, since) if "StopReplica" in line]
    all_of_them = ",".join(map(str, replicas))
    assert told == [f"StopReplica to {all_of_them}", f"StopReplica delete to {all_of_them}"]
    assert listed(cluster) == {}
    assert planned(cluster) == {FOO: [4, 5, 6]}


@pytest.mark.requirement("A-54")
def test_a_topic_that_waits_for_a_stopped_broker_is_not_reassigned() -> None:
    cluster = cluster_of()
    alter(cluster, [4, 2, 3])
    Operations(cluster).stop_broker(3)
    cluster.topics.delete([("foo", ZERO_UUID)])
    assert MARK in cluster.state.znodes
    for target in ([1, 2, 4], None):
        code, text = alter(cluster, target)
        assert (code, text) == (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
        )  # fmt: skip
    assert alter(cluster, None, ("bar", 0))[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    Operations(cluster).start_broker(3)
    assert not {MARK, TOPIC} & set(cluster.state.znodes)
