"""Acks -1: when a producer is answered, and what."""

import pytest

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.producing.appender import AppendOutcome, ReplicationWait
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulation.log.producing import FOO, batch, new_cluster, produce


def over(wait: ReplicationWait) -> bool:
    """Type checkers take a property that was False once for False until the end."""
    return wait.is_over


def waiting(cluster: Cluster, data: bytes | None = None) -> tuple[AppendOutcome, ReplicationWait]:
    """Produce one record with acks -1 while broker 3 is held."""
    cluster.logs.hold_replication(FOO, 3)
    outcome = produce(cluster, batch(b"v") if data is None else data, acks=-1)
    wait = cluster.appender.wait([outcome])
    assert not over(wait)
    return outcome, wait


@pytest.mark.requirement("DP-PRODUCE-32", "DP-PRODUCE-35")
def test_the_wait_ends_when_the_high_watermark_has_passed_the_batch() -> None:
    cluster = new_cluster()
    outcome, wait = waiting(cluster, batch(b"a", b"b"))
    calls: list[int] = []
    wait.when_over(lambda: calls.append(1))
    cluster.logs.replicate(FOO, 3, 1)
    assert not over(wait)
    assert not calls
    cluster.logs.replicate(FOO, 3, 2)
    assert (outcome.error, outcome.base_offset, calls) == (0, 0, [1])
    assert over(wait)
    assert not cluster.logs.log(FOO).watched


@pytest.mark.requirement("DP-PRODUCE-32")
def test_replicas_in_sync_are_not_waited_for() -> None:
    cluster = new_cluster()
    wait = cluster.appender.wait([produce(cluster, batch(b"v"), acks=-1)])
    calls: list[int] = []
    wait.when_over(lambda: calls.append(1))
    assert (over(wait), calls) == (True, [1])


@pytest.mark.requirement("DP-PRODUCE-35")
def test_a_replica_that_leaves_the_isr_is_not_waited_for() -> None:
    cluster = new_cluster()
    outcome, wait = waiting(cluster)
    Operations(cluster).leave_isr(FOO, 3)
    assert (over(wait), outcome.error) == (True, 0)


@pytest.mark.parametrize(("release", "is_over"), [((3, 6), True), ((3, 7), False), ((4, 4), False)])
@pytest.mark.requirement("DP-PRODUCE-35", "DP-LOG-07")
def test_the_isr_shrinks_below_the_minimum(release: tuple[int, int], is_over: bool) -> None:
    cluster = new_cluster(release, {"min.insync.replicas": "3"})
    outcome, wait = waiting(cluster)
    Operations(cluster).leave_isr(FOO, 3)
    assert over(wait) is is_over, "since 3.7 the high watermark does not move"
    if not is_over:
        cluster.config_changes.alter_incrementally([(2, "foo", [("min.insync.replicas", 0, "2")])])
        cluster.logs.lag_watermark(FOO, 0)
    assert over(wait)
    assert outcome.error == (20 if is_over else 0)
    assert cluster.logs.log(FOO).end_offset == 1


@pytest.mark.requirement("DP-PRODUCE-35")
def test_the_leader_is_lost() -> None:
    cluster = new_cluster()
    outcome, wait = waiting(cluster)
    Operations(cluster).stop_broker(1)
    assert (over(wait), outcome.error, outcome.base_offset) == (True, 6, 0)


@pytest.mark.requirement("DP-PRODUCE-35")
def test_the_topic_is_deleted() -> None:
    cluster = new_cluster()
    outcome, wait = waiting(cluster)
    cluster.topics.delete([(None, cluster.topics["foo"].topic_id)])
    assert (over(wait), outcome.error) == (True, 3)


@pytest.mark.requirement("DP-PRODUCE-35")
def test_time_is_over() -> None:
    cluster = new_cluster()
    cluster.topics.add("bar=1")
    cluster.logs.hold_replication(FOO, 3)
    outcomes = [
        produce(cluster, batch(b"v"), acks=-1),
        produce(cluster, batch(b"v"), acks=-1, topic="bar"),
        produce(cluster, None, acks=-1),
    ]
    wait = cluster.appender.wait(outcomes)
    wait.expire()
    assert [(each.error, each.base_offset) for each in outcomes] == [(7, 0), (0, 0), (87, -1)]
    assert cluster.logs.log(FOO).end_offset == 1, "the record stays"
    assert not cluster.logs.log(FOO).watched


@pytest.mark.requirement("DP-PRODUCE-35")
def test_a_request_waits_for_its_last_partition() -> None:
    cluster = new_cluster()
    cluster.topics.add("bar=1,2")
    cluster.logs.hold_replication(FOO, 3)
    cluster.logs.hold_replication(("bar", 0), 2)
    outcomes = [
        produce(cluster, batch(b"v"), acks=-1),
        produce(cluster, batch(b"v"), acks=-1, topic="bar"),
        produce(cluster, batch(b"v"), acks=-1),
    ]
    wait = cluster.appender.wait(outcomes)
    cluster.logs.replicate(FOO, 3, 1)
    assert cluster.logs.log(FOO).watched, "its second batch is not replicated"
    cluster.logs.release_replication(("bar", 0), None)
    assert not cluster.logs.log(("bar", 0)).watched
    assert not over(wait)
    cluster.logs.release_replication(FOO, None)
    assert over(wait)
    assert [each.error for each in outcomes] == [0, 0, 0]


@pytest.mark.requirement("DP-IDEM-01", "DP-PRODUCE-35")
def test_a_duplicate_waits_as_the_first_one_did() -> None:
    cluster = new_cluster()
    data = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0)
    first, wait = waiting(cluster, data)
    again = produce(cluster, data, acks=-1)
    second = cluster.appender.wait([again])
    assert not over(second)
    cluster.logs.release_replication(FOO, None)
    assert over(wait)
    assert over(second)
    assert (first.base_offset, again.base_offset) == (0, 0)
