"""Worked examples of reassignments (45, 46), each read off Kafka's behaviour."""

from collections.abc import Sequence

import pytest

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_parts import Broker, Partition
from mockbroker.simulation.state.results import (
    ListReassignmentsResult,
    OngoingReassignment,
    OngoingTopic,
    PartitionResult,
    TopicResult,
)
from tests.mockbroker.simulated import simulated_cluster


def cluster_with(
    replicas: Sequence[int],
    isr: Sequence[int] | None = None,
    *,
    brokers: int = 7,
    release: tuple[int, int] = (4, 4),
) -> Cluster:
    """One topic foo with one partition; None: every replica is in sync."""
    made = simulated_cluster(
        [Broker(i) for i in range(brokers)], topics=[("foo", [replicas])], release=release
    )
    for broker_id in replicas:
        if isr is not None and broker_id not in isr:
            Operations(made).leave_isr(("foo", 0), broker_id)
    return made


def alter(
    cluster: Cluster, target: Sequence[int] | None, *, guard: bool = False
) -> PartitionResult:
    result = cluster.reassignments.alter(
        [("foo", [(0, target)])], allow_replication_factor_change=not guard
    )
    assert (result.error_code, result.error_message) == (0, None)
    return result.topics[0].partitions[0]


def foo(cluster: Cluster) -> Partition:
    return cluster.topics.partition("foo", 0)


@pytest.mark.requirement("K455-01")
def test_start_holds_old_and_new_at_once() -> None:
    cluster = cluster_with([3, 1, 2])
    assert alter(cluster, [6, 4, 5]) == PartitionResult(0)
    assert foo(cluster) == Partition(
        0, (6, 4, 5, 1, 2, 3), (3, 1, 2), 3, 0, 1, adding=(4, 5, 6), removing=(1, 2, 3)
    )
    assert foo(cluster).target == (6, 4, 5)


def test_completes_when_the_last_new_replica_joins() -> None:
    cluster = cluster_with([1, 2, 3])
    alter(cluster, [4, 5, 6])
    for broker_id in (6, 4):
        assert Operations(cluster).join_isr(("foo", 0), broker_id).reassigning
    done = Operations(cluster).join_isr(("foo", 0), 5)
    # The leader was removed: the first replica of the target that is in sync takes over.
    assert done == Partition(0, (4, 5, 6), (6, 4, 5), leader=4, leader_epoch=1, partition_epoch=4)
    assert cluster.reassignments.list_ongoing(None) == ListReassignmentsResult(0, None, ())


def test_keeps_its_leader_when_the_target_has_it() -> None:
    cluster = cluster_with([1, 2, 3])
    alter(cluster, [4, 3, 1])
    done = Operations(cluster).join_isr(("foo", 0), 4)
    # Same leader; the epoch still rises, because a replica went.
    assert (done.leader, done.leader_epoch, done.replicas) == (1, 1, (4, 3, 1))


@pytest.mark.requirement("A-57")
def test_pure_addition_waits_for_every_replica_before_4_3() -> None:
    cluster = cluster_with([1, 2], isr=[1], release=(4, 2))
    alter(cluster, [1, 2, 3])
    assert Operations(cluster).join_isr(("foo", 0), 3).reassigning
    done = Operations(cluster).join_isr(("foo", 0), 2)
    assert (done.reassigning, done.leader_epoch, done.isr) == (False, 0, (1, 3, 2))


@pytest.mark.requirement("K455-01")
def test_pure_removal_completes_inside_the_call() -> None:
    cluster = cluster_with([1, 2, 3, 4], isr=[1, 2, 4])
    alter(cluster, [1, 2, 4])
    assert (foo(cluster).replicas, foo(cluster).isr) == ((1, 2, 4), (1, 2, 4))
    assert (foo(cluster).leader_epoch, foo(cluster).reassigning) == (1, False)


def test_pure_removal_waits_for_who_stays() -> None:
    cluster = cluster_with([1, 2, 3, 4], isr=[1, 2, 3])
    alter(cluster, [1, 2, 4])
    assert (foo(cluster).adding, foo(cluster).removing) == ((), (3,))
    assert not Operations(cluster).join_isr(("foo", 0), 4).reassigning


