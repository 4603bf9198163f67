"""KIP-236, older draft: from a request znode to the end, row by row."""

from __future__ import annotations

import json

import pytest

from kproto.error_codes import ErrorCode
from kproto.znodes import EmbeddedStore, ZnodeTree
from mockbroker.cluster import Cluster
from tests.mockbroker.reassignment.requesting import (
    CANCEL,
    CHILD,
    LITERAL,
    REQUESTS,
    child,
    children,
    in_flight,
    legacy,
    moves,
    old_cluster,
    story,
    submit,
    warnings,
)
from tests.mockbroker.reassignment.walks import FOO, alter, joined, now, znode_writes

BROKERS = "1,2,3,4,5,6"


def set_topic(cluster: Cluster, name: str, value: str) -> None:
    (result,) = cluster.incremental_alter_configs([(2, "foo", [(name, 0, value)])])
    assert result.error_code == 0


@pytest.mark.requirement("K236-54")
@pytest.mark.requirement("A-52")
def test_a_request_znode_starts_a_reassignment() -> None:
    cluster = old_cluster("foo=1,2")
    since = len(cluster.log)
    path = submit(cluster, [2, 3])
    assert path == f"{REQUESTS}/request_0000000000"
    assert story(cluster, since) == [
        'reassignments/foo/0 {"version":1,"replicas":[2,3],"legacy":false,"top":2}',
        "foo 1,2,3",
        "foo/partitions/0/state I=1,2 leader=1 epoch=1",
        "memory R=1,2,3 I=1,2 leader=1 epoch=1 T=2,3",
        "LeaderAndIsr to 1,2,3 R=1,2,3 I=1,2 leader=1 epoch=1",
        f"UpdateMetadata to {BROKERS} R=1,2,3 I=1,2 leader=1 epoch=1",
    ]
    assert cluster.znode_children(REQUESTS) == []


@pytest.mark.requirement("K236-54")
def test_requests_are_numbered_upwards_and_stay_until_dealt_with() -> None:
    cluster = old_cluster()
    before = len(cluster.log)
    first, second = submit(cluster, [4]), submit(cluster, [5])
    assert (first, second) == (f"{REQUESTS}/request_0000000000", f"{REQUESTS}/request_0000000001")
    assert cluster.znode_children(REQUESTS) == []
    paths = [path for path, _ in znode_writes(cluster, before)]
    # Created first, gone last, and the reassignment's own znode is there in between.
    assert paths.index(first) < paths.index(CHILD) < len(paths) - 1 - paths[::-1].index(first)
    assert child(cluster)["replicas"] == [5]


@pytest.mark.requirement("K236-54")
def test_a_request_may_be_about_several_partitions() -> None:
    cluster = old_cluster("foo=1,2,3/1,2,3", "bar=1")
    text = '{"version":1,"assignments":{"foo":{"0":[4],"1":[5]},"bar":{"0":[6]}},"legacy":false}'
    cluster.append_znode(f"{REQUESTS}/request_", text)
    assert children(cluster) == in_flight(cluster) == {("foo", 0), ("foo", 1), ("bar", 0)}


@pytest.mark.requirement("K236-56")
@pytest.mark.requirement("K236-20")
def test_the_end_comes_in_seven_steps_once_all_new_replicas_are_in_sync() -> None:
    cluster = old_cluster("foo=1,2")
    submit(cluster, [2, 4])
    since = len(cluster.log)
    joined(cluster, 4)
    assert story(cluster, since)[3:] == [
        "memory R=2,4 I=1,2,4 leader=1 epoch=1 T=2,4",
        "foo/partitions/0/state I=1,2,4 leader=2 epoch=2",
        "memory R=2,4 I=1,2,4 leader=2 epoch=2 T=2,4",
        "LeaderAndIsr to 2,4 R=2,4 I=1,2,4 leader=2 epoch=2",
        "1 -> OfflineReplica",
        "foo/partitions/0/state I=2,4 leader=2 epoch=3",
        "memory R=2,4 I=2,4 leader=2 epoch=3 T=2,4",
        "LeaderAndIsr to 2 R=2,4 I=2,4 leader=2 epoch=3",
        "StopReplica to 1 delete=False",
        "1 -> NonExistentReplica",
        "StopReplica to 1 delete=True",
        "foo 2,4",
        "reassignments/foo/0 removed",
        "memory R=2,4 I=2,4 leader=2 epoch=3",
        f"UpdateMetadata to {BROKERS} R=2,4 I=2,4 leader=2 epoch=3",
    ]
    assert cluster.znode_children("/admin/reassignments") == []


