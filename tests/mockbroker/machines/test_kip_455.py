"""The two drafts of KIP-455, row by row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kproto.error_codes import ErrorCode
from kproto.schema.model import ZERO_UUID
from mockbroker.actions import (
    LeaderAndIsrSent,
    PartitionChanged,
    StopReplicaSent,
    UpdateMetadataSent,
    Warned,
)
from mockbroker.cluster import Cluster
from mockbroker.controller import replay
from mockbroker.errors import ClusterError
from mockbroker.machines import machine
from tests.mockbroker.machines.walks import (
    FOO,
    alter,
    changes,
    cluster_of,
    now,
    remembered,
    walk,
    znode_writes,
)

OLD, NEW = "kip-455-old", "kip-455-new"
BOTH = pytest.mark.parametrize("draft", [OLD, NEW])
TOPIC = "/brokers/topics/foo"
STATE = "/brokers/topics/foo/partitions/0/state"


def state_with(target: str) -> str:
    """foo-0's state znode as it is before anything happens, but for this target."""
    fields = '"version":1,"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[1,2,3]'
    return f'{{{fields},"targetReplicas":{target}}}'


def joined(cluster: Cluster, *brokers: int) -> None:
    for broker in brokers:
        cluster.join_isr(FOO, broker)


@pytest.mark.requirement("K455-35")
@pytest.mark.requirement("K455-37")
@pytest.mark.requirement("K455-42")
def test_the_newer_drafts_printed_walk() -> None:
    cluster = cluster_of(NEW)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4, 5, 6)
    assert walk(cluster) == [
        ([1, 2, 3], [1, 2, 3], None),
        ([1, 2, 3], [1, 2, 3], [4, 5, 6]),
        ([1, 2, 3], [1, 2, 3, 4], [4, 5, 6]),
        ([1, 2, 3, 4], [1, 2, 3, 4], [4, 5, 6]),
        ([1, 2, 3, 4], [1, 2, 3, 4, 5], [4, 5, 6]),
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [4, 5, 6]),
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6], [4, 5, 6]),
        ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], [4, 5, 6]),
        ([4, 5, 6], [1, 2, 3, 4, 5, 6], None),
        ([4, 5, 6], [4, 5, 6], None),
    ]


@pytest.mark.requirement("K455-31")
@pytest.mark.requirement("A-09")
def test_the_older_drafts_target_shrinks_to_nothing() -> None:
    cluster = cluster_of(OLD)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4, 5, 6)
    assert walk(cluster) == [
        ([1, 2, 3], [1, 2, 3], None),
        ([1, 2, 3], [1, 2, 3], [4, 5, 6]),
        ([1, 2, 3], [1, 2, 3, 4], [4, 5, 6]),
        ([1, 2, 3, 4], [1, 2, 3, 4], [5, 6]),
        ([1, 2, 3, 4], [1, 2, 3, 4, 5], [5, 6]),
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [6]),
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6], [6]),
        ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], []),
        ([4, 5, 6], [1, 2, 3, 4, 5, 6], None),
        ([4, 5, 6], [4, 5, 6], None),
    ]


@BOTH
@pytest.mark.requirement("K455-30")
@pytest.mark.requirement("K455-32")
@pytest.mark.requirement("K455-40")
@pytest.mark.requirement("K455-45")
@pytest.mark.requirement("A-08")
def test_a_reassignment_is_recorded_in_the_partitions_state_znode(draft: str) -> None:
    cluster = cluster_of(draft)
    before = dict(cluster.znodes)
    assert alter(cluster, [4, 5, 6]) == 0
    assert cluster.znodes == {
        **before,
        STATE: '{"version":1,"leader":1,"leader_epoch":1,"controller_epoch":1,'
        '"isr":[1,2,3],"targetReplicas":[4,5,6]}',
    }


@BOTH
@pytest.mark.requirement("K455-33")
@pytest.mark.requirement("A-08")
@pytest.mark.requirement("A-11")
def test_old_replicas_leave_the_topic_znode_before_the_target_leaves_the_state(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4, 5)
    since = len(cluster.log)
    joined(cluster, 6)
    *growing, topic, state, shrunk = znode_writes(cluster, since)
    assert growing[1] == (TOPIC, '{"version":1,"partitions":{"0":[1,2,3,4,5,6]}}')
    assert topic == (TOPIC, '{"version":1,"partitions":{"0":[4,5,6]}}')
    head = '{"controller_epoch":1,"leader":4,"version":1,"leader_epoch":2,"isr":'
    assert state == (STATE, head + "[1,2,3,4,5,6]}")
    assert shrunk == (STATE, head + "[4,5,6]}")


