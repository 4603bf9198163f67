"""KIP-236, older draft: what a new controller finds, also one whose predecessor died midway."""

import json
from collections.abc import Callable

import pytest

from kproto.znodes import EmbeddedStore, ZnodeTree
from mockbroker.errors import ControllerDiedError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.requesting import (
    CANCEL,
    CHILD,
    EXTRA,
    LEGACY,
    REQUESTS,
    child,
    children,
    in_flight,
    legacy,
    moves,
    old_cluster,
    plan,
    plan_text,
    request_text,
    submit,
)
from tests.mockbroker.simulation.reassignment.transcripts import entries
from tests.mockbroker.simulation.reassignment.walks import FOO, TOPIC, joined, now, warnings

STATE = f"{TOPIC}/partitions/0/state"


# ---- the three cases -----------------------------------------------------------------------------


def left_behind(*znodes: tuple[str, str], topics: tuple[str, ...] = ("foo=1,2",)) -> Cluster:
    """A cluster that comes up where these were written while there was no controller."""
    tree = ZnodeTree()
    first = old_cluster(*topics, znodes=EmbeddedStore(tree, lambda: 0))
    assert not first.log.since(len(first.log))
    first.controller.znodes.close()
    client = EmbeddedStore(tree, lambda: 0)
    for path, text in znodes:
        at = "/"
        for name in path.split("/")[1:-1]:
            at = at.rstrip("/") + "/" + name
            if client.exists(at) is None:
                client.create(at)
        if client.exists(path) is None:
            client.create(path, text.encode())
        else:
            client.set(path, text.encode())
    return simulated_cluster(6, reassignment="kip-236-old", znodes=EmbeddedStore(tree, lambda: 0))


@pytest.mark.requirement("K236-60")
def test_a_plan_that_came_while_there_was_no_controller() -> None:
    cluster = left_behind((LEGACY, plan_text({FOO: [2, 3]})))
    assert plan(cluster) == {FOO: ([2, 3], [1, 2])}
    assert child(cluster) == {"version": 1, "replicas": [2, 3], "legacy": True, "top": 2}
    joined(cluster, 3)
    assert now(cluster) == ([2, 3], [2, 3], None)


@pytest.mark.requirement("K236-60")
def test_requests_that_came_while_there_was_no_controller_count_in_their_order() -> None:
    cluster = left_behind(
        (f"{REQUESTS}/request_0000000007", request_text({FOO: [2, 4]})),
        (f"{REQUESTS}/request_0000000006", request_text({FOO: [2, 3]})),
    )
    assert now(cluster) == ([1, 2, 4], [1, 2], [2, 4])
    assert {replicas for replicas, _ in moves(cluster)} == {(3,)}
    assert cluster.znodes.children(REQUESTS) == []


@pytest.mark.requirement("K236-60")
def test_the_original_replicas_of_what_came_in_a_plan_are_found_in_it() -> None:
    cluster = old_cluster("foo=1,2", "bar=1,2")
    legacy(cluster, [3, 4])
    submit(cluster, [3, 4], ("bar", 0))
    Operations(cluster).failover(2)
    Operations(cluster).write_znode(CANCEL, "")
    assert now(cluster) == ([1, 2], [1, 2], None)
    assert in_flight(cluster) == {("bar", 0)}


@pytest.mark.requirement("K236-07", "K236-60")
def test_original_replicas_found_in_the_plan_are_remembered() -> None:
    cluster = old_cluster("foo=1,2")
    legacy(cluster, [3, 4])
    Operations(cluster).failover(2)
    legacy(cluster, [3, 5])
    assert plan(cluster) == {FOO: ([3, 5], [1, 2])}


@pytest.mark.requirement("K236-04", "K236-60")
def test_a_switch_that_came_while_there_was_no_controller_goes_before_requests() -> None:
    cluster = old_cluster("foo=1,2", "bar=1")
    legacy(cluster, [3, 4])
    tree = cluster.controller.znodes
    tree.touch(CANCEL)
    tree._store.create(f"{REQUESTS}/request_5", request_text({("bar", 0): [2]}).encode())
    tree.take_events()
    Operations(cluster).failover(2)
    assert now(cluster) == ([1, 2], [1, 2], None)
    assert (in_flight(cluster), cluster.znodes.read(LEGACY)) == (set(), None)
    assert "disabled" in warnings(cluster)[-1]


@pytest.mark.requirement("K236-61")
@pytest.mark.parametrize("ongoing_is_legacy", [False, True])
def test_what_is_in_flight_decides_which_flag_counts(ongoing_is_legacy: bool) -> None:
    flag = "true" if ongoing_is_legacy else "false"
    cluster = left_behind(
        (CHILD, f'{{"version":1,"replicas":[2,3],"legacy":{flag},"top":2}}'),
        (f"{REQUESTS}/request_0000000003", request_text({FOO: [2, 4]}, legacy=False)),
        (f"{REQUESTS}/request_0000000004", request_text({FOO: [2, 5]}, legacy=True)),
        (LEGACY, plan_text({FOO: [2, 6]}, foo=[1, 2])),
    )
    # Legacy: the request, then the plan. Else: the one request that is not legacy.
    assert now(cluster)[2] == ([2, 6] if ongoing_is_legacy else [2, 4])
    assert child(cluster)["legacy"] == ongoing_is_legacy
    assert plan(cluster) == ({FOO: ([2, 6], [1, 2])} if ongoing_is_legacy else {})
    lost = [text for text in warnings(cluster) if "by the other of the two ways" in text]
    assert len(lost) == (1 if ongoing_is_legacy else 2)


