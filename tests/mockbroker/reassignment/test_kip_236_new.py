"""KIP-236, newer revision: what is submitted, what is on record, and how it comes to its end."""

from __future__ import annotations

import json

import pytest

from mockbroker.errors import ClusterError
from mockbroker.reassignment.kip_236_new.plans import PendingPartition
from mockbroker.state.actions import LeaderAndIsrSent, StopReplicaSent, UpdateMetadataSent
from mockbroker.state.cluster_state import replay
from tests.mockbroker.reassignment.cancelling import (
    PLAN,
    cancel,
    cluster,
    entry,
    on_record,
    plan,
    story,
    submit,
    warnings,
)
from tests.mockbroker.reassignment.walks import FOO, TOPIC, changes, joined, now

ALL = (1, 2, 3, 4, 5, 6)


@pytest.mark.requirement("K236-01")
@pytest.mark.requirement("K236-07")
@pytest.mark.requirement("K236-09")
@pytest.mark.requirement("A-18")
def test_the_originals_are_on_record_then_remembered_before_anything_is_done() -> None:
    c = cluster()
    since = len(c.log)
    submit(c, entry([1, 2, 4]))
    both = [1, 2, 4, 3]
    assert story(c, since) == [
        ("znode", "reassign_partitions", [entry([1, 2, 4])]),
        ("znode", "reassign_partitions", [entry([1, 2, 4], [1, 2, 3])]),
        ("memory", [1, 2, 3], [1, 2, 3], 1, 0, [1, 2, 4], [1, 2, 3]),
        ("znode", "foo", {"0": both}),
        ("znode", "state", (1, 1, [1, 2, 3])),
        ("memory", both, [1, 2, 3], 1, 1, [1, 2, 4], [1, 2, 3]),
        ("LeaderAndIsr", (1, 2, 4, 3), both, [1, 2, 3], 1, 1),
        ("UpdateMetadata", ALL, both, [1, 2, 3], 1, 1),
    ]


@pytest.mark.requirement("K236-08")
def test_what_is_on_record_is_the_pages_own_text() -> None:
    c = cluster("foo1=1,2,3", "foo2=1,2/5,6,1")
    submit(c, entry([5, 4, 1], tp=("foo2", 1)), entry([1, 2, 4], tp=("foo1", 0)))
    text, stat = c.read_znode(PLAN) or ("", None)
    assert text == (
        '{"version":1,"partitions":['
        '{"topic":"foo2","partition":1,"replicas":[5,4,1],"original_replicas":[5,6,1]},'
        '{"topic":"foo1","partition":0,"replicas":[1,2,4],"original_replicas":[1,2,3]}]}'
    )
    assert stat is not None
    # As in the page's listing: written once by who submitted it, and once by the controller.
    assert (stat.version, stat.czxid != stat.mzxid) == (1, True)


@pytest.mark.requirement("A-18")
def test_originals_that_a_tool_has_written_win() -> None:
    c = cluster()
    submit(c, entry([1, 2, 4], [3, 2, 1]))
    assert on_record(c) == [entry([1, 2, 4], [3, 2, 1])]
    cancel(c)
    assert now(c) == ([3, 2, 1], [1, 2, 3], None)


@pytest.mark.requirement("K236-09")
def test_the_context_of_a_partition_can_be_looked_at() -> None:
    c = cluster("foo=1,2,3/1,2,3")
    submit(c, entry([4, 5]))
    pending = c.partition(*FOO)
    assert isinstance(pending, PendingPartition)
    assert (pending.new_replicas, pending.original_replicas) == ((4, 5), (1, 2, 3))
    assert (pending.reassigning, pending.target) == (True, (4, 5))
    shown = c.state()["topics"]["foo"]["0"]
    assert (shown["replicas"], shown["target"]) == ([4, 5, 1, 2, 3], [4, 5])
    assert shown["original"] == [1, 2, 3]
    assert "original" not in c.state()["topics"]["foo"]["1"]
    idle = c.partition("foo", 1)
    assert (type(idle) is PendingPartition, idle.reassigning, idle.target) == (False, False, None)