@pytest.mark.requirement("K236-56")
def test_the_end_waits_for_the_last_new_replica_and_for_one_that_can_lead() -> None:
    cluster = old_cluster("foo=1")
    submit(cluster, [4, 5])
    joined(cluster, 4)
    assert now(cluster) == ([1, 4, 5], [1, 4], [4, 5])
    cluster.stop_broker(4)
    assert child(cluster)
    cluster.start_broker(4)
    joined(cluster, 4, 5)
    assert now(cluster) == ([4, 5], [4, 5], None)
    cluster = old_cluster("foo=5,6")
    cluster.stop_broker(5)
    cluster.stop_broker(6)
    submit(cluster, [6])
    # 6 is the last in sync and down: nobody can lead, so the end has to wait.
    assert now(cluster) == ([5, 6], [6], [6])
    cluster.start_broker(6)
    assert now(cluster) == ([6], [6], None)


@pytest.mark.requirement("K236-56")
def test_what_is_there_already_is_no_reassignment_and_a_new_order_is_done_at_once() -> None:
    cluster = old_cluster()
    since = len(cluster.log)
    submit(cluster, [1, 2, 3])
    assert story(cluster, since) == []
    submit(cluster, [2, 3, 1])
    assert now(cluster) == ([2, 3, 1], [1, 2, 3], None)
    assert (cluster.partition(*FOO).leader, cluster.partition(*FOO).leader_epoch) == (1, 2)
    assert children(cluster) == set()
    assert moves(cluster) == []


@pytest.mark.requirement("K236-02")
@pytest.mark.requirement("K236-56")
def test_the_children_are_exactly_what_is_in_flight() -> None:
    cluster = old_cluster("foo=1/1/1")
    tps = [("foo", index) for index in range(3)]
    for tp in tps:
        submit(cluster, [4], tp)
    assert children(cluster) == set(tps)
    cluster.join_isr(tps[2], 4)
    cluster.join_isr(tps[0], 4)
    assert children(cluster) == in_flight(cluster) == {tps[1]}


@pytest.mark.requirement("K236-06")
@pytest.mark.requirement("K236-55")
def test_a_later_request_changes_it_and_the_client_remembers_what_there_was() -> None:
    cluster = old_cluster()
    submit(cluster, [4, 5, 6])
    joined(cluster, 4)
    submit(cluster, [1, 2, 3])
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], None)
    assert child(cluster) is None
    assert {replicas for replicas, _ in moves(cluster)} == {(4, 5, 6)}


@pytest.mark.requirement("K236-57")
def test_czxid_names_a_reassignment_and_mzxid_tells_that_it_was_changed() -> None:
    cluster = old_cluster("foo=1,2")

    def zxids() -> tuple[int, int]:
        found = cluster.read_znode(CHILD)
        assert found is not None
        return found[1].czxid, found[1].mzxid

    submit(cluster, [2, 3])
    first = zxids()
    assert first[0] == first[1]
    since = len(cluster.log)
    submit(cluster, [2, 3])
    # Asked again for what is under way: nothing was changed, and nobody is told.
    assert (zxids(), story(cluster, since)) == (first, [])
    submit(cluster, [2, 4])
    changed = zxids()
    assert changed[0] == first[0] < changed[1]
    joined(cluster, 4)
    submit(cluster, [1])
    another = zxids()
    assert another[0] == another[1] > changed[1]


