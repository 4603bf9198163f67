"""KIP-236, newer revision: cancelling rolls back, in seven steps, or says why it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mockbroker.cluster import Cluster
from mockbroker.state.actions import LeaderAndIsrSent, StopReplicaSent, ZnodeWritten
from mockbroker.state.cluster_state import replay
from tests.mockbroker.reassignment.cancelling import (
    CANCEL,
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
STEPS = [f"K236-{number}" for number in range(20, 27)]


@pytest.mark.requirement(*STEPS)
@pytest.mark.requirement("A-17")
@pytest.mark.requirement("K236-01")
def test_the_seven_steps_where_the_leader_stays() -> None:
    c = cluster()
    submit(c, entry([4, 5, 6]))
    joined(c, 4)
    since = len(c.log)
    cancel(c)
    old, isr = [1, 2, 3], [1, 2, 3, 4]
    assert story(c, since) == [
        ("znode", "cancel_reassignment_in_progress", ""),
        # 1: memory only; ZooKeeper has old and new replicas up to step 5
        ("memory", old, isr, 1, 1, [4, 5, 6], old),
        # 2
        ("znode", "state", (1, 2, isr)),
        ("memory", old, isr, 1, 2, [4, 5, 6], old),
        ("LeaderAndIsr", (1, 2, 3), old, isr, 1, 2),
        # 3
        ("OfflineReplica", (4, 5, 6)),
        ("znode", "state", (1, 3, old)),
        ("memory", old, old, 1, 3, [4, 5, 6], old),
        ("LeaderAndIsr", (1,), old, old, 1, 3),
        ("StopReplica", (4, 5, 6), False),
        # 4
        ("NonExistentReplica", (4, 5, 6)),
        ("StopReplica", (4, 5, 6), True),
        # 5
        ("znode", "foo", {"0": old}),
        # 6
        ("znode", "reassign_partitions", None),
        ("memory", old, old, 1, 3),
        # 7
        ("UpdateMetadata", ALL, old, old, 1, 3),
        # and the request itself
        ("znode", "cancel_reassignment_in_progress", None),
    ]


@pytest.mark.requirement(*STEPS)
def test_a_leader_among_the_new_replicas_gives_way_to_an_original() -> None:
    c = cluster("foo=1,2,3")
    submit(c, entry([4, 5, 6]))
    joined(c, 4)
    c.elect_leaders(0, None)
    assert c.partition(*FOO).leader == 4
    epoch = c.partition(*FOO).leader_epoch
    since = len(c.log)
    cancel(c)
    partition = c.partition(*FOO)
    assert (partition.leader, partition.isr, partition.replicas) == (1, (1, 2, 3), (1, 2, 3))
    elected, shrunk = changes(c, LeaderAndIsrSent, since)
    assert (elected.to, elected.leader, elected.leader_epoch) == ((1, 2, 3), 1, epoch + 1)
    assert (elected.replicas, elected.isr) == ((1, 2, 3), (1, 2, 3, 4))
    assert (shrunk.to, shrunk.isr, shrunk.leader_epoch) == ((1,), (1, 2, 3), epoch + 2)
    stops = changes(c, StopReplicaSent, since)
    assert [(stop.to, stop.delete) for stop in stops] == [((4, 5, 6), False), ((4, 5, 6), True)]


@pytest.mark.requirement("K236-22")
def test_an_isr_without_new_replicas_is_not_written_again() -> None:
    c = cluster()
    submit(c, entry([1, 2, 4]))
    since = len(c.log)
    cancel(c)
    states = [told[2] for told in story(c, since) if told[:2] == ("znode", "state")]
    assert states == [(1, 2, [1, 2, 3])]
    assert [each.to for each in changes(c, LeaderAndIsrSent, since)] == [(1, 2, 3), (1,)]
    stops = changes(c, StopReplicaSent, since)
    assert [(stop.to, stop.delete) for stop in stops] == [((4,), False), ((4,), True)]


@pytest.mark.requirement("K236-20")
@pytest.mark.requirement("K236-24")
def test_an_original_replica_list_in_another_order_comes_back_as_it_was() -> None:
    c = cluster("foo=3,1,2")
    submit(c, entry([1, 4]))
    assert json.loads(c.znodes[TOPIC])["partitions"] == {"0": [1, 4, 3, 2]}
    cancel(c)
    assert now(c) == ([3, 1, 2], [3, 1, 2], None)
    assert json.loads(c.znodes[TOPIC])["partitions"] == {"0": [3, 1, 2]}
    assert c.partition(*FOO).leader == 3


@pytest.mark.requirement("K236-26")
def test_every_brokers_metadata_knows_of_it() -> None:
    c = cluster()
    submit(c, entry([4, 5, 6]))
    cancel(c)
    for broker in ALL:
        partition = c.metadata_view(broker).topics["foo"].partitions[0]
        assert (partition.replicas, partition.isr) == ((1, 2, 3), (1, 2, 3))


@pytest.mark.requirement("K236-04")
@pytest.mark.requirement("K236-25")
@pytest.mark.requirement("K236-32")
def test_all_that_is_pending_goes_back_and_both_znodes_are_gone() -> None:
    c = cluster("foo=1,2/2,3", "bar=3,1")
    submit(c, *(entry([4, 5], tp=tp) for tp in [("foo", 0), ("foo", 1), ("bar", 0)]))
    c.join_isr(("foo", 0), 4)
    since = len(c.log)
    cancel(c)
    for tp, was in [(("foo", 0), [1, 2]), (("foo", 1), [2, 3]), (("bar", 0), [3, 1])]:
        assert now(c, tp) == (was, was, None)
    assert c.znode_children("/admin") == ["delete_topics"]
    writes = [
        (write.path, None if write.after is None else len(json.loads(write.after or "[]")))
        for write in changes(c, ZnodeWritten, since)
        if write.path in (PLAN, CANCEL)
    ]
    # One by one they leave the plan, while the request is still there.
    assert [path for path, _ in writes] == [CANCEL, PLAN, PLAN, PLAN, CANCEL]
    assert [after for _, after in writes][-2:] == [None, None]


@pytest.mark.requirement("K236-32")
def test_while_it_runs_all_three_znodes_are_there() -> None:
    c = cluster()
    submit(c, entry([4, 5, 6]))
    since = len(c.log)
    cancel(c)
    there: list[list[str]] = []
    for action in c.log.since(since):
        if isinstance(action.change, LeaderAndIsrSent | StopReplicaSent):
            known = replay(c.cluster_id, list(c.log)[: action.offset]).znodes
            there.append(sorted(path for path in known if path.startswith("/admin/")))
    assert there == [[CANCEL, PLAN]] * 4


@pytest.mark.requirement("K236-41")
def test_with_nothing_pending_it_does_nothing_and_goes() -> None:
    c = cluster()
    since = len(c.log)
    cancel(c)
    assert story(c, since) == [
        ("znode", "cancel_reassignment_in_progress", ""),
        ("znode", "cancel_reassignment_in_progress", None),
    ]
    # And it is watched anew.
    submit(c, entry([4]))
    cancel(c)
    assert now(c) == ([1, 2, 3], [1, 2, 3], None)
    submit(c, entry([4]))
    joined(c, 4)
    cancel(c)
    assert now(c) == ([4], [4], None)


@pytest.mark.requirement("K236-41")
@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"version":1}', "\ud800"])
def test_what_the_request_holds_says_nothing(text: str) -> None:
    c = cluster()
    submit(c, entry([4]))
    c.write_znode(CANCEL, text)
    assert now(c) == ([1, 2, 3], [1, 2, 3], None)
    assert c.read_znode(CANCEL) is None
    assert warnings(c) == []


@pytest.mark.requirement("K236-33")
@pytest.mark.requirement("A-19")
def test_throttles_are_the_tools_to_remove() -> None:
    c = cluster()
    throttled = [
        (2, "foo", [("leader.replication.throttled.replicas", 0, "0:1,0:2")]),
        (4, "1", [("leader.replication.throttled.rate", 0, "1000")]),
    ]
    c.incremental_alter_configs(throttled)
    submit(c, entry([4]))
    before = {path: text for path, text in c.znodes.items() if path.startswith("/config/")}
    cancel(c)
    after = {path: text for path, text in c.znodes.items() if path.startswith("/config/")}
    assert len(before) == 2
    assert after == before


# ---- what is not rolled back ---------------------------------------------------------------------


@pytest.mark.requirement("K236-34")
@pytest.mark.requirement("A-18")
def test_without_originals_on_record_it_is_skipped_and_goes_on() -> None:
    c = cluster("foo=1,2,3/1,2,3")
    submit(c, entry([4, 5]), entry([4, 5], tp=("foo", 1)))
    c.write_znode(PLAN, plan(entry([4, 5]), entry([4, 5], [1, 2, 3], ("foo", 1))))
    cancel(c)
    assert now(c) == ([4, 5, 1, 2, 3], [1, 2, 3], [4, 5])
    assert now(c, ("foo", 1)) == ([1, 2, 3], [1, 2, 3], None)
    assert warnings(c) == ["foo-0: not rolled back, as its original_replicas are missing"]
    assert on_record(c) == [entry([4, 5])]
    assert c.read_znode(CANCEL) is None
    (row,) = c.list_partition_reassignments(None).topics[0].partitions
    assert (row.adding_replicas, row.removing_replicas) == ((), (1, 2, 3))
    joined(c, 4, 5)
    assert now(c) == ([4, 5], [4, 5], None)
    assert on_record(c) is None


STOP, START = Cluster.stop_broker, Cluster.start_broker
WITHOUT_ORIGINALS = [(STOP, 1), (STOP, 2), (STOP, 3)]
"""Then 4, which is new, is the last in sync, and leads."""
ORIGINALS_BACK = [(START, 1), (START, 2), (START, 3)]
"""Up, but not in sync."""
WITHOUT_NEW = [(STOP, 5), (STOP, 4)]


@pytest.mark.requirement("K236-35")
@pytest.mark.requirement("A-14")
@pytest.mark.parametrize(
    ("steps", "rolled_back"),
    [
        ([], True),
        (WITHOUT_NEW, True),
        ([(STOP, 1), (STOP, 2)], True),
        (WITHOUT_ORIGINALS, False),
        (WITHOUT_ORIGINALS + ORIGINALS_BACK, False),
        ([*WITHOUT_ORIGINALS, (STOP, 5)], False),
        ([*WITHOUT_ORIGINALS, (STOP, 4)], False),
        (WITHOUT_ORIGINALS + WITHOUT_NEW, True),
        (WITHOUT_ORIGINALS + WITHOUT_NEW + ORIGINALS_BACK, True),
    ],
)
def test_what_would_go_offline_is_skipped(steps: list[Any], rolled_back: bool) -> None:
    c = cluster()
    c.failover(6)
    submit(c, entry([4, 5]))
    joined(c, 4)
    for step, broker in steps:
        step(c, broker)
    cancel(c)
    partition = c.partition(*FOO)
    assert c.read_znode(CANCEL) is None
    if rolled_back:
        assert (partition.reassigning, partition.replicas) == (False, (1, 2, 3))
        assert (on_record(c), warnings(c)) == (None, [])
        return
    assert (partition.reassigning, partition.replicas) == (True, (4, 5, 1, 2, 3))
    assert on_record(c) == [entry([4, 5], [1, 2, 3])]
    assert warnings(c) == ["foo-0: not rolled back, as none of its original_replicas could lead it"]


@pytest.mark.requirement("K236-35")
def test_a_skipped_one_can_be_cancelled_once_an_original_is_back() -> None:
    c = cluster("foo=1")
    c.failover(6)
    submit(c, entry([4, 5]))
    joined(c, 4)
    c.stop_broker(1)
    cancel(c)
    assert now(c) == ([4, 5, 1], [4], [4, 5])
    c.start_broker(1)
    cancel(c)
    assert c.partition(*FOO).reassigning  # up, but not in sync
    joined(c, 1)
    cancel(c)
    assert now(c) == ([1], [1], None)


@pytest.mark.requirement("K236-35")
@pytest.mark.requirement("K236-21")
def test_with_all_down_it_is_rolled_back_and_waits_for_who_was_last_in_sync() -> None:
    c = cluster("foo=1")
    c.failover(6)
    submit(c, entry([4, 5]))
    for broker in (4, 5, 1):
        c.stop_broker(broker)
    cancel(c)
    partition = c.partition(*FOO)
    assert (partition.replicas, partition.isr, partition.leader) == ((1,), (1,), -1)
    c.start_broker(1)
    assert c.partition(*FOO).leader == 1


# ---- what is read for it -------------------------------------------------------------------------


@pytest.mark.requirement("K236-10")
def test_what_is_pending_is_what_the_znode_says() -> None:
    c = cluster("foo=1,2,3/1,2,3/1,2,3")
    submit(c, *(entry([4], tp=("foo", index)) for index in range(2)))
    c.write_znode(PLAN, plan(entry([5], [2, 1], ("foo", 1)), entry([6], [3, 2, 1], ("foo", 2))))
    since = len(c.log)
    cancel(c)
    assert story(c, since)[1:5] == [
        ("warned", "foo-0: no longer in /admin/reassign_partitions; its replicas stay as they are"),
        ("memory", [4, 1, 2, 3], [1, 2, 3], 1, 1),
        ("memory", [4, 1, 2, 3], [1, 2, 3], 1, 1, [5], [2, 1]),
        ("memory", [1, 2, 3], [1, 2, 3], 1, 0, [6], [3, 2, 1]),
    ]
    assert now(c) == ([4, 1, 2, 3], [1, 2, 3], None)
    assert now(c, ("foo", 1)) == ([2, 1], [1, 2], None)
    assert now(c, ("foo", 2)) == ([3, 2, 1], [1, 2, 3], None)
    assert on_record(c) is None


@pytest.mark.requirement("K236-34")
def test_what_is_found_and_skipped_begins() -> None:
    c = cluster("foo=1,2,3/1,2,3")
    submit(c, entry([4]))
    c.write_znode(PLAN, plan(entry([4], [1, 2, 3]), entry([5], tp=("foo", 1))))
    since = len(c.log)
    cancel(c)
    assert now(c) == ([1, 2, 3], [1, 2, 3], None)
    both = [5, 1, 2, 3]
    assert story(c, since)[-5:] == [
        ("znode", "foo", {"0": [1, 2, 3], "1": both}),
        ("znode", "state", (1, 1, [1, 2, 3])),
        ("memory", both, [1, 2, 3], 1, 1, [5], None),
        ("LeaderAndIsr", (5, 1, 2, 3), both, [1, 2, 3], 1, 1),
        ("UpdateMetadata", ALL, both, [1, 2, 3], 1, 1),
    ]


@pytest.mark.requirement("K236-10")
def test_a_plan_that_cannot_be_read_rolls_nothing_back_and_what_is_pending_goes_on() -> None:
    c = cluster()
    submit(c, entry([4]))
    c.write_znode(PLAN, "{")
    cancel(c)
    assert now(c) == ([4, 1, 2, 3], [1, 2, 3], [4])
    (warning,) = warnings(c)
    assert warning.startswith(f"{PLAN}: ")
    assert warning.endswith("; nothing is rolled back")
    assert c.read_znode(CANCEL) is None
    # It is on record again, so that the next one finds it.
    assert on_record(c) == [entry([4], [1, 2, 3])]
    cancel(c)
    assert now(c) == ([1, 2, 3], [1, 2, 3], None)


@pytest.mark.requirement("K236-10")
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (entry([4], []), "The manual partition assignment includes an empty replica list."),
        (entry([4], [1, 1]), "more than once"),
        (entry([4], [9]), "includes broker 9, but no such broker is registered."),
        (entry([], [1, 2, 3]), "includes an empty replica list."),
        (entry([4], [1], ("no", 0)), "Unable to find a topic named no."),
        (entry([4], [1], ("foo", 7)), "Unable to find partition foo:7."),
    ],
)
def test_entries_that_make_no_sense_are_left_out_of_a_cancellation(
    bad: dict[str, object], reason: str
) -> None:
    c = cluster("foo=1,2,3/1,2,3")
    submit(c, entry([4]), entry([4], tp=("foo", 1)))
    c.write_znode(PLAN, plan(bad, entry([4], [1, 2, 3], ("foo", 1))))
    cancel(c)
    assert now(c, ("foo", 1)) == ([1, 2, 3], [1, 2, 3], None)
    (named,) = [text for text in warnings(c) if "left out" in text]
    assert reason in named
    if (bad["topic"], bad["partition"]) == FOO:
        # As it was remembered, and so it is on record again.
        assert now(c) == ([4, 1, 2, 3], [1, 2, 3], [4])
        assert on_record(c) == [entry([4], [1, 2, 3])]
