"""Kafka's own ZooKeeper controller, row by row: what a reassignment does, and in which order.

Leader epochs, ISRs and texts of znodes are those that Kafka 3.9.2 came to with the same requests.
"""

import pytest

from kproto.schema.model import ZERO_UUID
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulation.reassignment.zookeeper_story import (
    FOO,
    STATE,
    alter,
    cluster_of,
    listed,
    shape,
    story,
    submit,
)

ALL = "1,2,3,4,5,6"


@pytest.mark.requirement("K455-01", "K455-41", "K455-42")
def test_a_start_goes_on_record_and_is_then_told_to_old_and_new_replicas() -> None:
    cluster = cluster_of()
    since = len(cluster.log)
    assert alter(cluster, [4, 5, 6]) == (0, None)
    told = "4,5,6,1,2,3+4,5,6-1,2,3 isr 1,2,3 1@1"
    assert story(cluster, since) == [
        "topic znode 4,5,6,1,2,3+4,5,6-1,2,3",
        "memory 4,5,6,1,2,3 isr 1,2,3 1@0",
        "state znode isr 1,2,3 1@1",
        "memory 4,5,6,1,2,3 isr 1,2,3 1@1",
        f"LeaderAndIsr to 1,2,3 {told}",
        f"LeaderAndIsr new to 4,5,6 {told}",
        f"UpdateMetadata to {ALL} 4,5,6,1,2,3 isr 1,2,3 1@1",
        f"LeaderAndIsr new to 4,5,6 {told}",
    ]
    assert listed(cluster) == {FOO: ([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3])}


@pytest.mark.requirement("K455-42")
def test_the_end_comes_when_the_whole_target_is_in_sync() -> None:
    cluster = cluster_of()
    alter(cluster, [4, 5, 6])
    for broker in (4, 5):
        Operations(cluster).join_isr(FOO, broker)
        assert listed(cluster) == {FOO: ([4, 5, 6, 1, 2, 3], [4, 5, 6], [1, 2, 3])}
    since = len(cluster.log)
    Operations(cluster).join_isr(FOO, 6)
    assert story(cluster, since) == [
        "state znode isr 1,2,3,4,5,6 1@1",
        "memory 4,5,6,1,2,3 isr 1,2,3,4,5,6 1@1",
        f"UpdateMetadata to {ALL} 4,5,6,1,2,3 isr 1,2,3,4,5,6 1@1",
        "memory 4,5,6 isr 1,2,3,4,5,6 1@1",
        "state znode isr 1,2,3,4,5,6 4@2",
        "memory 4,5,6 isr 1,2,3,4,5,6 4@2",
        "LeaderAndIsr to 4,5,6 4,5,6+- isr 1,2,3,4,5,6 4@2",
        f"UpdateMetadata to {ALL} 4,5,6 isr 1,2,3,4,5,6 4@2",
        "state znode isr 2,3,4,5,6 4@3",
        "memory 4,5,6 isr 2,3,4,5,6 4@3",
        "state znode isr 3,4,5,6 4@4",
        "memory 4,5,6 isr 3,4,5,6 4@4",
        "state znode isr 4,5,6 4@5",
        "memory 4,5,6 isr 4,5,6 4@5",
        "LeaderAndIsr to 4,5,6 4,5,6+- isr 4,5,6 4@5",
        f"UpdateMetadata to {ALL} 4,5,6 isr 4,5,6 4@5",
        "StopReplica to 1,2,3",
        "StopReplica delete to 1,2,3",
        "topic znode 4,5,6+-",
        f"UpdateMetadata to {ALL} 4,5,6 isr 4,5,6 4@5",
    ]
    assert listed(cluster) == {}


@pytest.mark.requirement("K455-42")
@pytest.mark.parametrize(
    ("target", "after"),
    [
        ([3, 1, 2], ([3, 1, 2], [1, 2, 3], 1, 1)),
        ([1, 2, 3], ([1, 2, 3], [1, 2, 3], 1, 1)),
        ([2], ([2], [2], 2, 3)),
        ([1], ([1], [1], 1, 3)),
    ],
    ids=["another order", "the same", "the leader goes", "the leader stays"],
)
def test_what_needs_no_new_replica_ends_within_the_call(target, after):
    """Each step raises the leader epoch, also where neither leader nor replicas are others."""
    cluster = cluster_of()
    assert alter(cluster, target) == (0, None)
    assert shape(cluster) == after
    assert listed(cluster) == {}