@BOTH
@pytest.mark.requirement("K455-41")
@pytest.mark.requirement("A-08")
def test_every_growth_of_the_replicas_is_written_and_told_to_every_broker(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    since = len(cluster.log)
    joined(cluster, 5)
    grown = (TOPIC, '{"version":1,"partitions":{"0":[1,2,3,5]}}')
    assert grown in znode_writes(cluster, since)
    update = changes(cluster, UpdateMetadataSent, since)[-1]
    assert (update.to, update.replicas) == ((1, 2, 3, 4, 5, 6), (1, 2, 3, 5))


@BOTH
@pytest.mark.requirement("K455-31")
@pytest.mark.requirement("K455-35")
def test_the_state_shows_the_target_as_it_stands(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4)
    shown = cluster.state()["topics"]["foo"]["0"]
    assert shown["target"] == ([5, 6] if draft == OLD else [4, 5, 6])
    assert (shown["replicas"], shown["adding"], shown["removing"]) == ([1, 2, 3, 4], [], [])


@BOTH
@pytest.mark.requirement("K455-36")
def test_at_the_end_the_leader_is_told_the_full_isr_and_shrinks_it(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4, 5)
    since = len(cluster.log)
    joined(cluster, 6)
    to_leader, to_followers = changes(cluster, LeaderAndIsrSent, since)
    assert (to_leader.to, to_followers.to) == ((4,), (5, 6))
    for request in (to_leader, to_followers):
        assert (request.replicas, request.isr) == ((4, 5, 6), (1, 2, 3, 4, 5, 6))
        assert (request.leader, request.leader_epoch, request.target_replicas) == (4, 2, None)
    assert remembered(cluster, since)[-2:] == [
        ([4, 5, 6], [1, 2, 3, 4, 5, 6], None),
        ([4, 5, 6], [4, 5, 6], None),
    ]
    assert changes(cluster, StopReplicaSent, since) == [StopReplicaSent((1, 2, 3), "foo", 0, True)]
    assert changes(cluster, UpdateMetadataSent, since)[-1].isr == (4, 5, 6)


@BOTH
@pytest.mark.requirement("K455-42")
def test_the_start_is_told_to_old_and_new_replicas(draft: str) -> None:
    cluster = cluster_of(draft)
    since = len(cluster.log)
    alter(cluster, [3, 4])
    (request,) = changes(cluster, LeaderAndIsrSent, since)
    assert request.to == (1, 2, 3, 4)
    assert (request.replicas, request.target_replicas) == ((1, 2, 3), (3, 4))
    assert request.leader_epoch == 1


@BOTH
@pytest.mark.requirement("K455-01")
@pytest.mark.requirement("K455-43")
@pytest.mark.requirement("A-10")
def test_a_cancellation_is_not_a_revert(draft: str) -> None:
    cluster = cluster_of(draft, "foo=1,2,3/1,2,3")
    alter(cluster, [4, 5, 6])
    alter(cluster, [2, 3, 4], ("foo", 1))
    joined(cluster, 4)
    since = len(cluster.log)
    assert alter(cluster, None) == 0
    assert now(cluster) == ([1, 2, 3, 4], [1, 2, 3, 4], None)
    assert changes(cluster, StopReplicaSent, since) == [StopReplicaSent((5, 6), "foo", 0, True)]
    (request,) = changes(cluster, LeaderAndIsrSent, since)
    assert (request.to, request.target_replicas) == ((1, 2, 3, 4), None)
    assert request.leader_epoch == 2
    assert [each.replicas for each in changes(cluster, UpdateMetadataSent, since)] == [(1, 2, 3, 4)]
    assert "targetReplicas" not in cluster.znodes[STATE]
    assert cluster.partition("foo", 1).reassigning


@BOTH
@pytest.mark.requirement("A-10")
def test_a_cancellation_before_the_controller_saw_the_isr_keeps_who_joined(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    before = cluster.partition(*FOO)
    ahead = PartitionChanged("foo", before, replace(before, isr=(1, 2, 3, 4)))
    cluster._controller.record("the leader's write", ahead)
    since = len(cluster.log)
    alter(cluster, None)
    assert now(cluster) == ([1, 2, 3, 4], [1, 2, 3, 4], None)
    assert [path for path, _ in znode_writes(cluster, since)] == [TOPIC, STATE]


@BOTH
@pytest.mark.requirement("K455-43")
def test_a_cancellation_deletes_no_replica_that_was_there_and_lags(draft: str) -> None:
    cluster = cluster_of(draft)
    cluster.leave_isr(FOO, 3)
    alter(cluster, [2, 3, 4])
    since = len(cluster.log)
    alter(cluster, None)
    assert now(cluster) == ([1, 2, 3], [1, 2], None)
    assert changes(cluster, StopReplicaSent, since) == [StopReplicaSent((4,), "foo", 0, True)]


@BOTH
@pytest.mark.requirement("K455-44")
def test_a_cancellation_may_leave_more_replicas_and_a_new_reassignment_mends_it(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4)
    alter(cluster, None)
    view = cluster.metadata_view(6).topics["foo"].partitions[0]
    assert view.replicas == (1, 2, 3, 4)
    assert alter(cluster, [1, 2, 3]) == 0
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], None)


