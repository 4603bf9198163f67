"""KRaft's tables: who leads once a request has changed the replicas.

What else they do is held by ``tests/mockbroker/cluster`` and by real Kafka.
"""

from __future__ import annotations

import pytest

from mockbroker.cluster import Cluster

FOO = ("foo", 0)


def cluster_with(replicas: list[int]) -> Cluster:
    return Cluster(5, topics=[("foo", [replicas])])


def alter(cluster: Cluster, replicas: list[int] | None) -> None:
    (topic,) = cluster.alter_partition_reassignments([("foo", [(0, replicas)])]).topics
    assert topic.partitions[0].error_code == 0


@pytest.mark.requirement("K455-01")
def test_a_leader_that_goes_has_a_successor_at_once() -> None:
    cluster = cluster_with([1, 2, 3])
    alter(cluster, [3, 2])
    after = cluster.partition(*FOO)
    assert (after.replicas, after.leader, after.leader_epoch) == ((3, 2), 3, 1)


@pytest.mark.requirement("K455-01")
def test_a_cancellation_takes_the_lead_from_a_new_replica() -> None:
    cluster = cluster_with([1, 2])
    alter(cluster, [3, 4])
    cluster.join_isr(FOO, 3)
    cluster.stop_broker(1)
    cluster.leave_isr(FOO, 2)
    assert cluster.partition(*FOO).leader == 3
    cluster.join_isr(FOO, 2)
    alter(cluster, None)
    after = cluster.partition(*FOO)
    assert (after.replicas, after.isr, after.leader) == ((1, 2), (2,), 2)
