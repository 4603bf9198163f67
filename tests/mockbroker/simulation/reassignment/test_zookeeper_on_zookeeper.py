"""The main walks of the ZooKeeper controller, its znodes in a store that others use as well: the
embedded tree, and a real ZooKeeper."""

import json
from collections.abc import Iterator

import pytest

from kproto.znodes import ZnodeStore
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.walks import warnings
from tests.mockbroker.simulation.reassignment.zookeeper_story import (
    FOO,
    PLAN,
    STATE,
    TOPIC,
    ZK,
    alter,
    listed,
    plan_of,
    shape,
)
from tests.znodes.conftest import Place, embedded_place, zookeeper, zookeeper_place

__all__ = ["zookeeper"]


@pytest.fixture(
    params=["embedded", pytest.param("zookeeper", marks=[pytest.mark.java, pytest.mark.slow])]
)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "embedded":
        here = embedded_place()
    else:
        here = zookeeper_place(request.getfixturevalue("zookeeper"))
    yield here
    here.close()


@pytest.fixture
def user(place: Place) -> ZnodeStore:
    """A session that is not the controller's."""
    return place.open()


def start(place: Place, *topics: str) -> Cluster:
    return simulated_cluster(6, topics=topics, reassignment=ZK, znodes=place.open(), cluster_id="c")


def read(user: ZnodeStore, path: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(user.get(path).data)
    return found


@pytest.mark.requirement("K455-41", "K455-42")
def test_there_and_back(place: Place, user: ZnodeStore) -> None:
    cluster = start(place, "foo=1,2,3")
    alter(cluster, [4, 5, 6])
    topic = read(user, TOPIC)
    assert (topic["adding_replicas"], topic["removing_replicas"]) == (
        {"0": [4, 5, 6]},
        {"0": [1, 2, 3]},
    )
    Operations(cluster).join_isr(FOO, 4)
    alter(cluster, None)
    assert read(user, TOPIC)["partitions"] == {"0": [1, 2, 3]}
    alter(cluster, [4, 5, 6])
    Operations(cluster).failover(2)
    for broker in (4, 5, 6):
        Operations(cluster).join_isr(FOO, broker)
    assert shape(cluster)[:3] == ([4, 5, 6], [4, 5, 6], 4)
    topic = read(user, TOPIC)
    assert (topic["partitions"], topic["adding_replicas"]) == ({"0": [4, 5, 6]}, {})
    state = read(user, STATE)
    assert (state["isr"], state["leader"]) == ([4, 5, 6], 4)
    assert state["leader_epoch"] == cluster.topics.partition(*FOO).leader_epoch
    assert user.get(STATE).stat.version == cluster.topics.partition(*FOO).partition_epoch
    replayed = replay("c", cluster.log)
    assert (replayed.topics, replayed.znodes) == (cluster.state.topics, cluster.state.znodes)


@pytest.mark.requirement("K455-60", "K455-61")
def test_a_plan_that_a_user_creates(place: Place, user: ZnodeStore) -> None:
    cluster = start(place, "foo=1,2,3", "bar=1,2")
    for replicas in ([2, 4], [5]):
        user.create(PLAN, plan_of({FOO: replicas, ("bar", 0): [2, 1]}).encode())
        cluster.turns.react()
        assert list(listed(cluster)) == [FOO]
        assert [entry["topic"] for entry in json.loads(user.get(PLAN).data)["partitions"]] == [
            "foo"
        ]
        user.set(PLAN, plan_of({FOO: replicas, ("bar", 0): [6]}).encode())
        cluster.turns.react()
        assert list(listed(cluster)) == [FOO]
        user.set(PLAN, plan_of({FOO: replicas}).encode())
        Operations(cluster).join_isr(FOO, replicas[-1])
        assert cluster.topics.partition(*FOO).replicas == tuple(replicas)
        assert user.exists(PLAN) is None
    user.create(PLAN, b"{")
    cluster.turns.react()
    assert len(warnings(cluster)) == 1


@pytest.mark.requirement("K455-38", "K455-63")
def test_another_cluster_takes_up_what_one_left(place: Place, user: ZnodeStore) -> None:
    store = place.open()
    first = simulated_cluster(6, topics=["foo=1,2,3", "bar=1,2"], reassignment=ZK, znodes=store)
    alter(first, [4, 5], ("bar", 0))
    user.create(PLAN, plan_of({FOO: [6, 1]}).encode())
    first.turns.react()
    before = listed(first)
    epoch = first.state.controller_epoch
    store.close()
    second = start(place)
    assert listed(second) == before
    assert second.state.controller_epoch == epoch + 1
    Operations(second).join_isr(FOO, 6)
    assert user.exists(PLAN) is None
    alter(second, None, ("bar", 0))
    assert listed(second) == {}
