"""A cluster whose znodes others read and write too: on the embedded tree, and on a real ZooKeeper.

Which machine it is makes no difference to what is shown here; the drafts' are used.
"""

import json

import pytest

from kproto.znodes import ZnodeStore
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import Warned
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.reassignment.walks import changes
from tests.znodes.conftest import Place

FOO = "/brokers/topics/foo"


def cluster_at(place: Place, *topics: str) -> Cluster:
    return simulated_cluster(4, topics=topics, reassignment="kip-455-new", znodes=place.open())


def put(store: ZnodeStore, path: str, text: str) -> None:
    """As a tool does it."""
    made = ""
    for name in path.split("/")[1:-1]:
        made += f"/{name}"
        if store.exists(made) is None:
            store.create(made)
    if store.exists(path) is None:
        store.create(path, text.encode())
    else:
        store.set(path, text.encode())


def test_what_a_cluster_has_is_there_for_others_to_read(place: Place, store: ZnodeStore) -> None:
    cluster_at(place, "foo=1,2/2,3")
    assert store.children("/brokers/ids") == ["1", "2", "3", "4"]
    assert json.loads(store.get("/controller").data)["brokerid"] == 1
    assert store.get("/controller_epoch").data == b"1"
    assert store.get(FOO).data == b'{"version":1,"partitions":{"0":[1,2],"1":[2,3]}}'
    state = json.loads(store.get(f"{FOO}/partitions/1/state").data)
    assert (state["leader"], state["isr"], state["controller_epoch"]) == (2, [2, 3], 1)
    assert store.exists("/brokers/ids/1") is not None
    owner = store.get("/controller").stat.ephemeral_owner
    assert owner
    assert store.get("/brokers/ids/1").stat.ephemeral_owner == owner
    assert not store.get(FOO).stat.ephemeral_owner


def test_a_stopped_broker_is_not_registered(place: Place, store: ZnodeStore) -> None:
    cluster = cluster_at(place)
    Operations(cluster).stop_broker(1)
    assert store.children("/brokers/ids") == ["2", "3", "4"]
    assert json.loads(store.get("/controller").data)["brokerid"] == 2
    assert store.get("/controller_epoch").data == b"2"
    Operations(cluster).start_broker(1)
    assert store.children("/brokers/ids") == ["1", "2", "3", "4"]


def test_a_topic_that_a_tool_writes_is_created(place: Place, store: ZnodeStore) -> None:
    cluster = cluster_at(place)
    put(store, "/config/topics/foo", '{"version":1,"config":{"retention.ms":"7"}}')
    put(store, FOO, '{"version":1,"partitions":{"0":[3,1],"1":[4,2]}}')
    cluster.turns.react()
    assert [each.replicas for each in cluster.topics["foo"].partitions] == [(3, 1), (4, 2)]
    assert cluster.topics.partition("foo", 1).leader == 4
    assert json.loads(store.get(f"{FOO}/partitions/0/state").data)["leader"] == 3
    assert cluster.configs.topic("foo", "retention.ms").value == "7"


def test_partitions_that_a_tool_adds(place: Place, store: ZnodeStore) -> None:
    cluster = cluster_at(place, "foo=1,2")
    put(store, FOO, '{"version":1,"partitions":{"0":[1,2],"1":[3,4]}}')
    cluster.turns.react()
    assert cluster.topics.partition("foo", 1).replicas == (3, 4)
    put(store, FOO, '{"version":1,"partitions":{"0":[1,2],"1":[3,4],"2":[4,1]}}')
    cluster.turns.react()
    assert cluster.topics.partition("foo", 2).leader == 4


