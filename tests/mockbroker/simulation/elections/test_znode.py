"""``/admin/preferred_replica_election``: elections asked for through ZooKeeper."""

import json

import pytest

from kproto.znodes.plan_znodes import PREFERRED_REPLICA_ELECTION, encode_preferred_replica_election
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import Warned
from tests.mockbroker.simulation.elections.clusters import (
    MACHINES,
    QUEUED,
    electable,
    queue_log,
    start,
)


def ask(cluster: Cluster, *partitions: tuple[str, int]) -> None:
    text = encode_preferred_replica_election(partitions).decode()
    Operations(cluster).write_znode(PREFERRED_REPLICA_ELECTION, text)


def is_there(cluster: Cluster) -> bool:
    return cluster.znodes.read(PREFERRED_REPLICA_ELECTION) is not None


def warnings(cluster: Cluster) -> list[str]:
    return [each.change.text for each in cluster.log if isinstance(each.change, Warned)]


@pytest.mark.requirement("K183-15")
@pytest.mark.parametrize("reassignment", MACHINES)
def test_it_elects_and_is_gone(reassignment: str) -> None:
    cluster = electable(reassignment=reassignment)
    for _ in range(2):
        ask(cluster, ("foo", 0), ("nope", 3))
        assert cluster.topics.partition("foo", 0).leader == 1
        assert cluster.topics.partition("bar", 0).leader == 2
        assert not is_there(cluster)
    assert queue_log(cluster) == ["+1", "-1", "+2", "-2"]
    text = f"{PREFERRED_REPLICA_ELECTION}: nope-3: The partition does not exist."
    assert warnings(cluster) == [text, text]


@pytest.mark.parametrize("reassignment", MACHINES)
@pytest.mark.parametrize("text", ["", "{", "[]", '{"partitions": [{"topic": 1}]}', "\x00"])
def test_what_cannot_be_read_is_logged_and_removed(reassignment: str, text: str) -> None:
    cluster = electable(reassignment=reassignment)
    Operations(cluster).write_znode(PREFERRED_REPLICA_ELECTION, text)
    assert not is_there(cluster)
    assert len(warnings(cluster)) == 1
    assert PREFERRED_REPLICA_ELECTION in warnings(cluster)[0]
    ask(cluster, ("foo", 0))
    assert cluster.topics.partition("foo", 0).leader == 1, "it is watched as before"


@pytest.mark.requirement("K183-15")
@pytest.mark.parametrize("reassignment", MACHINES)
def test_znode_and_call_share_the_flag(reassignment: str) -> None:
    cluster = electable(reassignment=reassignment)
    Operations(cluster).hold_elections()
    first = start(cluster, "foo")
    ask(cluster, ("bar", 0))
    last = start(cluster, "foo")
    assert queue_log(cluster) == ["+1"]
    assert is_there(cluster)
    Operations(cluster).release_elections()
    assert queue_log(cluster) == ["+1", "-1", "+2", "-2", "+3", "-3"]
    assert not is_there(cluster)
    assert first.result is not None
    assert last.result is not None
    assert cluster.topics.partition("bar", 0).leader == 1


@pytest.mark.requirement("K183-15")
def test_a_call_waits_for_the_znodes_election() -> None:
    cluster = electable(reassignment="zookeeper-0.10")
    Operations(cluster).hold_elections()
    ask(cluster, ("bar", 0))
    started = start(cluster, "foo", timeout_ms=100)
    cluster.turns.advance(100)
    assert started.result is not None
    assert started.result.topics[0].partitions[0].error_code == 7
    Operations(cluster).release_elections()
    assert cluster.topics.partition("bar", 0).leader == 1
    assert cluster.topics.partition("foo", 0).leader == 2, "it never got the flag"


@pytest.mark.parametrize("profile_name", QUEUED)
def test_it_is_read_when_its_turn_comes(profile_name: str) -> None:
    cluster = electable(profile_name, reassignment="zookeeper")
    Operations(cluster).hold_elections()
    ask(cluster, ("bar", 0))
    ask(cluster, ("foo", 0))
    assert queue_log(cluster) == ["+1"], "one znode, one election"
    Operations(cluster).release_elections()
    assert cluster.topics.partition("foo", 0).leader == 1
    assert cluster.topics.partition("bar", 0).leader == 2


def test_deleted_before_its_turn_it_asks_for_nothing() -> None:
    cluster = electable(reassignment="zookeeper")
    Operations(cluster).hold_elections()
    ask(cluster, ("foo", 0))
    Operations(cluster).write_znode(PREFERRED_REPLICA_ELECTION, None)
    Operations(cluster).release_elections()
    assert cluster.topics.partition("foo", 0).leader == 2


@pytest.mark.parametrize("reassignment", MACHINES)
def test_the_next_controller_finds_it(reassignment: str) -> None:
    cluster = electable(reassignment=reassignment)
    Operations(cluster).hold_elections()
    ask(cluster, ("foo", 0))
    Operations(cluster).failover(2)
    assert is_there(cluster)
    assert queue_log(cluster) == ["+1", "x1", "+2"]
    Operations(cluster).release_elections()
    assert cluster.topics.partition("foo", 0).leader == 1
    assert not is_there(cluster)


@pytest.mark.requirement("K183-16")
def test_a_kraft_controller_has_no_such_znode() -> None:
    cluster = electable("kafka-4.4")
    with pytest.raises(ClusterError, match="does not use ZooKeeper"):
        ask(cluster, ("foo", 0))


def test_the_text_is_kafkas() -> None:
    text = encode_preferred_replica_election([("foo", 0), ("bar", 3)])
    assert json.loads(text) == {
        "version": 1,
        "partitions": [{"topic": "foo", "partition": 0}, {"topic": "bar", "partition": 3}],
    }
