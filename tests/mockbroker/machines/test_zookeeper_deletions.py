"""Topics that cannot be deleted yet, as Kafka's tools of the ZooKeeper era see them.

A stopped broker has replicas of theirs. ``tests/tools/test_zookeeper_era.py`` compares this with
Kafka 2.4.1, which no broker returns to.
"""

from __future__ import annotations

import pytest

from kproto.error_codes import ErrorCode
from kproto.schema.model import ZERO_UUID
from kproto.znodes import EmbeddedStore, ZnodeTree
from mockbroker.cluster import Cluster
from mockbroker.state.controller import replay
from mockbroker.topics.administration import NewTopic
from tests.mockbroker.machines.zookeeper_story import ZK

MARK = "/admin/delete_topics/foo"
TOPIC = "/brokers/topics/foo"


@pytest.mark.parametrize("by_znode", [True, False])
def test_a_topic_waits_for_every_stopped_broker_that_has_something_of_it(by_znode: bool) -> None:
    tree = ZnodeTree()
    user = EmbeddedStore(tree, lambda: 0)
    mine = EmbeddedStore(tree, lambda: 0)
    cluster = Cluster(4, topics=["foo=1,3/2,4", "bar=1,2"], machine=ZK, znodes=mine, cluster_id="c")
    for broker in (3, 4):
        cluster.stop_broker(broker)
    if by_znode:
        user.create(MARK, b"")
        cluster.react()
    else:
        cluster.delete_topics([("foo", ZERO_UUID)])
        cluster.react()
    for last in (False, True):
        assert list(cluster.topics) == ["bar"]
        assert user.exists(MARK) is not None
        assert user.exists(f"{TOPIC}/partitions/1/state") is not None
        assert _create(cluster) == ErrorCode.TOPIC_ALREADY_EXISTS
        cluster.failover(2 if not last else 1)
        cluster.start_broker(4 if last else 3)
        cluster.react()
    assert user.exists(MARK) is None
    assert user.exists(TOPIC) is None
    assert list(cluster.topics) == ["bar"]
    replayed = replay("c", cluster.log)
    assert (replayed.topics, replayed.znodes) == (cluster.topics, cluster.znodes)
    assert _create(cluster) == ErrorCode.NONE
    assert user.exists(TOPIC) is not None


def _create(cluster: Cluster) -> int:
    (result,) = cluster.create_topics([NewTopic("foo", 1, 1)])
    return result.error_code