@pytest.mark.requirement("K455-41", "K455-42")
def test_another_order_is_written_twice_and_stops_nobody() -> None:
    """As Kafka does: version 2 of the topic's znode, and of the state's 1."""
    cluster = cluster_of()
    since = len(cluster.log)
    alter(cluster, [3, 1, 2])
    assert story(cluster, since) == [
        "topic znode 3,1,2+-",
        "memory 3,1,2 isr 1,2,3 1@0",
        "state znode isr 1,2,3 1@1",
        "memory 3,1,2 isr 1,2,3 1@1",
        "LeaderAndIsr to 3,1,2 3,1,2+- isr 1,2,3 1@1",
        f"UpdateMetadata to {ALL} 3,1,2 isr 1,2,3 1@1",
        f"UpdateMetadata to {ALL} 3,1,2 isr 1,2,3 1@1",
    ]


@pytest.mark.requirement("K455-42", "K455-61")
def test_a_smaller_set_by_plan_is_all_of_it_at_once() -> None:
    cluster = cluster_of()
    since = len(cluster.log)
    submit(cluster, {FOO: [2]})
    assert story(cluster, since) == [
        "plan written",
        "topic znode 2,1,3+-1,3",
        "memory 2,1,3 isr 1,2,3 1@0",
        "memory 2 isr 1,2,3 1@0",
        "state znode isr 1,2,3 2@1",
        "memory 2 isr 1,2,3 2@1",
        "LeaderAndIsr to 2 2+- isr 1,2,3 2@1",
        f"UpdateMetadata to {ALL} 2 isr 1,2,3 2@1",
        "state znode isr 2,3 2@2",
        "memory 2 isr 2,3 2@2",
        "state znode isr 2 2@3",
        "memory 2 isr 2 2@3",
        "LeaderAndIsr to 2 2+- isr 2 2@3",
        f"UpdateMetadata to {ALL} 2 isr 2 2@3",
        "StopReplica to 1,3",
        "StopReplica delete to 1,3",
        "topic znode 2+-",
        "plan gone",
        f"UpdateMetadata to {ALL} 2 isr 2 2@3",
    ]


@pytest.mark.requirement("K455-01")
def test_a_second_target_in_flight_starts_from_the_origin_and_drops_what_is_in_neither() -> None:
    cluster = cluster_of()
    alter(cluster, [4, 5])
    Operations(cluster).join_isr(FOO, 5)
    since = len(cluster.log)
    assert alter(cluster, [4, 6]) == (0, None)
    told = "4,6,1,2,3+4,6-1,2,3 isr 1,2,3"
    assert story(cluster, since) == [
        "topic znode 4,6,1,2,3+4,6-1,2,3",
        "memory 4,6,1,2,3 isr 1,2,3,5 1@1",
        "state znode isr 1,2,3 1@2",
        "memory 4,6,1,2,3 isr 1,2,3 1@2",
        f"LeaderAndIsr to 4,6,1,2,3 {told} 1@2",
        f"UpdateMetadata to {ALL} 4,6,1,2,3 isr 1,2,3 1@2",
        "StopReplica to 5",
        "StopReplica delete to 5",
        "state znode isr 1,2,3 1@3",
        "memory 4,6,1,2,3 isr 1,2,3 1@3",
        f"LeaderAndIsr to 1,2,3 {told} 1@3",
        f"LeaderAndIsr new to 4,6 {told} 1@3",
        f"UpdateMetadata to {ALL} 4,6,1,2,3 isr 1,2,3 1@3",
        f"LeaderAndIsr new to 6 {told} 1@3",
    ]


@pytest.mark.requirement("K455-01")
def test_the_same_target_again_is_told_again_and_not_written_again() -> None:
    cluster = cluster_of()
    alter(cluster, [4, 3])
    since = len(cluster.log)
    alter(cluster, [4, 3])
    assert shape(cluster) == ([4, 3, 1, 2], [1, 2, 3], 1, 2)
    assert not any(line.startswith("topic znode") for line in story(cluster, since))