@pytest.mark.requirement("K236-62")
@pytest.mark.requirement("K236-64")
@pytest.mark.requirement("K236-66")
def test_an_intermediate_replica_is_dropped_at_once() -> None:
    cluster = old_cluster("foo=1,2")
    submit(cluster, [2, 3])
    since = len(cluster.log)
    submit(cluster, [2, 4])
    assert story(cluster, since) == [
        'reassignments/foo/0 {"version":1,"replicas":[2,4],"legacy":false,"top":2}',
        "3 -> OfflineReplica",
        "LeaderAndIsr to 1 R=1,2,3 I=1,2 leader=1 epoch=1",
        "StopReplica to 3 delete=False",
        "3 -> ReplicaDeletionStarted",
        "StopReplica to 3 delete=True",
        "3 -> ReplicaDeletionSuccessful",
        "3 -> NonExistentReplica",
        "memory R=1,2 I=1,2 leader=1 epoch=1 T=2,3",
        "foo 1,2",
        "foo 1,2,4",
        "foo/partitions/0/state I=1,2 leader=1 epoch=2",
        "memory R=1,2,4 I=1,2 leader=1 epoch=2 T=2,4",
        "LeaderAndIsr to 1,2,4 R=1,2,4 I=1,2 leader=1 epoch=2",
        f"UpdateMetadata to {BROKERS} R=1,2,4 I=1,2 leader=1 epoch=2",
    ]
    joined(cluster, 4)
    assert now(cluster) == ([2, 4], [2, 4], None)


@pytest.mark.requirement("K236-62")
@pytest.mark.requirement("K236-66")
def test_an_intermediate_replica_leaves_the_isr_under_an_epoch_of_its_own() -> None:
    cluster = old_cluster("foo=1,2")
    submit(cluster, [2, 3, 5])
    joined(cluster, 3)
    since = len(cluster.log)
    submit(cluster, [2, 4])
    assert story(cluster, since)[1:6] == [
        "3,5 -> OfflineReplica",
        "foo/partitions/0/state I=1,2 leader=1 epoch=2",
        "memory R=1,2,3,5 I=1,2 leader=1 epoch=2 T=2,3,5",
        "LeaderAndIsr to 1 R=1,2,3,5 I=1,2 leader=1 epoch=2",
        "StopReplica to 3,5 delete=False",
    ]
    assert now(cluster) == ([1, 2, 4], [1, 2], [2, 4])


def joined_and_leading_three(machine: str) -> Cluster:
    """[1,2] heads for [2,3]; 3 leads, and 2 has fallen behind."""
    cluster = old_cluster("foo=1,2", machine=machine)
    submit(cluster, [2, 3])
    cluster.leave_isr(FOO, 2)
    joined(cluster, 3)
    cluster.stop_broker(1)
    cluster.start_broker(1)
    joined(cluster, 1)
    assert now(cluster) == ([1, 2, 3], [3, 1], [2, 3])
    assert cluster.partition(*FOO).leader == 3
    return cluster


@pytest.mark.requirement("K236-62")
@pytest.mark.requirement("K236-64")
@pytest.mark.requirement("A-16")
def test_the_pages_words_drop_a_replica_of_the_new_target_and_keep_the_intermediate_one() -> None:
    """The defect of the page, to be seen with the literal machine only."""
    cluster = joined_and_leading_three(LITERAL)
    submit(cluster, [2, 4])
    assert {replicas for replicas, _ in moves(cluster)} == {(2,)}
    assert now(cluster) == ([1, 3, 2, 4], [3, 1], [2, 4])
    cluster = joined_and_leading_three("kip-236-old")
    submit(cluster, [2, 4])
    assert moves(cluster) == []
    assert now(cluster) == ([1, 2, 3, 4], [3, 1], [2, 4])


@pytest.mark.requirement("K236-63")
def test_fewer_replicas_than_must_be_in_sync_are_not_reassigned() -> None:
    cluster = old_cluster("foo=1")
    set_topic(cluster, "min.insync.replicas", "2")
    since = len(cluster.log)
    submit(cluster, [4, 5])
    (line,) = story(cluster, since)
    assert line.startswith(f"warning: {REQUESTS}/request_0000000000: foo-0 is ignored: ")
    assert "min.insync.replicas" in line
    set_topic(cluster, "min.insync.replicas", "1")
    submit(cluster, [4, 5])
    assert child(cluster)["top"] == 1
    # It was checked when it began, and top is kept since.
    set_topic(cluster, "min.insync.replicas", "2")
    submit(cluster, [4, 6])
    assert child(cluster) == {"version": 1, "replicas": [4, 6], "legacy": False, "top": 1}