@pytest.mark.requirement("K455-01")
def test_pure_reorder_is_never_in_progress() -> None:
    cluster = cluster_with([0, 1, 2, 3], isr=[0, 1, 2])
    alter(cluster, [1, 2, 3, 0])
    assert foo(cluster) == Partition(0, (1, 2, 3, 0), (0, 1, 2), 0, 0, 2)
    assert cluster.reassignments.list_ongoing(None).topics == ()


@pytest.mark.requirement("K455-01")
def test_the_same_replicas_again_change_nothing() -> None:
    cluster = cluster_with([1, 2, 3])
    before = len(cluster.log)
    assert alter(cluster, [1, 2, 3]).error_code == 0
    assert len(cluster.log) == before


@pytest.mark.requirement("K455-01", "A-41")
def test_cancel_takes_the_new_replicas_out_again() -> None:
    cluster = cluster_with([2, 1, 3])
    alter(cluster, [4, 5, 3])
    Operations(cluster).join_isr(("foo", 0), 4)
    assert alter(cluster, None) == PartitionResult(0)
    # The old order is not restored: what the target moved stays moved.
    assert (foo(cluster).replicas, foo(cluster).isr) == ((3, 1, 2), (2, 1, 3))
    assert (foo(cluster).leader, foo(cluster).leader_epoch, foo(cluster).reassigning) == (
        2,
        1,
        False,
    )


@pytest.mark.requirement("A-41", "K860-03")
def test_cancel_of_nothing() -> None:
    cluster = cluster_with([1, 2, 3])
    assert alter(cluster, None) == PartitionResult(0, 85, None)
    # The guard is about alterations only.
    assert alter(cluster, None, guard=True) == PartitionResult(0, 85, None)


def only_new_in_sync() -> Cluster:
    """[1, 2] on its way to [3, 4], and no old replica in sync."""
    cluster = cluster_with([1, 2])
    alter(cluster, [3, 4])
    Operations(cluster).join_isr(("foo", 0), 3)
    for broker_id in (2, 1):
        Operations(cluster).stop_broker(broker_id)
    assert foo(cluster).isr == (3,)
    return cluster


@pytest.mark.requirement("K455-22")
def test_cancel_that_would_lose_data_is_refused() -> None:
    cluster = only_new_in_sync()
    assert alter(cluster, None) == PartitionResult(
        0,
        39,
        "Unable to revert partition assignment for foo:0 because it would require an unclean "
        "leader election.",
    )
    assert foo(cluster).reassigning


@pytest.mark.requirement("K455-01", "K455-22")
@pytest.mark.parametrize("resource", [(2, "foo"), (4, "")], ids=["topic", "cluster"])
@pytest.mark.parametrize(
    ("back", "leader", "isr"), [((1, 2), 1, (1,)), ((2,), 2, (2,)), ((), -1, (1,))]
)
def test_cancel_may_lose_data_where_that_is_allowed(resource, back, leader, isr):
    cluster = only_new_in_sync()
    for broker_id in back:
        Operations(cluster).start_broker(broker_id)
    cluster.config_changes.alter_incrementally(
        [(*resource, [("unclean.leader.election.enable", 0, "true")])]
    )
    assert alter(cluster, None) == PartitionResult(0)
    after = foo(cluster)
    assert (after.replicas, after.reassigning) == ((1, 2), False)
    assert (after.leader, after.isr) == (leader, isr)


def test_what_an_unclean_election_completes_is_finished_by_the_next_change() -> None:
    """Kafka looks whether a reassignment is complete before it elects a leader."""
    cluster = cluster_with([1])
    alter(cluster, [2])
    cluster.config_changes.alter_incrementally(
        [(2, "foo", [("unclean.leader.election.enable", 0, "true")])]
    )
    Operations(cluster).stop_broker(1)
    assert (foo(cluster).isr, foo(cluster).leader, foo(cluster).removing) == ((2,), 2, (1,))
    # Nothing to elect, nothing to join: still as it was.
    cluster.elections.elect(0, None)
    Operations(cluster).join_isr(("foo", 0), 2)
    assert foo(cluster).reassigning
    alter(cluster, [2])
    assert (foo(cluster).replicas, foo(cluster).reassigning) == ((2,), False)


@pytest.mark.requirement("K455-01")
def test_second_alter_starts_from_all_present_replicas() -> None:
    cluster = cluster_with([0, 1])
    alter(cluster, [2, 3])
    alter(cluster, [4, 5])
    assert foo(cluster).replicas == (4, 5, 0, 1, 2, 3)
    assert (foo(cluster).adding, foo(cluster).removing) == ((4, 5), (0, 1, 2, 3))
    # So a cancel leaves four replicas where there were two.
    alter(cluster, None)
    assert foo(cluster).replicas == (0, 1, 2, 3)


