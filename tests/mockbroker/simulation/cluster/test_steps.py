"""Controls: replicas in and out of sync, brokers stopping and starting, time, held metadata."""

import json
from collections.abc import Callable

import pytest

from mockbroker.errors import ClusterError, UnknownBrokerError, UnknownPartitionError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import BrokerChanged
from mockbroker.simulation.state.cluster_parts import Broker, Partition
from tests.mockbroker.simulated import simulated_cluster

FOO = ("foo", 0)


def test_stopping_a_follower_shrinks_the_isr_and_nothing_else() -> None:
    cluster = Cluster(3, topics=["foo=1,2,3"])
    Operations(cluster).stop_broker(2)
    assert cluster.topics.partition("foo", 0) == Partition(0, (1, 2, 3), (1, 3), 1, 0, 1)


def test_stopping_the_leader_elects_the_next_in_replica_order() -> None:
    cluster = Cluster(3, topics=["foo=2,3,1"])
    Operations(cluster).leave_isr(FOO, 3)
    Operations(cluster).join_isr(FOO, 3)
    assert cluster.topics.partition("foo", 0).isr == (2, 1, 3)
    Operations(cluster).stop_broker(2)
    assert cluster.topics.partition("foo", 0) == Partition(0, (2, 3, 1), (1, 3), 3, 1, 3)


def test_the_last_in_sync_replica_is_remembered() -> None:
    cluster = Cluster(2, topics=["foo=1,2"])
    Operations(cluster).stop_broker(2)
    Operations(cluster).stop_broker(1)
    assert cluster.topics.partition("foo", 0) == Partition(0, (1, 2), (1,), -1, 1, 2)
    Operations(cluster).start_broker(2)
    assert cluster.topics.partition("foo", 0).leader == -1
    with pytest.raises(ClusterError, match=r"foo-0 is offline"):
        Operations(cluster).join_isr(FOO, 2)
    Operations(cluster).start_broker(1)
    assert cluster.topics.partition("foo", 0) == Partition(0, (1, 2), (1,), 1, 2, 3)


def test_unclean_topics_stay_online() -> None:
    cluster = Cluster(2, topics=["foo=1,2"])
    cluster.config_changes.alter_incrementally(
        [(2, "foo", [("unclean.leader.election.enable", 0, "true")])]
    )
    Operations(cluster).leave_isr(FOO, 2)
    Operations(cluster).stop_broker(1)
    assert cluster.topics.partition("foo", 0) == Partition(
        0, (1, 2), (2,), 2, 1, 2, recovering=True
    )


def test_the_controller_moves_when_its_broker_stops() -> None:
    cluster = Cluster(3)
    assert (cluster.state.controller_id, cluster.state.controller_epoch) == (1, 1)
    Operations(cluster).failover(3)
    assert (cluster.state.controller_id, cluster.state.controller_epoch) == (3, 2)
    Operations(cluster).stop_broker(3)
    assert (cluster.state.controller_id, cluster.state.controller_epoch) == (1, 3)
    Operations(cluster).stop_broker(1)
    Operations(cluster).stop_broker(2)
    # Nobody is left; the first to come back takes over.
    assert cluster.state.controller_epoch == 4
    Operations(cluster).start_broker(3)
    assert (cluster.state.controller_id, cluster.state.controller_epoch) == (3, 5)