@BOTH
@pytest.mark.requirement("A-41")
def test_cancelling_nothing_is_no_error_and_changes_nothing(draft: str) -> None:
    cluster = cluster_of(draft)
    since = len(cluster.log)
    assert alter(cluster, None) == 0
    assert not cluster.log.since(since)


@BOTH
@pytest.mark.requirement("K455-51")
def test_asking_again_for_what_is_under_way_changes_nothing(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4)
    since = len(cluster.log)
    assert alter(cluster, [4, 5, 6]) == 0
    assert alter(cluster, list(cluster.partition(*FOO).target or ())) == 0
    assert not cluster.log.since(since)


@BOTH
@pytest.mark.requirement("K455-42")
def test_a_permutation_completes_at_once(draft: str) -> None:
    cluster = cluster_of(draft)
    since = len(cluster.log)
    alter(cluster, [3, 1, 2])
    assert remembered(cluster, since) == [
        ([1, 2, 3], [1, 2, 3], [3, 1, 2]),
        ([3, 1, 2], [1, 2, 3], None),
    ]
    partition = cluster.partition(*FOO)
    assert (partition.leader, partition.leader_epoch) == (1, 1)
    assert [path for path, _ in znode_writes(cluster, since)] == [STATE, TOPIC, STATE]
    assert changes(cluster, StopReplicaSent, since) == []
    assert [each.to for each in changes(cluster, LeaderAndIsrSent, since)] == [(1,), (3, 2)]
    assert [each.replicas for each in changes(cluster, UpdateMetadataSent, since)] == [(3, 1, 2)]


@BOTH
@pytest.mark.requirement("K455-37")
def test_the_replicas_there_are_as_a_new_target_stop_copies_just_begun(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5])
    since = len(cluster.log)
    alter(cluster, [1, 2, 3])
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], None)
    assert changes(cluster, StopReplicaSent, since) == [StopReplicaSent((4, 5), "foo", 0, True)]


@BOTH
@pytest.mark.requirement("K455-01")
def test_a_new_target_in_flight_stops_copies_just_begun(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5])
    joined(cluster, 4)
    since = len(cluster.log)
    alter(cluster, [1, 6])
    assert now(cluster) == ([1, 2, 3, 4], [1, 2, 3, 4], [6] if draft == OLD else [1, 6])
    assert changes(cluster, StopReplicaSent, since) == [StopReplicaSent((5,), "foo", 0, True)]
    joined(cluster, 6)
    assert now(cluster) == ([1, 6], [1, 6], None)
    assert changes(cluster, StopReplicaSent, since)[-1].to == (2, 3, 4)


@BOTH
@pytest.mark.requirement("K455-37")
def test_the_original_replicas_as_a_new_target_revert(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4)
    since = len(cluster.log)
    alter(cluster, [1, 2, 3])
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], None)
    assert [each.to for each in changes(cluster, StopReplicaSent, since)] == [(5, 6), (4,)]