@pytest.mark.requirement("K455-01")
def test_second_alter_keeps_the_list_it_has_nothing_for() -> None:
    """As Kafka's controller does from 3.9.2 to 4.4.0: an empty list is not written over."""
    cluster = cluster_with([1, 2, 3], isr=[1, 2], release=(4, 2))
    alter(cluster, [4, 5, 6])
    alter(cluster, [1, 2, 3])
    assert foo(cluster).replicas == (1, 2, 3, 4, 5, 6)
    assert (foo(cluster).adding, foo(cluster).removing) == ((4, 5, 6), (4, 5, 6))
    done = Operations(cluster).join_isr(("foo", 0), 3)
    assert (done.replicas, done.reassigning) == ((1, 2, 3), False)


@pytest.mark.requirement("K455-01", "A-57")
def test_back_to_the_old_replicas_completes_at_once_before_4_3() -> None:
    cluster = cluster_with([1, 2, 3], release=(4, 2))
    alter(cluster, [4, 5, 6])
    Operations(cluster).join_isr(("foo", 0), 5)
    alter(cluster, [1, 2, 3])
    assert (foo(cluster).replicas, foo(cluster).isr) == ((1, 2, 3), (1, 2, 3))
    assert (foo(cluster).leader, foo(cluster).leader_epoch, foo(cluster).reassigning) == (
        1,
        1,
        False,
    )


