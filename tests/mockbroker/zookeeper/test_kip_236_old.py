"""KIP-236's older draft on shared znodes: its main walks, embedded and on a real ZooKeeper."""

import json

import pytest

from kproto.znodes import ConnectionLossError, ZnodeStore
from kproto.znodes.request_znodes import (
    REASSIGN_CANCEL,
    REASSIGN_PARTITIONS_EXTRA,
    REASSIGNMENT_REQUESTS,
    REQUEST_PREFIX,
)
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.requesting import (
    CHILD,
    LEGACY,
    child,
    children,
    in_flight,
    old_cluster,
    plan,
    plan_text,
    request_text,
)
from tests.mockbroker.simulation.reassignment.walks import FOO, joined, now, warnings
from tests.znodes.conftest import Place


@pytest.fixture
def cluster(place: Place) -> Cluster:
    return old_cluster("foo=1,2,3", "bar=1,2", znodes=place.open())


@pytest.fixture
def tool(place: Place, cluster: Cluster) -> ZnodeStore:
    """A session of somebody else's."""
    assert cluster.topics
    return place.open()


@pytest.mark.requirement("K236-54", "K236-56", "K236-57", "K236-62")
def test_requests_from_the_first_to_the_end(cluster: Cluster, tool: ZnodeStore) -> None:
    first = tool.create(REQUEST_PREFIX, request_text({FOO: [2, 4]}).encode(), sequential=True)
    second = tool.create(REQUEST_PREFIX, request_text({FOO: [2, 5]}).encode(), sequential=True)
    assert [path[-10:] for path in (first, second)] == ["0000000000", "0000000001"]
    cluster.turns.react()
    assert tool.children(REASSIGNMENT_REQUESTS) == []
    assert child(cluster) == {"version": 1, "replicas": [2, 5], "legacy": False, "top": 3}
    assert now(cluster) == ([1, 2, 3, 5], [1, 2, 3], [2, 5])
    stat = tool.get(CHILD).stat
    assert stat.czxid < stat.mzxid
    identity = cluster.reassignments.identities()[FOO]
    assert (identity.czxid, identity.mzxid) == (stat.czxid, stat.mzxid)
    joined(cluster, 5)
    assert now(cluster) == ([2, 5], [2, 5], None)
    assert tool.children("/admin/reassignments") == []
    tool.create(REQUEST_PREFIX, request_text({FOO: [1]}).encode(), sequential=True)
    cluster.turns.react()
    assert tool.get(CHILD).stat.czxid > stat.mzxid


@pytest.mark.requirement("K236-50", "K236-53", "K236-58")
def test_a_plan_an_extra_plan_and_the_switch(cluster: Cluster, tool: ZnodeStore) -> None:
    tool.create(LEGACY, plan_text({FOO: [1, 2, 4]}).encode())
    cluster.turns.react()
    assert plan(cluster) == {FOO: ([1, 2, 4], [1, 2, 3])}
    tool.create(REASSIGN_PARTITIONS_EXTRA, plan_text({FOO: [1, 2, 5], ("bar", 0): [6]}).encode())
    cluster.turns.react()
    assert tool.exists(REASSIGN_PARTITIONS_EXTRA) is None
    assert plan(cluster) == {FOO: ([1, 2, 5], [1, 2, 3]), ("bar", 0): ([6], [1, 2])}
    tool.create(REASSIGN_CANCEL)
    cluster.turns.react()
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], None)
    assert (in_flight(cluster), children(cluster)) == (set(), set())
    assert tool.exists(LEGACY) is None
    tool.create(LEGACY, plan_text({FOO: [4]}).encode())
    cluster.turns.react()
    assert (tool.exists(LEGACY), in_flight(cluster)) == (None, set())
    assert tool.exists(REASSIGN_CANCEL) is not None
    tool.delete(REASSIGN_CANCEL)
    tool.create(LEGACY, plan_text({FOO: [4]}).encode())
    cluster.turns.react()
    assert in_flight(cluster) == {FOO}


@pytest.mark.requirement("K236-60", "K236-61")
def test_another_process_goes_on_where_this_one_ended(place: Place, cluster: Cluster) -> None:
    tool = place.open()
    tool.create(LEGACY, plan_text({FOO: [3, 4]}).encode())
    cluster.turns.react()
    cluster.controller.znodes.close()
    tool.create(REQUEST_PREFIX, request_text({("bar", 0): [5]}).encode(), sequential=True)
    tool.create(REQUEST_PREFIX, request_text({FOO: [6]}).encode(), sequential=True)
    other = simulated_cluster(6, reassignment="kip-236-old", znodes=place.open())
    assert now(other)[2] == [3, 4]
    assert in_flight(other) == children(other) == {FOO, ("bar", 0)}
    assert "foo-0 is ignored" in warnings(other)[-1]
    joined(other, 4)
    Operations(other).join_isr(("bar", 0), 5)
    assert (in_flight(other), children(other)) == (set(), set())
    assert json.loads(other.state.znodes["/brokers/topics/bar"])["partitions"] == {"0": [5]}


@pytest.mark.requirement("K236-03")
def test_more_than_zookeeper_takes(cluster: Cluster, tool: ZnodeStore) -> None:
    text = plan_text({FOO: [4]})
    with pytest.raises(ConnectionLossError):
        tool.create(LEGACY, (text + " " * (1024 * 1024 + 1 - len(text))).encode())
    cluster.turns.react()
    assert in_flight(cluster) == set()