def test_a_deletion_asked_for_by_a_znode(place: Place, store: ZnodeStore) -> None:
    cluster = cluster_at(place, "foo=1,2")
    put(store, "/admin/delete_topics/foo", "")
    put(store, "/admin/delete_topics/never", "")
    cluster.turns.react()
    assert not cluster.topics
    assert store.children("/admin/delete_topics") == []
    assert store.exists(FOO) is None
    (warning,) = changes(cluster, Warned)
    assert warning.text.startswith("/admin/delete_topics/never: ")


def test_configs_that_a_tool_changes(place: Place, store: ZnodeStore) -> None:
    cluster = cluster_at(place, "foo=1,2")
    put(store, "/config/topics/foo", '{"version":1,"config":{"retention.ms":"7"}}')
    put(
        store,
        "/config/brokers/2",
        '{"version":1,"config":{"leader.replication.throttled.rate":"9"}}',
    )
    cluster.turns.react()
    assert cluster.configs.topic("foo", "retention.ms").value != "7"  # no notification yet
    for entity in ("topics/foo", "brokers/2"):
        text = json.dumps({"version": 2, "entity_path": entity}).encode()
        store.create("/config/changes/config_change_", text, sequential=True)
    cluster.turns.react()
    assert cluster.configs.topic("foo", "retention.ms").value == "7"
    assert cluster.configs.broker(2, "leader.replication.throttled.rate").value == "9"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version":1}',
        '{"version":1,"partitions":{}}',
        '{"version":1,"partitions":{"0":[]}}',
        '{"version":1,"partitions":{"1":[1]}}',
        '{"version":1,"partitions":{"0":[-1]}}',
        '{"version":1,"partitions":{"0":["1"]}}',
        '{"version":3,"partitions":{"0":[1]},"topic_id":"x"}',
        "[" * 5000,
    ],
)
def test_a_topic_znode_that_cannot_be_read_is_left_out_and_the_log_says_so(text: str) -> None:
    cluster = simulated_cluster(3, reassignment="kip-455-new")
    Operations(cluster).write_znode(FOO, text)
    assert not cluster.topics
    (warning,) = changes(cluster, Warned)
    assert warning.text.startswith(f"{FOO}: ")
    assert "\n" not in warning.text


def test_a_cluster_finds_what_the_last_one_left(place: Place, store: ZnodeStore) -> None:
    first = place.open()
    cluster = simulated_cluster(4, topics=["foo=1,2,3"], reassignment="kip-455-new", znodes=first)
    cluster.reassignments.alter([("foo", [(0, [4, 2])])])
    cluster.config_changes.alter_incrementally([(2, "foo", [("retention.ms", 0, "7")])])
    first.close()
    assert store.children("/brokers/ids") == []
    again = cluster_at(place)
    assert again.state.controller_epoch == 2
    assert again.topics.partition("foo", 0).target == (4, 2)
    assert again.configs.topic("foo", "retention.ms").value == "7"
    Operations(again).join_isr(("foo", 0), 4)
    assert again.topics.partition("foo", 0).replicas == (4, 2)
    assert not again.topics.partition("foo", 0).reassigning
    assert replay(again.state.cluster_id, again.log).znodes == again.state.znodes


def test_two_clusters_at_one_path_are_a_clear_error(place: Place) -> None:
    cluster_at(place)
    with pytest.raises(ClusterError, match="/brokers/ids/1 already exists: another cluster"):
        cluster_at(place)


def test_a_znode_too_large_is_a_clear_error_and_changes_nothing() -> None:
    cluster = simulated_cluster(3, reassignment="kip-455-new")
    before, offset = dict(cluster.state.znodes), len(cluster.log)
    with pytest.raises(ClusterError, match="ConnectionLoss"):
        Operations(cluster).write_znode("/admin/reassign_partitions", "x" * (1024 * 1024 + 1))
    assert cluster.state.znodes == before
    assert len(cluster.log) == offset


def test_kraft_has_no_znodes() -> None:
    with pytest.raises(ClusterError, match="'kraft' does not use ZooKeeper"):
        Operations(Cluster(3)).write_znode("/a", "b")
