"""``/controller`` deleted, every broker stopped, a session expired: who is the controller then.

On the embedded tree and on a real ZooKeeper; the machine makes no difference.
"""

import json

import pytest

from kproto.znodes import ZnodeStore
from mockbroker.errors import ClusterError, NotControllerError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.requesting import child, in_flight, request_text
from tests.znodes.conftest import Place

PLAN = '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[2,3]}]}'
REASSIGN = "/admin/reassign_partitions"


def cluster_at(place: Place, reassignment: str = "zookeeper") -> Cluster:
    return simulated_cluster(3, topics=["foo=1,2"], reassignment=reassignment, znodes=place.open())


def controller_on_record(store: ZnodeStore) -> tuple[int, int]:
    """Broker id and epoch, as the znodes have them."""
    found = json.loads(store.get("/controller").data)
    return found["brokerid"], int(store.get("/controller_epoch").data)


def test_deleting_the_controller_znode_moves_the_controller(place, store):
    cluster = cluster_at(place)
    Operations(cluster).write_znode("/controller", None)
    cluster.turns.react()
    assert (cluster.state.controller_id, cluster.state.controller_epoch) == (2, 2)
    assert controller_on_record(store) == (2, 2)
    store.delete("/controller")  # by another client of ZooKeeper
    cluster.turns.react()
    assert controller_on_record(store) == (1, 3)
    assert (cluster.state.controller_id, cluster.state.controller_epoch) == (1, 3)


def test_the_only_broker_elects_itself_again(place: Place, store: ZnodeStore) -> None:
    cluster = simulated_cluster(1, reassignment="zookeeper", znodes=place.open())
    store.delete("/controller")
    cluster.turns.react()
    assert controller_on_record(store) == (1, 2)


def test_a_plan_written_while_every_broker_is_stopped(place: Place, store: ZnodeStore) -> None:
    cluster = cluster_at(place)
    for broker in (1, 2, 3):
        Operations(cluster).stop_broker(broker)
    assert cluster.state.controller_id == -1
    assert store.exists("/controller") is None
    store.create(REASSIGN, PLAN.encode())
    cluster.turns.react()
    assert cluster.topics.partition("foo", 0).target is None
    Operations(cluster).start_broker(3)
    assert (cluster.state.controller_id, cluster.state.controller_epoch) == (3, 4)
    assert cluster.topics.partition("foo", 0).target == (2, 3)


@pytest.mark.requirement("K236-60")
def test_a_request_created_while_there_is_no_controller(place: Place, store: ZnodeStore) -> None:
    cluster = cluster_at(place, "kip-236-old")
    Operations(cluster).resign_controller()
    assert cluster.state.controller_id == -1
    assert store.exists("/controller") is None
    text = request_text({("foo", 0): [2, 3]})
    Operations(cluster).append_znode("/admin/reassignment_requests/request_", text)
    cluster.turns.react()
    assert in_flight(cluster) == set()
    Operations(cluster).failover(2)
    assert controller_on_record(store) == (2, 2)
    found = child(cluster)
    assert found is not None
    assert found["replicas"] == [2, 3]


def test_what_needs_a_controller_is_refused_without_one() -> None:
    cluster = simulated_cluster(3, topics=["foo=1,2"], reassignment="zookeeper")
    Operations(cluster).resign_controller()
    with pytest.raises(NotControllerError):
        cluster.reassignments.alter([("foo", [(0, [2, 3])])])
    with pytest.raises(NotControllerError):
        cluster.topics.create([])
    with pytest.raises(ClusterError, match="there is no controller"):
        Operations(cluster).leave_isr(("foo", 0), 2)
    with pytest.raises(ClusterError, match="there is already no controller"):
        Operations(cluster).resign_controller()
    assert cluster.controller.metadata_view(2).shown_controller_id(forwarding=False) == 1


def test_brokers_that_stop_while_there_is_no_controller_are_dealt_with_by_the_next() -> None:
    cluster = simulated_cluster(3, topics=["foo=1,2"], reassignment="zookeeper")
    Operations(cluster).resign_controller()
    Operations(cluster).stop_broker(1)
    assert cluster.topics.partition("foo", 0).leader == 1
    Operations(cluster).failover(3)
    partition = cluster.topics.partition("foo", 0)
    assert (partition.leader, partition.isr) == (2, (2,))


def test_kraft_has_neither_step() -> None:
    cluster = Cluster(3)
    with pytest.raises(ClusterError, match="does not use ZooKeeper"):
        Operations(cluster).resign_controller()
    with pytest.raises(ClusterError, match="does not use ZooKeeper"):
        Operations(cluster).expire_session(1)


def test_a_session_that_expires_registers_the_broker_anew(place: Place, store: ZnodeStore) -> None:
    cluster = cluster_at(place)
    before = store.get("/brokers/ids/2").stat
    Operations(cluster).expire_session(2)
    after = store.get("/brokers/ids/2").stat
    assert after.czxid > before.czxid
    assert cluster.memories.epoch(2) == after.czxid
    assert cluster.controller.broker(2).live
    assert cluster.topics.partition("foo", 0).isr == (1,)
    assert controller_on_record(store) == (1, 1)


def test_a_controller_whose_session_expires_is_succeeded(place: Place, store: ZnodeStore) -> None:
    cluster = cluster_at(place)
    Operations(cluster).expire_session(1)
    assert controller_on_record(store) == (2, 2)
    assert store.children("/brokers/ids") == ["1", "2", "3"]
    partition = cluster.topics.partition("foo", 0)
    assert (partition.leader, partition.isr) == (2, (2,))
    Operations(cluster).join_isr(("foo", 0), 1)
    assert cluster.topics.partition("foo", 0).isr == (2, 1)
