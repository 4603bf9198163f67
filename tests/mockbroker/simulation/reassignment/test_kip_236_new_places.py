"""KIP-236, newer revision, driven as a tool does it: on the embedded tree and a real ZooKeeper."""

import json

import pytest

from kproto.znodes import ConnectionLossError, NodeExistsError, ZnodeStore
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import StopReplicaSent
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.cancelling import (
    CANCEL,
    NEW,
    PLAN,
    QUEUE,
    entry,
    plan,
)
from tests.mockbroker.simulation.reassignment.walks import (
    FOO,
    TOPIC,
    changes,
    joined,
    now,
    warnings,
)
from tests.znodes.conftest import Place, place, store, zookeeper

__all__ = ["place", "store", "zookeeper"]


def cluster_at(place: Place, *topics: str) -> Cluster:
    return simulated_cluster(6, topics=topics, reassignment=NEW, znodes=place.open())


def said(store: ZnodeStore, path: str) -> list[object]:
    return list(json.loads(store.get(path).data)["partitions"])


def there(store: ZnodeStore) -> list[str]:
    return store.children("/admin")


@pytest.mark.requirement("K236-01", "K236-07", "K236-08", "K236-32")
def test_submitted_cancelled_and_gone(place: Place, store: ZnodeStore) -> None:
    c = cluster_at(place, "foo=1,2,3/1,2")
    store.create(PLAN, plan(entry([4, 5, 6]), entry([2, 1], tp=("foo", 1))).encode())
    c.turns.react()
    assert said(store, PLAN) == [entry([4, 5, 6], [1, 2, 3])]
    assert json.loads(store.get(TOPIC).data)["partitions"] == {"0": [4, 5, 6, 1, 2, 3], "1": [2, 1]}
    joined(c, 4)
    store.create(CANCEL)
    c.turns.react()
    assert there(store) == ["delete_topics"]
    assert json.loads(store.get(TOPIC).data)["partitions"] == {"0": [1, 2, 3], "1": [2, 1]}
    assert now(c) == ([1, 2, 3], [1, 2, 3], None)
    # Once more, as all watches were left anew.
    store.create(PLAN, plan(entry([4, 5])).encode())
    c.turns.react()
    joined(c, 4, 5)
    assert now(c) == ([4, 5], [4, 5], None)
    assert there(store) == ["delete_topics"]
    assert warnings(c) == []


@pytest.mark.requirement("K236-34")
def test_tampered_with_and_skipped(place: Place, store: ZnodeStore) -> None:
    c = cluster_at(place, "foo=1,2,3")
    store.create(PLAN, plan(entry([4, 5])).encode())
    c.turns.react()
    store.set(PLAN, plan(entry([4, 5])).encode())
    c.turns.react()
    store.create(CANCEL, b"now")
    c.turns.react()
    assert now(c)[2] == [4, 5]
    assert there(store) == ["delete_topics", "reassign_partitions"]
    joined(c, 4, 5)
    assert there(store) == ["delete_topics"]


@pytest.mark.requirement("K236-36", "K236-38", "K236-39", "K236-40")
def test_queued_in_conflict(place: Place, store: ZnodeStore) -> None:
    c = cluster_at(place, "foo=1,2,3/1,2,3")
    store.create(PLAN, plan(entry([1, 2, 4])).encode())
    c.turns.react()
    store.create(QUEUE, plan(entry([1, 2, 5]), entry([6], tp=("foo", 1))).encode())
    with pytest.raises(NodeExistsError):
        store.create(QUEUE, plan(entry([1, 2, 6])).encode())
    c.turns.react()
    assert there(store) == ["delete_topics", "reassign_partitions"]
    assert said(store, PLAN) == [entry([1, 2, 5], [1, 2, 3]), entry([6], [1, 2, 3], ("foo", 1))]
    assert {each.to for each in changes(c, StopReplicaSent)} == {(4,)}


@pytest.mark.requirement("K236-06", "K236-07")
def test_a_plan_that_went_and_came_unseen_is_a_new_one(place: Place, store: ZnodeStore) -> None:
    c = cluster_at(place, "foo=1,2,3/1,2,3")
    store.create(PLAN, plan(entry([4])).encode())
    c.turns.react()
    store.set(PLAN, plan(entry([5])).encode())
    store.delete(PLAN)
    store.create(PLAN, plan(entry([6], tp=("foo", 1))).encode())
    c.turns.react()
    assert now(c)[2] == [4]
    assert now(c, ("foo", 1))[2] == [6]
    assert said(store, PLAN) == [entry([6], [1, 2, 3], ("foo", 1)), entry([4], [1, 2, 3])]
    joined(c, 4)
    Operations(c).join_isr(("foo", 1), 6)
    store.create(PLAN, plan(entry([3])).encode())
    c.turns.react()
    assert now(c)[2] == [3]


@pytest.mark.requirement("K236-10")
def test_another_process_takes_over_and_cancels_first(place: Place, store: ZnodeStore) -> None:
    first = cluster_at(place, "foo=1,2,3/3,4")
    store.create(PLAN, plan(entry([4, 5]), entry([1], tp=("foo", 1))).encode())
    first.turns.react()
    first.controller.znodes.close()
    store.create(CANCEL)
    second = simulated_cluster(6, reassignment=NEW, znodes=place.open())
    assert now(second) == ([1, 2, 3], [1, 2, 3], None)
    assert now(second, ("foo", 1)) == ([3, 4], [3, 4], None)
    assert there(store) == ["delete_topics"]
    assert second.topics.partition(*FOO).leader == 1


@pytest.mark.requirement("K236-03")
def test_a_znode_holds_no_more_than_a_mebibyte(place: Place, store: ZnodeStore) -> None:
    c = cluster_at(place, "foo=1,2,3")
    text = plan(entry([4])).encode()
    with pytest.raises(ConnectionLossError):
        store.create(PLAN, text + b" " * (2**20 + 1 - len(text)))
    c.turns.react()
    assert place.open().exists(PLAN) is None
    assert now(c) == ([1, 2, 3], [1, 2, 3], None)