@pytest.mark.requirement("K455-01")
def test_a_cancellation_reverts_also_what_has_joined_the_isr() -> None:
    cluster = cluster_of("foo=1,2,3/1,2,3")
    alter(cluster, [4, 5, 6])
    alter(cluster, [4], ("foo", 1))
    Operations(cluster).join_isr(FOO, 4)
    assert alter(cluster, None) == (0, None)
    assert shape(cluster) == ([1, 2, 3], [1, 2, 3], 1, 3)
    assert list(listed(cluster)) == [("foo", 1)]


@pytest.mark.requirement("K455-01")
def test_a_cancellation_cannot_restore_the_order() -> None:
    """Kept replicas stay where the target had them: [1,2,3] to [3,4,2] and back is [3,2,1]."""
    cluster = cluster_of()
    alter(cluster, [3, 4, 2])
    alter(cluster, None)
    assert shape(cluster)[0] == [3, 2, 1]


@pytest.mark.requirement("K455-01", "K455-42")
def test_a_cancellation_takes_the_lead_from_a_replica_that_goes() -> None:
    cluster = cluster_of("foo=2,3")
    alter(cluster, [4, 5])
    Operations(cluster).join_isr(FOO, 4)
    Operations(cluster).stop_broker(2)
    Operations(cluster).stop_broker(3)
    assert shape(cluster) == ([4, 5, 2, 3], [4], 4, 3)
    Operations(cluster).start_broker(3)
    Operations(cluster).join_isr(FOO, 3)
    since = len(cluster.log)
    alter(cluster, None)
    assert shape(cluster) == ([2, 3], [3], 3, 5)
    assert [line for line in story(cluster, since) if line.startswith("state")] == [
        "state znode isr 3 -1@4",
        "state znode isr 3 3@5",
    ]


@pytest.mark.requirement("K455-42")
def test_a_cancellation_that_leaves_no_replica_in_sync_goes_through_all_the_same() -> None:
    """KRaft refuses this; here the partition is offline, and the last in sync is no replica."""
    cluster = cluster_of("foo=1")
    alter(cluster, [4, 5])
    Operations(cluster).join_isr(FOO, 4)
    Operations(cluster).stop_broker(1)
    assert alter(cluster, None) == (0, None)
    assert shape(cluster)[:3] == ([1], [4], -1)
    Operations(cluster).start_broker(1)
    assert cluster.topics.partition(*FOO).leader == -1


@pytest.mark.requirement("K455-42")
def test_without_a_leader_to_be_had_the_end_raises_no_epoch() -> None:
    """As seen on Kafka 3.9.2: [4] with 4 down, to [1] and back."""
    cluster = cluster_of("foo=4")
    Operations(cluster).stop_broker(4)
    assert alter(cluster, [1]) == (0, None)
    assert shape(cluster) == ([1, 4], [4], -1, 2)
    since = len(cluster.log)
    assert alter(cluster, None) == (0, None)
    assert shape(cluster) == ([4], [4], -1, 2)
    assert story(cluster, since) == [
        "topic znode 4+-",
        "memory 4 isr 4 -1@2",
        "UpdateMetadata to 1,2,3,5,6 4 isr 4 -1@2",
        "StopReplica to 1",
        "StopReplica delete to 1",
        "UpdateMetadata to 1,2,3,5,6 4 isr 4 -1@2",
    ]
    Operations(cluster).start_broker(4)
    assert shape(cluster) == ([4], [4], 4, 3)


@pytest.mark.requirement("K455-42")
def test_nobody_of_the_target_can_lead_and_the_rest_is_removed_all_the_same() -> None:
    cluster = cluster_of("foo=4,1")
    Operations(cluster).leave_isr(FOO, 1)
    Operations(cluster).stop_broker(4)
    since = len(cluster.log)
    submit(cluster, {FOO: [4]})
    assert shape(cluster)[:3] == ([4], [4], -1)
    assert story(cluster, since) == [
        "plan written",
        "topic znode 4,1+-1",
        "memory 4,1 isr 4 -1@1",
        "memory 4 isr 4 -1@1",
        "UpdateMetadata to 1,2,3,5,6 4 isr 4 -1@1",
        "StopReplica to 1",
        "StopReplica delete to 1",
        "topic znode 4+-",
        "plan gone",
        "UpdateMetadata to 1,2,3,5,6 4 isr 4 -1@1",
    ]