def test_wrong_steps_say_why() -> None:
    cluster = Cluster(3, topics=["foo=1,2"])
    wrong: list[tuple[Callable[[], object], type[ClusterError], str]] = [
        (lambda: Operations(cluster).join_isr("bar-0", 1), UnknownPartitionError,
         "there is no topic 'bar'"),
        (
            lambda: Operations(cluster).join_isr(("foo", 1), 1),
            UnknownPartitionError,
            "there is no partition foo-1: the topic has 1, numbered from 0",
        ),
        (lambda: Operations(cluster).join_isr(FOO, 9), UnknownBrokerError,
         "there is no broker 9; the cluster has 1, 2, 3"),
        (
            lambda: Operations(cluster).join_isr(FOO, 3),
            ClusterError,
            "broker 3 has no replica of foo-0 (its replicas are 1, 2)",
        ),
        (
            lambda: Operations(cluster).leave_isr(FOO, 1),
            ClusterError,
            "broker 1 is the leader of foo-0 and stays in its ISR; stop the broker instead",
        ),
        (lambda: Operations(cluster).start_broker(1), ClusterError, "broker 1 is already running"),
        (lambda: Operations(cluster).failover(1), ClusterError,
         "broker 1 is already the controller"),
        (lambda: cluster.turns.advance(-1), ClusterError, "time cannot go back by 1 ms"),
        (lambda: Operations(cluster).release_metadata(1), ClusterError,
         "the metadata of broker 1 is not held"),
        (lambda: Operations(cluster).hold_metadata(7), UnknownBrokerError,
         "there is no broker 7; the cluster has 1, 2, 3"),
        (lambda: cluster.configs.topic("foo", "x"), ClusterError, "there is no topic config 'x'"),
    ]  # fmt: skip
    for call, error, text in wrong:
        with pytest.raises(error) as caught:
            call()
        assert str(caught.value) == text
    Operations(cluster).stop_broker(2)
    with pytest.raises(ClusterError, match=r"broker 2 is stopped and cannot join the ISR of foo-0"):
        Operations(cluster).join_isr(FOO, 2)
    with pytest.raises(ClusterError, match=r"broker 2 is stopped and cannot become the controller"):
        Operations(cluster).failover(2)
    with pytest.raises(ClusterError, match=r"broker 2 is already stopped"):
        Operations(cluster).stop_broker(2)


@pytest.mark.parametrize(
    "brokers", [0, [], [Broker(1), Broker(1)], [Broker(-1)]], ids=["0", "none", "twice", "negative"]
)
def test_impossible_clusters(brokers: int | list[Broker]) -> None:
    with pytest.raises(ClusterError):
        Cluster(brokers)


@pytest.mark.parametrize(
    "topic",
    ["foo:0:1", "foo:1:4", "foo:1", "foo=", "foo=1,9", "foo=1,1", "a b:1:1", "foo=1/", "dup=1"],
)
def test_impossible_topics(topic: str) -> None:
    with pytest.raises(ClusterError, match=r"^topic "):
        Cluster(3, topics=["dup:1:1", topic])


def test_nothing_moves_by_itself() -> None:
    cluster = Cluster(6, topics=["foo=1,2,3"])
    cluster.reassignments.alter([("foo", [(0, [4, 5, 6])])])
    state = cluster.describe()
    cluster.turns.advance(3_600_000)
    assert cluster.describe() == state


def test_auto_progress_joins_one_replica_a_tick() -> None:
    cluster = simulated_cluster(
        6, topics=["foo=1,2,3", "goo=1,2"], auto_progress_ms=500, now_ms=10_000
    )
    Operations(cluster).leave_isr(("foo", 0), 3)
    cluster.reassignments.alter([("goo", [(0, [6, 4])])])
    started = len(cluster.log)
    assert cluster.auto_progress.next_tick_ms == 10_500
    cluster.turns.advance(499)
    assert len(cluster.log) == started
    cluster.turns.advance(1)
    assert cluster.topics.partition("goo", 0).isr == (1, 2, 6)
    cluster.turns.advance(10_000)
    # The reassignment first, in the target's order, though foo comes before goo.
    assert [(a.at_ms, a.cause, a.to_dict()["topic"]) for a in cluster.log.since(started)] == [
        (10_500, "auto_progress", "goo"),
        (11_000, "auto_progress", "goo"),
        (11_500, "auto_progress", "foo"),
    ]
    assert cluster.topics.partition("goo", 0).replicas == (6, 4)
    assert (cluster.timers.now_ms, cluster.auto_progress.next_tick_ms) == (20_500, 21_000)


def test_auto_progress_does_not_depend_on_how_time_is_cut() -> None:
    def run(*pieces: int) -> list[tuple[int, str]]:
        cluster = simulated_cluster(6, topics=["foo=1,2,3"], auto_progress_ms=7)
        cluster.reassignments.alter([("foo", [(0, [4, 5, 6])])])
        for piece in pieces:
            cluster.turns.advance(piece)
        return [(action.at_ms, action.kind) for action in cluster.log]

    assert run(100) == run(*[1] * 100) == run(6, 1, 40, 53)