@pytest.mark.requirement("K236-59")
@pytest.mark.parametrize("first_legacy", [False, True])
def test_the_other_way_of_asking_is_ignored_while_one_is_under_way(first_legacy: bool) -> None:
    cluster = old_cluster()
    first, second = (legacy, submit) if first_legacy else (submit, legacy)
    first(cluster, [1, 2, 4])
    before = child(cluster), cluster.znodes.get("/admin/reassign_partitions")
    since = len(cluster.log)
    second(cluster, [1, 2, 5])
    assert (child(cluster), cluster.znodes.get("/admin/reassign_partitions")) == before
    assert child(cluster)["legacy"] == first_legacy
    assert cluster.znode_children(REQUESTS) == []
    (warning,) = warnings(cluster, since)
    assert "foo-0 is ignored: foo-0 is being reassigned already, by the other" in warning
    first(cluster, [1, 2, 6])
    assert child(cluster)["replicas"] == [1, 2, 6]


# ---- through Kafka's protocol --------------------------------------------------------------------


@pytest.mark.requirement("K236-12")
@pytest.mark.requirement("K236-54")
def test_to_alter_is_to_make_one_request_znode() -> None:
    cluster = old_cluster("foo=1,2,3/1,2,3", "bar=1")
    since = len(cluster.log)
    result = cluster.alter_partition_reassignments(
        [("foo", [(0, [4]), (1, [1, 2, 2]), (7, [1]), (1, [5])]), ("no", [(0, [1])])]
    )
    codes = [[row.error_code for row in topic.partitions] for topic in result.topics]
    assert codes == [[0, 39, 3, 0], [3]]
    made = [text for path, text in znode_writes(cluster, since) if path.startswith(REQUESTS)]
    asked, gone = made
    assert asked is not None
    assert json.loads(asked) == {
        "version": 1, "assignments": {"foo": {"0": [4], "1": [5]}}, "legacy": False,
    }  # fmt: skip
    assert gone is None
    assert children(cluster) == {("foo", 0), ("foo", 1)}


@pytest.mark.requirement("K236-12")
def test_listing_tells_what_comes_and_what_goes() -> None:
    cluster = old_cluster("foo=1,2,3", "bar=1")
    alter(cluster, [3, 4])
    (topic,) = cluster.list_partition_reassignments(None).topics
    (row,) = topic.partitions
    assert (topic.name, row.replicas) == ("foo", (1, 2, 3, 4))
    assert (row.adding_replicas, row.removing_replicas) == ((4,), (1, 2))
    assert cluster.list_partition_reassignments([("bar", [0]), ("no", [0])]).topics == ()
    cluster.failover(2)
    assert cluster.list_partition_reassignments([("foo", [0, 9])]).topics == (topic,)


@pytest.mark.requirement("K236-12")
def test_the_state_shows_what_it_would_be_rolled_back_to() -> None:
    cluster = old_cluster()
    assert "original" not in cluster.state()["topics"]["foo"]["0"]
    submit(cluster, [4])
    shown = cluster.state()["topics"]["foo"]["0"]
    assert (shown["target"], shown["original"]) == ([4], [1, 2, 3])
    cluster.failover(2)
    assert cluster.state()["topics"]["foo"]["0"]["original"] is None


@pytest.mark.requirement("K236-01")
@pytest.mark.requirement("K236-12")
@pytest.mark.requirement("K236-55")
@pytest.mark.requirement("A-14")
@pytest.mark.parametrize("way", [submit, legacy])
def test_a_null_rolls_back_to_the_replicas_there_were(way: object) -> None:
    cluster = old_cluster()
    assert alter(cluster, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert callable(way)
    way(cluster, [4, 5, 6])
    joined(cluster, 4)
    assert alter(cluster, None) == 0
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], None)
    assert children(cluster) == set()
    assert cluster.read_znode("/admin/reassign_partitions") is None