@BOTH
@pytest.mark.requirement("K455-22")
@pytest.mark.requirement("K455-23")
@pytest.mark.requirement("A-42")
@pytest.mark.requirement("A-43")
def test_refused_rows_stop_no_other(draft: str) -> None:
    cluster = cluster_of(draft)
    asked: list[tuple[int, list[int]]] = [
        (0, [1, -1]), (0, [1, 1, 2]), (0, [1, 2, 99]), (0, []), (7, [1]), (0, [4, 5, 6]),
    ]  # fmt: skip
    result = cluster.alter_partition_reassignments([("foo", asked), ("bar", [(0, [1])])])
    codes = [row.error_code for topic in result.topics for row in topic.partitions]
    bad, unknown = ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [bad, bad, bad, bad, unknown, 0, unknown]
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], [4, 5, 6])


@BOTH
@pytest.mark.requirement("K455-24")
def test_listing_gives_replicas_as_they_are_and_the_rest_of_the_way(draft: str) -> None:
    cluster = cluster_of(draft, "foo=1,2,3", "bar=1,2")
    alter(cluster, [4, 5, 6])
    joined(cluster, 4)
    (topic,) = cluster.list_partition_reassignments(None).topics
    (row,) = topic.partitions
    assert (topic.name, row.partition_index, row.replicas) == ("foo", 0, (1, 2, 3, 4))
    assert row.adding_replicas == (5, 6)
    assert cluster.list_partition_reassignments([("bar", [0]), ("no", [0])]).topics == ()


@BOTH
@pytest.mark.requirement("K455-26")
@pytest.mark.requirement("K455-38")
def test_the_list_is_the_controllers_memory_until_another_takes_over(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    listed = cluster.list_partition_reassignments(None)
    cluster.write_znode(STATE, None)
    assert cluster.list_partition_reassignments(None) == listed
    cluster.failover(2)
    assert cluster.list_partition_reassignments(None).topics == ()


@BOTH
@pytest.mark.requirement("K455-38")
def test_a_new_controller_resumes_what_the_state_znodes_say(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4)
    listed, before = cluster.list_partition_reassignments(None), now(cluster)
    since = len(cluster.log)
    cluster.failover(2)
    assert (cluster.list_partition_reassignments(None), now(cluster)) == (listed, before)
    (request,) = changes(cluster, LeaderAndIsrSent, since)
    assert set(request.to) == {1, 2, 3, 4, 5, 6}
    assert request.target_replicas == cluster.partition(*FOO).target
    assert request.leader_epoch == cluster.partition(*FOO).leader_epoch == 2
    assert '"leader_epoch":2,"controller_epoch":2' in cluster.znodes[STATE]


@pytest.mark.requirement("K455-38")
def test_the_newer_draft_completes_after_a_take_over() -> None:
    cluster = cluster_of(NEW)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4)
    cluster.stop_broker(1)
    assert cluster.controller_id == 2
    joined(cluster, 5, 6)
    assert now(cluster) == ([4, 5, 6], [4, 5, 6], None)
    assert cluster.partition(*FOO).leader == 4


@pytest.mark.requirement("A-12")
def test_the_older_draft_forgets_which_replicas_were_to_go() -> None:
    cluster = cluster_of(OLD)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4)
    cluster.failover(2)
    joined(cluster, 5, 6)
    assert now(cluster) == ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], None)
    (warning,) = changes(cluster, Warned)
    assert warning.text.startswith("foo-0: target unknown")
    assert cluster.partition(*FOO).leader_epoch == 3
    told = changes(cluster, LeaderAndIsrSent)[-1]
    assert (told.to, told.leader_epoch, told.target_replicas) == ((1, 2, 3, 4, 5, 6), 3, None)
    assert changes(cluster, UpdateMetadataSent)[-1].leader_epoch == 3
    assert changes(cluster, StopReplicaSent) == []
    assert "targetReplicas" not in cluster.znodes[STATE]


@pytest.mark.requirement("A-09")
@pytest.mark.requirement("A-12")
def test_a_take_over_at_the_older_drafts_last_step_finds_no_reassignment() -> None:
    cluster = cluster_of(OLD, "foo=3,4")
    cluster.stop_broker(3)
    cluster.stop_broker(4)
    alter(cluster, [4])
    # 4 is the last in sync and down: nobody can lead, so the end has to wait.
    assert now(cluster) == ([3, 4], [4], [])
    cluster.failover(2)
    assert now(cluster) == ([3, 4], [4], None)


