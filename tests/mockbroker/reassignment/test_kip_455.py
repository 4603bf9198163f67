"""The two drafts of KIP-455, row by row: from the request to the end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.state.actions import (
    LeaderAndIsrSent,
    PartitionChanged,
    StopReplicaSent,
    UpdateMetadataSent,
)
from tests.mockbroker.reassignment.walks import (
    BOTH,
    FOO,
    NEW,
    OLD,
    STATE,
    TOPIC,
    alter,
    changes,
    cluster_of,
    joined,
    now,
    remembered,
    walk,
    znode_writes,
)


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
@pytest.mark.requirement("K455-31")
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
@pytest.mark.requirement("K455-31", "K455-35")
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
@pytest.mark.requirement("K455-31", "K455-33")
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
@pytest.mark.requirement("K455-30")
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
@pytest.mark.requirement("K455-43")
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
    alter(cluster, [4])
    assert alter(cluster, None) == 0
    assert not cluster.partition(*FOO).reassigning
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
@pytest.mark.requirement("K455-42")
def test_the_replicas_there_are_as_a_new_target_stop_copies_just_begun(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5])
    since = len(cluster.log)
    alter(cluster, [1, 2, 3])
    assert now(cluster) == ([1, 2, 3], [1, 2, 3], None)
    assert changes(cluster, StopReplicaSent, since) == [StopReplicaSent((4, 5), "foo", 0, True)]


@BOTH
@pytest.mark.requirement("K455-01")
@pytest.mark.requirement("K455-30")
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