@pytest.mark.requirement("K236-60", "K236-61")
def test_a_request_left_over_takes_nothing_out_of_a_newer_plan() -> None:
    cluster = left_behind(
        (f"{REQUESTS}/request_0000000003", request_text({FOO: [9]}, legacy=True)),
        (LEGACY, plan_text({FOO: [2, 6], ("bar", 0): [3]})),
        topics=("foo=1,2", "bar=1"),
    )
    assert plan(cluster) == {FOO: ([2, 6], [1, 2]), ("bar", 0): ([3], [1])}
    assert in_flight(cluster) == {FOO, ("bar", 0)}
    assert len(warnings(cluster)) == 1


@pytest.mark.requirement("K236-61")
def test_requests_count_before_the_plan() -> None:
    cluster = left_behind(
        (f"{REQUESTS}/request_0000000003", request_text({FOO: [2, 4]})),
        (LEGACY, plan_text({FOO: [2, 6]})),
    )
    assert now(cluster)[2] == [2, 4]
    assert cluster.znodes.read(LEGACY) is None


# ---- death midway --------------------------------------------------------------------------------


def one(cluster: Cluster) -> None:
    submit(cluster, [5, 6])


def by_plan(cluster: Cluster) -> None:
    legacy(cluster, [5, 6])


def changed(cluster: Cluster) -> None:
    submit(cluster, [4, 5])
    joined(cluster, 4)
    submit(cluster, [5, 6])


def by_extra(cluster: Cluster) -> None:
    legacy(cluster, [4, 5])
    joined(cluster, 4)
    Operations(cluster).write_znode(EXTRA, plan_text({FOO: [5, 6]}))


def to_the_end(cluster: Cluster) -> None:
    legacy(cluster, [5, 6])
    joined(cluster, 5, 6)


DEATHS: list[Callable[[Cluster], None]] = [one, by_plan, changed, by_extra, to_the_end]


@pytest.mark.requirement("K236-60", "K236-53")
@pytest.mark.parametrize("way", DEATHS)
def test_whenever_the_controller_dies_the_next_one_brings_it_to_its_end(way):
    for changes in range(1000):
        cluster = old_cluster("foo=2,3", cluster_id="c")
        Operations(cluster).kill_controller_after(changes)
        try:
            way(cluster)
        except ControllerDiedError:
            pass
        else:
            assert changes > 5
            return
        finish(cluster, way)
    pytest.fail("it never comes to an end")


def finish(cluster: Cluster, way: Callable[[Cluster], None]) -> None:
    assert cluster.state.controller_id != 1
    Operations(cluster).start_broker(1)
    partition = cluster.topics.partition(*FOO)
    if not partition.reassigning and partition.replicas != (5, 6):
        way(cluster)  # it died before anything was on record
    for broker in (4, 5, 6):
        target = cluster.topics.partition(*FOO).target or ()
        if broker in target:
            joined(cluster, broker)
    partition = cluster.topics.partition(*FOO)
    assert not partition.reassigning, entries(cluster, 0)
    assert partition.replicas in ((5, 6), (4, 5)), entries(cluster, 0)
    assert set(partition.isr) == set(partition.replicas)
    assert (children(cluster), cluster.znodes.children(REQUESTS)) == (set(), [])
    assert cluster.znodes.read(LEGACY) is None
    assert json.loads(cluster.state.znodes[TOPIC])["partitions"]["0"] == list(partition.replicas)
    replayed = replay("c", cluster.log)
    assert (replayed.topics, replayed.znodes) == (cluster.state.topics, cluster.state.znodes)


@pytest.mark.requirement("K236-60", "K236-04")
def test_whenever_the_controller_dies_the_switch_has_its_way() -> None:
    for changes in range(1000):
        cluster = old_cluster("foo=2,3")
        legacy(cluster, [5, 6])
        joined(cluster, 5)
        Operations(cluster).kill_controller_after(changes)
        try:
            Operations(cluster).write_znode(CANCEL, "")
        except ControllerDiedError:
            Operations(cluster).start_broker(1)
            if CANCEL not in cluster.state.znodes:
                Operations(cluster).write_znode(CANCEL, "")
        else:
            assert changes > 10
            return
        assert now(cluster)[0] == [2, 3], entries(cluster, 0)
        assert in_flight(cluster) == children(cluster) == set()
        assert cluster.znodes.read(LEGACY) is None
    pytest.fail("it never comes to an end")


@pytest.mark.requirement("K236-60")
def test_a_controller_that_dies_in_taking_over_is_succeeded_by_one_that_does() -> None:
    for changes in range(1000):
        cluster = old_cluster("foo=2,3", "bar=4")
        legacy(cluster, [5, 6])
        joined(cluster, 5)
        submit(cluster, [6], ("bar", 0))
        Operations(cluster).kill_controller_after(changes)
        try:
            Operations(cluster).failover(3)
        except ControllerDiedError:
            assert not (cluster.brokers[1].live and cluster.brokers[3].live)
            for broker in (1, 3):
                if not cluster.brokers[broker].live:
                    Operations(cluster).start_broker(broker)
        else:
            assert changes > 10
            return
        assert in_flight(cluster) == children(cluster) == {FOO, ("bar", 0)}
        assert plan(cluster) == {FOO: ([5, 6], [2, 3])}
        joined(cluster, 5, 6)
        Operations(cluster).join_isr(("bar", 0), 6)
        assert now(cluster) == ([5, 6], [5, 6], None)
        assert (children(cluster), cluster.znodes.read(LEGACY)) == (set(), None)
    pytest.fail("it never comes to an end")