@pytest.mark.requirement("K236-02")
@pytest.mark.requirement("K236-11")
def test_the_end_of_a_reassignment_step_by_step() -> None:
    c = cluster()
    submit(c, entry([4, 5]))
    joined(c, 4)
    assert now(c) == ([4, 5, 1, 2, 3], [1, 2, 3, 4], [4, 5])
    since = len(c.log)
    joined(c, 5)
    both, isr = [4, 5, 1, 2, 3], [1, 2, 3, 4, 5]
    assert story(c, since) == [
        ("znode", "state", (1, 1, isr)),
        ("memory", both, isr, 1, 1, [4, 5], [1, 2, 3]),
        ("UpdateMetadata", ALL, both, isr, 1, 1),
        ("memory", [4, 5], isr, 1, 1, [4, 5], [1, 2, 3]),
        ("znode", "state", (4, 2, isr)),
        ("memory", [4, 5], isr, 4, 2, [4, 5], [1, 2, 3]),
        ("LeaderAndIsr", (4, 5), [4, 5], isr, 4, 2),
        ("OfflineReplica", (1, 2, 3)),
        ("znode", "state", (4, 3, [4, 5])),
        ("memory", [4, 5], [4, 5], 4, 3, [4, 5], [1, 2, 3]),
        ("LeaderAndIsr", (4,), [4, 5], [4, 5], 4, 3),
        ("StopReplica", (1, 2, 3), False),
        ("NonExistentReplica", (1, 2, 3)),
        ("StopReplica", (1, 2, 3), True),
        ("znode", "foo", {"0": [4, 5]}),
        ("znode", "reassign_partitions", None),
        ("memory", [4, 5], [4, 5], 4, 3),
        ("UpdateMetadata", ALL, [4, 5], [4, 5], 4, 3),
    ]


@pytest.mark.requirement("K236-02")
def test_the_slowest_of_a_batch_is_what_stays_on_record() -> None:
    c = cluster("foo=1,2/1,2/1,2")
    submit(c, *(entry([3, 4], tp=("foo", index)) for index in range(3)))
    for index, broker in [(0, 3), (0, 4), (1, 3), (2, 3), (2, 4)]:
        c.join_isr(("foo", index), broker)
    assert on_record(c) == [entry([3, 4], [1, 2], ("foo", 1))]
    assert [p.reassigning for p in c.topics["foo"].partitions] == [False, True, False]
    c.join_isr(("foo", 1), 4)
    assert on_record(c) is None


@pytest.mark.requirement("K236-02")
def test_what_is_there_already_is_taken_off_the_record_and_no_more() -> None:
    c = cluster("foo=1,2,3/1,2,3")
    since = len(c.log)
    submit(c, entry([1, 2, 3]), entry([4], tp=("foo", 1)))
    told = story(c, since)
    assert told[2:6] == [
        ("memory", [1, 2, 3], [1, 2, 3], 1, 0, [1, 2, 3], [1, 2, 3]),
        ("memory", [1, 2, 3], [1, 2, 3], 1, 0, [4], [1, 2, 3]),
        ("znode", "reassign_partitions", [entry([4], [1, 2, 3], ("foo", 1))]),
        ("memory", [1, 2, 3], [1, 2, 3], 1, 0),
    ]
    assert [each.index for each in changes(c, LeaderAndIsrSent, since)] == [1]
    assert [each.index for each in changes(c, UpdateMetadataSent, since)] == [1]


@pytest.mark.requirement("K236-11")
def test_another_order_is_done_at_once_and_outlives_a_cancellation() -> None:
    c = cluster("foo=1,2,3/1,2,3")
    submit(c, entry([2, 3, 1]), entry([4, 5], tp=("foo", 1)))
    assert now(c) == ([2, 3, 1], [1, 2, 3], None)
    assert on_record(c) == [entry([4, 5], [1, 2, 3], ("foo", 1))]
    assert changes(c, StopReplicaSent) == []
    cancel(c)
    assert now(c) == ([2, 3, 1], [1, 2, 3], None)
    assert now(c, ("foo", 1)) == ([1, 2, 3], [1, 2, 3], None)
    assert on_record(c) is None
    # To undo that, too, one submits what was there before.
    submit(c, entry([1, 2, 3]))
    assert now(c) == ([1, 2, 3], [1, 2, 3], None)
    assert json.loads(c.znodes[TOPIC])["partitions"] == {"0": [1, 2, 3], "1": [1, 2, 3]}


@pytest.mark.requirement("K236-01")
def test_a_replica_that_lags_is_waited_for() -> None:
    c = cluster()
    c.leave_isr(FOO, 3)
    submit(c, entry([3, 1]))
    assert now(c) == ([3, 1, 2], [1, 2], [3, 1])
    c.leave_isr(FOO, 2)
    assert now(c) == ([3, 1, 2], [1], [3, 1])
    joined(c, 3)
    assert now(c) == ([3, 1], [1, 3], None)
    assert c.partition(*FOO).leader == 1