@pytest.mark.requirement("K455-42")
def test_a_dead_follower_costs_an_epoch_and_a_slow_one_does_not() -> None:
    """The controller takes out who died, the leader who is slow."""
    cluster = cluster_of()
    since = len(cluster.log)
    Operations(cluster).leave_isr(FOO, 3)
    Operations(cluster).join_isr(FOO, 3)
    assert story(cluster, since) == [
        "state znode isr 1,2 1@0",
        "memory 1,2,3 isr 1,2 1@0",
        f"UpdateMetadata to {ALL} 1,2,3 isr 1,2 1@0",
        "state znode isr 1,2,3 1@0",
        "memory 1,2,3 isr 1,2,3 1@0",
        f"UpdateMetadata to {ALL} 1,2,3 isr 1,2,3 1@0",
    ]
    since = len(cluster.log)
    Operations(cluster).stop_broker(3)
    assert story(cluster, since) == [
        "state znode isr 1,2 1@1",
        "memory 1,2,3 isr 1,2 1@1",
        "LeaderAndIsr to 1,2 1,2,3+- isr 1,2 1@1",
        "UpdateMetadata to 1,2,4,5,6 1,2,3 isr 1,2 1@1",
    ]


@pytest.mark.requirement("K455-42")
def test_another_leader_costs_an_epoch_and_is_announced() -> None:
    cluster = cluster_of("foo=2,3")
    since = len(cluster.log)
    Operations(cluster).stop_broker(2)
    assert story(cluster, since) == [
        "state znode isr 3 3@1",
        "memory 2,3 isr 3 3@1",
        "LeaderAndIsr to 3 2,3+- isr 3 3@1",
        "UpdateMetadata to 1,3,4,5,6 2,3 isr 3 3@1",
    ]
    found = cluster.znodes.read(STATE)
    assert found is not None
    assert cluster.topics.partition(*FOO).partition_epoch == found[1].version


@pytest.mark.requirement("K455-42")
def test_a_broker_that_returns_takes_its_reassignments_up_again() -> None:
    """The epochs are those of Kafka 3.9.2."""
    cluster = cluster_of("foo=1,4")
    Operations(cluster).stop_broker(4)
    assert shape(cluster) == ([1, 4], [1], 1, 1)
    alter(cluster, [1, 4, 2])
    Operations(cluster).join_isr(FOO, 2)
    assert shape(cluster) == ([1, 4, 2], [1, 2], 1, 2)
    Operations(cluster).start_broker(4)
    assert shape(cluster)[3] == 3
    Operations(cluster).join_isr(FOO, 4)
    assert shape(cluster) == ([1, 4, 2], [1, 2, 4], 1, 4)
    assert listed(cluster) == {}


@pytest.mark.requirement("K455-42")
def test_a_broker_that_returns_and_is_not_wanted_changes_nothing() -> None:
    cluster = cluster_of("foo=1,4")
    Operations(cluster).stop_broker(4)
    alter(cluster, [1, 2])
    since = len(cluster.log)
    Operations(cluster).start_broker(4)
    assert shape(cluster) == ([1, 2, 4], [1], 1, 2)
    assert not any("znode" in line for line in story(cluster, since))


@pytest.mark.requirement("K455-42")
def test_the_deletion_of_a_topic_waits_for_no_reassignment() -> None:
    """Kafka 3.9.2 answers 0 at once, and the topic goes as soon as its brokers answer."""
    cluster = cluster_of()
    alter(cluster, [4, 5, 6])
    (result,) = cluster.topics.delete([("foo", ZERO_UUID)])
    assert result.error_code == 0
    assert listed(cluster) == {}
    assert alter(cluster, [1]) == (3, "The partition does not exist.")