@pytest.mark.requirement("K236-12")
@pytest.mark.requirement("K236-55")
def test_what_the_replicas_were_is_not_known_to_a_new_controller() -> None:
    cluster = old_cluster()
    submit(cluster, [4, 5, 6])
    cluster.failover(2)
    since = len(cluster.log)
    result = cluster.alter_partition_reassignments([("foo", [(0, None)])])
    (row,) = result.topics[0].partitions
    assert row.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert row.error_message is not None
    assert row.error_message.startswith("The original replicas of foo-0 are not known")
    assert story(cluster, since) == []
    assert alter(cluster, [1, 2, 3]) == 0
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], None)


@pytest.mark.requirement("A-14")
@pytest.mark.requirement("K236-12")
def test_nothing_is_rolled_back_to_replicas_none_of_which_could_lead() -> None:
    cluster = old_cluster("foo=3,4")
    alter(cluster, [5, 6])
    joined(cluster, 5)
    cluster.leave_isr(FOO, 4)
    cluster.stop_broker(3)
    assert now(cluster)[1] == [5]
    since = len(cluster.log)
    result = cluster.alter_partition_reassignments([("foo", [(0, None)])])
    (row,) = result.topics[0].partitions
    assert row.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert row.error_message is not None
    assert row.error_message.startswith("None of the original replicas of foo-0 is in sync")
    assert story(cluster, since) == []
    assert in_flight(cluster) == {FOO}


@pytest.mark.requirement("K236-05")
@pytest.mark.requirement("K236-12")
@pytest.mark.requirement("K236-59")
@pytest.mark.requirement("K236-63")
def test_clients_are_told_why_their_request_would_be_ignored() -> None:
    cluster = old_cluster("foo=1")
    set_topic(cluster, "min.insync.replicas", "2")
    assert alter(cluster, [4, 5]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    set_topic(cluster, "min.insync.replicas", "1")
    legacy(cluster, [4])
    assert alter(cluster, [5]) == ErrorCode.REASSIGNMENT_IN_PROGRESS
    cluster.write_znode(CANCEL, "")
    assert alter(cluster, [4]) == ErrorCode.POLICY_VIOLATION
    cluster.write_znode(CANCEL, None)
    since = len(cluster.log)
    assert alter(cluster, [4]) == 0
    assert warnings(cluster, since) == []


@pytest.mark.requirement("K236-03")
@pytest.mark.requirement("K236-12")
def test_a_request_too_large_for_zookeeper_is_refused_whole() -> None:
    tree = ZnodeTree(max_request_bytes=600)
    store = EmbeddedStore(tree, lambda: 0)
    cluster = old_cluster(("foo", [[1]] * 30), znodes=store)
    rows = [(index, [2, 3, 4, 5, 6]) for index in range(30)]
    result = cluster.alter_partition_reassignments([("foo", [*rows, (99, [2])])])
    *refused, unknown = result.topics[0].partitions
    assert {row.error_code for row in refused} == {ErrorCode.INVALID_REQUEST}
    assert all("jute.maxbuffer" in str(row.error_message) for row in refused)
    assert (len(refused), unknown.error_code) == (30, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert in_flight(cluster) == set()
    few = cluster.alter_partition_reassignments([("foo", rows[:10])])
    assert {row.error_code for row in few.topics[0].partitions} == {0}
    assert len(in_flight(cluster)) == 10


@pytest.mark.requirement("K236-56")
def test_a_topic_that_is_deleted_takes_its_reassignments_along() -> None:
    cluster = old_cluster("foo=1/1", "bar=1")
    submit(cluster, [4])
    legacy(cluster, [5], ("foo", 1))
    submit(cluster, [6], ("bar", 0))
    cluster.write_znode("/admin/delete_topics/foo", "")
    assert "foo" not in cluster.topics
    assert children(cluster) == in_flight(cluster) == {("bar", 0)}
    assert cluster.read_znode("/admin/reassign_partitions") is None