@pytest.mark.requirement("K236-02")
def test_no_leader_among_the_new_replicas_holds_the_end_up() -> None:
    c = cluster("foo=4")
    c.stop_broker(4)
    submit(c, entry([4, 5]))
    assert now(c) == ([4, 5], [4], [4, 5])
    assert c.partition(*FOO).leader == -1
    c.start_broker(4)
    joined(c, 5)
    assert now(c) == ([4, 5], [4, 5], None)


@pytest.mark.requirement("K236-02")
def test_all_new_replicas_in_sync_and_down_is_no_end_before_one_is_up() -> None:
    c = cluster("foo=3,4")
    c.stop_broker(3)
    c.stop_broker(4)
    submit(c, entry([4]))
    assert now(c) == ([4, 3], [4], [4])
    c.start_broker(4)
    assert now(c) == ([4], [4], None)
    assert c.partition(*FOO).leader == 4


@pytest.mark.requirement("K236-06")
@pytest.mark.requirement("K236-09")
def test_writing_again_into_the_znode_is_not_heard_but_its_coming_anew_is() -> None:
    c = cluster("foo=1,2,3/1,2,3")
    submit(c, entry([1, 2, 4]))
    since = len(c.log)
    submit(c, entry([1, 2, 5]), entry([4], tp=("foo", 1)))
    assert len(c.log.since(since)) == 1
    c.write_znode(PLAN, None)
    assert now(c) == ([1, 2, 4, 3], [1, 2, 3], [1, 2, 4])
    submit(c, entry([1, 2, 5]), entry([4], tp=("foo", 1)))
    # Where it was is remembered, however often it is told to go elsewhere.
    assert on_record(c) == [
        entry([1, 2, 5], [1, 2, 3]),
        entry([4], [1, 2, 3], ("foo", 1)),
    ]
    assert now(c) == ([1, 2, 5, 4, 3], [1, 2, 3], [1, 2, 5])
    joined(c, 5)
    assert changes(c, StopReplicaSent)[-1].to == (4, 3)


@pytest.mark.requirement("K236-07")
def test_the_same_plan_coming_anew_gets_its_originals_and_begins_nothing() -> None:
    c = cluster()
    submit(c, entry([1, 2, 4]))
    c.write_znode(PLAN, None)
    since = len(c.log)
    submit(c, entry([1, 2, 4]))
    assert story(c, since)[1:] == [
        ("znode", "reassign_partitions", [entry([1, 2, 4], [1, 2, 3])]),
    ]


@pytest.mark.requirement("K236-03")
def test_a_plan_over_the_limit_of_a_znode_is_refused_and_changes_nothing() -> None:
    c = cluster()
    since = len(c.log)
    with pytest.raises(ClusterError, match="reassign_partitions"):
        c.write_znode(PLAN, plan(entry([4])) + " " * 2**20)
    assert not c.log.since(since)
    assert c.read_znode(PLAN) is None
    submit(c, entry([1, 2, 4]))
    assert c.partition(*FOO).reassigning


@pytest.mark.requirement("K236-02")
def test_auto_progress_serves_what_is_pending() -> None:
    c = cluster()
    submit(c, entry([6, 5]))
    c.set_auto_progress(100)
    c.advance(100)
    assert now(c) == ([6, 5, 1, 2, 3], [1, 2, 3, 6], [6, 5])
    c.advance(100)
    assert now(c) == ([6, 5], [6, 5], None)


@pytest.mark.requirement("K236-02")
def test_a_deleted_topic_is_pending_no_more() -> None:
    c = cluster("foo=1,2", "bar=1,2")
    submit(c, entry([3]), entry([4], tp=("bar", 0)))
    c.write_znode("/admin/delete_topics/foo", "")
    assert on_record(c) == [entry([4], [1, 2], ("bar", 0))]
    c.write_znode("/admin/delete_topics/bar", "")
    assert on_record(c) is None
    assert warnings(c) == []


@pytest.mark.requirement("K236-09")
def test_the_log_replays_to_the_same_state_znodes_included() -> None:
    c = cluster()
    submit(c, entry([4, 5]))
    joined(c, 4)
    replayed = replay(c.cluster_id, c.log)
    assert replayed.topics == c.topics
    assert replayed.znodes == c.znodes