@BOTH
@pytest.mark.requirement("A-09")
@pytest.mark.parametrize("text", ["null", "[]"])
def test_null_and_empty_targets_mean_no_reassignment(draft: str, text: str) -> None:
    cluster = cluster_of(draft)
    cluster.write_znode(STATE, state_with(text))
    cluster.failover(2)
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], None)
    assert changes(cluster, Warned) == []


@BOTH
@pytest.mark.requirement("K455-38")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 100_000,
        "[]",
        "\ud800",
        '{"targetReplicas":[4,5,6]}',
        state_with("4"),
        state_with("[true]"),
        state_with("[-1]"),
        state_with("[4,4]"),
    ],
)
def test_an_unreadable_state_znode_is_no_reassignment_and_the_log_says_so(
    draft: str, text: str
) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    cluster.write_znode(STATE, text)
    cluster.failover(2)
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], None)
    (warning,) = changes(cluster, Warned)
    assert warning.text.startswith(f"{STATE}: ")
    assert warning.text.endswith("; taken as no reassignment")


@BOTH
@pytest.mark.requirement("K455-38")
def test_a_target_found_in_a_znode_is_a_reassignment(draft: str) -> None:
    cluster = cluster_of(draft)
    cluster.write_znode(STATE, state_with("[4]"))
    cluster.failover(2)
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], [4])


@BOTH
@pytest.mark.requirement("K455-42")
def test_no_leader_among_the_targets_holds_the_end_up(draft: str) -> None:
    cluster = cluster_of(draft, "foo=1")
    cluster.stop_broker(1)
    since = len(cluster.log)
    alter(cluster, [1])
    assert cluster.partition(*FOO).reassigning
    cluster.start_broker(1)
    assert now(cluster) == ([1], [1], None)
    assert cluster.partition(*FOO).leader == 1
    assert changes(cluster, StopReplicaSent, since) == []


@BOTH
@pytest.mark.requirement("K455-42")
def test_auto_progress_serves_the_targets(draft: str) -> None:
    cluster = cluster_of(draft)
    cluster.set_auto_progress(100)
    alter(cluster, [6, 5])
    cluster.advance(100)
    assert now(cluster)[0] == [1, 2, 3, 6]
    cluster.advance(100)
    assert now(cluster) == ([6, 5], [6, 5], None)


@BOTH
@pytest.mark.requirement("K455-30")
def test_topics_come_and_go_with_their_znodes(draft: str) -> None:
    cluster = cluster_of(draft)
    cluster.create_partitions([("foo", 2, [[3, 2, 4]])])
    assert cluster.znodes == {
        TOPIC: '{"version":1,"partitions":{"0":[1,2,3],"1":[3,2,4]}}',
        STATE: '{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}',
        STATE.replace("/0/", "/1/"): (
            '{"controller_epoch":1,"leader":3,"version":1,"leader_epoch":0,"isr":[3,2,4]}'
        ),
    }
    alter(cluster, [4])
    cluster.delete_topics([("foo", ZERO_UUID)])
    assert cluster.znodes == {}
    assert cluster.list_partition_reassignments(None).topics == ()


@BOTH
@pytest.mark.requirement("K455-42")
def test_a_new_leader_is_announced(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4])
    since = len(cluster.log)
    cluster.stop_broker(1)
    first = changes(cluster, LeaderAndIsrSent, since)[0]
    assert (first.leader, first.to, first.isr) == (2, (2, 3, 4), (2, 3))


@BOTH
@pytest.mark.requirement("K455-42")
def test_brokers_outside_replicas_and_target_join_nothing(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4])
    with pytest.raises(ClusterError, match=r"broker 5 holds no replica of foo-0 .*1, 2, 3, 4"):
        cluster.join_isr(FOO, 5)


@BOTH
@pytest.mark.requirement("K455-33")
def test_the_log_replays_to_the_same_state_znodes_included(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4, 5)
    replayed = replay(cluster.cluster_id, cluster.log)
    assert replayed.znodes == cluster.znodes
    assert replayed.topics == cluster.topics


def test_an_unknown_machine_is_a_clear_error() -> None:
    with pytest.raises(ClusterError, match="no machine 'kip-1'; there are kraft, kip-455-old"):
        machine("kip-1")