def test_auto_progress_passes_over_who_cannot_join() -> None:
    cluster = simulated_cluster(4, topics=["foo=1,2"], auto_progress_ms=1)
    cluster.reassignments.alter([("foo", [(0, [3, 4])])])
    Operations(cluster).stop_broker(3)
    cluster.turns.advance(5)
    assert cluster.topics.partition("foo", 0).isr == (1, 2, 4)
    Operations(cluster).start_broker(3)
    cluster.turns.advance(1)
    assert cluster.topics.partition("foo", 0).replicas == (3, 4)
    cluster.auto_progress.set_interval(None)
    assert cluster.auto_progress.next_tick_ms is None


@pytest.mark.requirement("K860-13")
def test_described_during_the_reassignment() -> None:
    """KIP-860, first order: the describe sees it, then it completes, then the list is empty."""
    cluster = Cluster(6, topics=["foo=1,2,3"])
    cluster.reassignments.alter([("foo", [(0, [4, 5, 6])])])
    seen = cluster.controller.metadata_view(2).topics["foo"].partitions[0]
    for broker_id in (4, 5, 6):
        Operations(cluster).join_isr(FOO, broker_id)
    assert len(seen.replicas) == 6
    assert cluster.reassignments.list_ongoing(None).topics == ()


@pytest.mark.requirement("K860-14", "K860-15")
def test_described_by_a_broker_that_lags() -> None:
    """KIP-860, second order: it completes, the list is empty, a stale broker still shows six."""
    cluster = Cluster(6, topics=["foo=1,2,3"])
    cluster.reassignments.alter([("foo", [(0, [4, 5, 6])])])
    Operations(cluster).hold_metadata(2)
    for broker_id in (4, 5, 6):
        Operations(cluster).join_isr(FOO, broker_id)
    assert cluster.reassignments.list_ongoing(None).topics == ()
    assert len(cluster.controller.metadata_view(2).topics["foo"].partitions[0].replicas) == 6
    assert cluster.controller.metadata_view(3).topics["foo"].partitions[0].replicas == (4, 5, 6)
    Operations(cluster).release_metadata(2)
    assert cluster.controller.metadata_view(2) == cluster.controller.metadata_view(3)


def test_the_controller_that_metadata_shows() -> None:
    cluster = Cluster(3)
    Operations(cluster).failover(2)
    Operations(cluster).hold_metadata(3)
    Operations(cluster).stop_broker(2)
    assert cluster.controller.metadata_view(1).shown_controller_id(forwarding=False) == 1
    assert cluster.controller.metadata_view(3).shown_controller_id(forwarding=False) == 2
    for broker_id in (1, 3):
        Operations(cluster).stop_broker(broker_id)
    for forwarding in (True, False):
        assert cluster.controller.metadata_view(1).shown_controller_id(forwarding=forwarding) == -1


def test_views_find_topics_by_id() -> None:
    cluster = Cluster(1, topics=["foo:1:1", "__consumer_offsets:1:1"])
    view = cluster.controller.metadata_view(1)
    foo = view.topics["foo"]
    assert view.topic_by_id(foo.topic_id) is foo
    assert [t.internal for t in view.topics.values()] == [False, True]
    cluster.topics.delete([("foo", type(foo.topic_id)(int=0))])
    assert cluster.controller.metadata_view(1).topic_by_id(foo.topic_id) is None
    assert view.topic_by_id(foo.topic_id) is foo


def test_endpoints_are_part_of_the_state() -> None:
    cluster = Cluster([Broker(5, rack="r")])
    cluster.brokers.set_endpoint(5, "localhost", 9092)
    cluster.brokers.set_endpoint(5, "localhost", 9092)
    assert cluster.controller.metadata_view(5).live_brokers() == (
        Broker(5, "localhost", 9092, "r"),
    )
    assert sum(isinstance(action.change, BrokerChanged) for action in cluster.log) == 1


def test_the_log_can_be_written_as_json() -> None:
    cluster = Cluster(2, topics=["foo=1,2"])
    offset = len(cluster.log)
    Operations(cluster).leave_isr(FOO, 2)
    Operations(cluster).hold_metadata(1)
    entries = json.loads(json.dumps([action.to_dict() for action in cluster.log]))
    assert [entry["kind"] for entry in entries] == [
        *["BrokerRegistered"] * 2,
        "ControllerChanged",
        "TopicCreated",
        "PartitionChanged",
        "MetadataHeld",
    ]
    assert (entries[4]["before"]["isr"], entries[4]["after"]["isr"]) == ([1, 2], [1])
    assert [a.change for a in cluster.log.since(offset)][:1] == list(
        cluster.log.partition_changes("foo", 0)
    )