@pytest.mark.parametrize(
    ("target", "code", "text"),
    [
        ([], 39, "The manual partition assignment includes an empty replica list."),
        (
            [1, -1],
            39,
            "The manual partition assignment includes broker -1, but no such broker is registered.",
        ),
        (
            [1, 2, 99],
            39,
            "The manual partition assignment includes broker 99, but no such broker is registered.",
        ),
        ([2, 1, 1], 39, "The manual partition assignment includes the broker 1 more than once."),
        ([1, 2], 38, "The replication factor is changed from 3 to 2"),
        ([1, 2, 3, 4], 38, "The replication factor is changed from 3 to 4"),
        # Assignments are looked at before their size is.
        (
            [9],
            39,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
    ],
)  # fmt: skip
@pytest.mark.requirement("K455-23", "K860-07", "A-32")
def test_refused_targets(target: list[int], code: int, text: str) -> None:
    cluster = cluster_with([1, 2, 3])
    before = cluster.describe()
    assert alter(cluster, target, guard=True) == PartitionResult(0, code, text)
    assert cluster.describe() == before


def test_a_stopped_broker_is_still_a_valid_target() -> None:
    cluster = cluster_with([1, 2, 3])
    Operations(cluster).stop_broker(4)
    assert alter(cluster, [1, 2, 4]) == PartitionResult(0)


@pytest.mark.requirement("K860-08", "A-32")
def test_the_guard_looks_at_where_the_partition_is_heading() -> None:
    cluster = cluster_with([1, 2, 3])
    alter(cluster, [4, 5])
    assert alter(cluster, [4, 5, 6], guard=True) == PartitionResult(
        0, 38, "The replication factor is changed from 2 to 3"
    )
    assert alter(cluster, [6, 1], guard=True) == PartitionResult(0)


@pytest.mark.requirement("K860-06")
def test_rows_follow_the_request_and_stand_alone() -> None:
    cluster = Cluster(6, topics=["foo:2:3", "bar:1:3"])
    result = cluster.reassignments.alter(
        [
            ("nosuch", [(0, [1])]),
            ("foo", [(2, [1]), (1, [4, 5]), (0, [4, 5, 6])]),
            ("empty", []),
            ("bar", [(0, None)]),
        ],
        allow_replication_factor_change=False,
    )
    assert result.topics == (
        TopicResult("nosuch", (PartitionResult(0, 3, "Unable to find a topic named nosuch."),)),
        TopicResult(
            "foo",
            (
                PartitionResult(2, 3, "Unable to find partition foo:2."),
                PartitionResult(1, 38, "The replication factor is changed from 3 to 2"),
                PartitionResult(0),
            ),
        ),
        TopicResult("empty", ()),
        TopicResult("bar", (PartitionResult(0, 85, None),)),
    )
    assert foo(cluster).reassigning
    assert not cluster.topics.partition("foo", 1).reassigning


@pytest.mark.requirement("K455-01")
def test_a_partition_named_twice_is_decided_twice_from_the_same_state() -> None:
    cluster = Cluster(4, topics=["foo=1,2"])
    cluster.reassignments.alter([("foo", [(0, [2, 4]), (0, [1, 3])])])
    assert foo(cluster).replicas == (1, 3, 2)
    assert (foo(cluster).adding, foo(cluster).removing) == ((3,), (2,))


@pytest.mark.requirement("A-57")
@pytest.mark.parametrize(("release", "reassigning"), [((4, 2), True), ((4, 3), False)])
def test_a_laggard_that_was_there_before_holds_up_old_releases(release, reassigning):
    cluster = simulated_cluster(4, topics=["foo=1,4"], release=release)
    Operations(cluster).leave_isr(("foo", 0), 4)
    cluster.reassignments.alter([("foo", [(0, [2, 4])])])
    Operations(cluster).join_isr(("foo", 0), 2)
    assert foo(cluster).reassigning is reassigning


@pytest.mark.requirement("A-57")
def test_since_kafka_4_3_the_way_back_never_ends() -> None:
    """The list of added replicas stays, with a replica that is now to be removed as well."""
    cluster = simulated_cluster(4, topics=["foo=1,2"], release=(4, 3))
    cluster.reassignments.alter([("foo", [(0, [1, 4])])])
    cluster.reassignments.alter([("foo", [(0, [1, 2])])])
    Operations(cluster).join_isr(("foo", 0), 4)
    assert (foo(cluster).adding, foo(cluster).removing) == ((4,), (4,))


@pytest.mark.requirement("A-47")
def test_no_topics_at_all() -> None:
    cluster = cluster_with([1, 2, 3])
    result = cluster.reassignments.alter([])
    assert (result.error_code, result.error_message, result.topics) == (0, "", ())
    listed = cluster.reassignments.list_ongoing([])
    assert (listed.error_code, listed.error_message, listed.topics) == (0, None, ())


@pytest.mark.requirement("A-48")
def test_list_leaves_out_what_is_idle_or_unknown() -> None:
    cluster = Cluster(6, topics=["foo:3:2", "bar:1:2"])
    cluster.reassignments.alter([("foo", [(2, [5, 6])]), ("bar", [(0, [4, 1])])])
    in_foo = OngoingReassignment(2, (5, 6, 3, 4), (5, 6), (3, 4))
    in_bar = OngoingReassignment(0, (4, 1, 2), (4,), (2,))
    assert cluster.reassignments.list_ongoing(
        [("nosuch", [0]), ("foo", [7, 2, 0]), ("bar", [])]
    ).topics == (OngoingTopic("foo", (in_foo,)),)
    assert cluster.reassignments.list_ongoing(None).topics == (
        OngoingTopic("bar", (in_bar,)),
        OngoingTopic("foo", (in_foo,)),
    )


def test_a_reassignment_survives_failover_and_goes_with_its_topic() -> None:
    cluster = cluster_with([1, 2, 3])
    alter(cluster, [4, 5, 6])
    listed = cluster.reassignments.list_ongoing(None)
    Operations(cluster).failover(2)
    assert cluster.reassignments.list_ongoing(None) == listed
    (deleted,) = cluster.topics.delete([(None, cluster.topics["foo"].topic_id)])
    assert deleted.error_code == 0
    assert cluster.reassignments.list_ongoing(None).topics == ()
    assert alter(cluster, None) == PartitionResult(0, 3, "Unable to find a topic named foo.")


def test_state_is_the_control_ports_structure() -> None:
    cluster = Cluster(2, topics=["foo:1:1"])
    cluster.reassignments.alter([("foo", [(0, [2])])])
    Operations(cluster).stop_broker(2)
    assert cluster.describe() == {
        "controller": 1,
        "controller_epoch": 1,
        "brokers": {"1": {"live": True}, "2": {"live": False}},
        "topics": {
            "foo": {
                "0": {
                    "replicas": [2, 1],
                    "isr": [1],
                    "leader": 1,
                    "leader_epoch": 0,
                    "adding": [2],
                    "removing": [1],
                    "target": [2],
                }
            }
        },
    }
