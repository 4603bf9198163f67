"""Brokers of several ages in one cluster: what each is sent, and who follows whom because of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.schema.model import ZERO_UUID
from kproto.schema.versions import Versions
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import LeaderAndIsrSent, LiveBrokersSent
from mockbroker.simulation.state.cluster_parts import Broker
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.brokers.inter_broker.heard import alter, heard, said
from tests.mockbroker.simulation.brokers.inter_broker.talking import talking
from tests.mockbroker.simulation.reassignment.walks import FOO, NEW, STATE, changes, joined, now
from tests.mockbroker.simulation.reassignment.walks import alter as alter_cluster
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

BOTH = pytest.mark.parametrize("draft", ["kip-455-old", "kip-455-new"])
TOO_OLD = "does not fetch foo-0: it received no LeaderAndIsr with the target replicas"


def told_of_foo(mock: MockCluster, broker_id: int, after: int = 0) -> list[tuple[int, object]]:
    """Version and target replicas of each LeaderAndIsr about foo-0 that reached a broker."""
    rows = [row for each in heard(mock, broker_id, after) for row in said(each)]
    return [(row[0], *row[5]) if row[5] else (row[0], "absent") for row in rows if row[1] == 4]


def last(mock: MockCluster) -> int:
    return heard(mock)[-1].sequence


@BOTH
@pytest.mark.requirement("K455-64", "K455-34", "A-38")
async def test_an_upgraded_broker_stays_stuck_until_a_new_controller_resends(draft: str) -> None:
    """Brokers A = 1 and B = 2 are new and A is the controller; C = 3 is old."""
    async with talking(
        3, topics=["foo=1"], profile=draft, clock="manual", broker_levels={3: "4=0-2"}
    ) as mock:
        assert alter(mock, [2, 3]) == 0
        await mock.settled()
        assert told_of_foo(mock, 2) == [(3, (2, 3))]
        assert told_of_foo(mock, 3) == [(2, "absent")]
        # What C is told it takes no notice of: it is no replica of foo-0, as far as it can read.
        assert ("foo", 0) in mock.broker_knows(2).replicas
        assert ("foo", 0) not in mock.broker_knows(3).replicas
        answers = mock.journal.select(broker_id=3, api=4, direction="response")
        assert answers[-1].decode(mock.dialect).body.partitions[0].error_code == 3

        mock.join_isr("foo-0", 2)
        before = mock.cluster.topics.partition("foo", 0)
        with pytest.raises(ClusterError, match=TOO_OLD):
            mock.join_isr("foo-0", 3)
        upgraded_at = last(mock)
        await mock.set_level(3, "cluster")
        await mock.stop_broker(3)
        await mock.start_broker(3)
        await mock.settled()
        assert told_of_foo(mock, 3, upgraded_at) == []
        with pytest.raises(ClusterError, match=TOO_OLD):
            mock.join_isr("foo-0", 3)
        after = mock.cluster.topics.partition("foo", 0)
        assert (after.replicas, after.target) == (before.replicas, before.target)

        mock.failover(2)
        await mock.settled()
        target = (3,) if draft == "kip-455-old" else (2, 3)
        assert told_of_foo(mock, 3, upgraded_at) == [(3, target)]
        mock.join_isr("foo-0", 3)
        assert not mock.cluster.topics.partition("foo", 0).reassigning


@BOTH
@pytest.mark.requirement("K455-65")
async def test_a_downgraded_broker_stops_and_the_others_go_on(draft: str) -> None:
    async with talking(4, topics=["foo=1"], profile=draft, clock="manual") as mock:
        assert alter(mock, [2, 3, 4]) == 0
        mock.join_isr("foo-0", 2)
        await mock.set_level(3, "kafka-2.3")
        with pytest.raises(ClusterError, match=TOO_OLD):
            mock.join_isr("foo-0", 3)
        mock.join_isr("foo-0", 4)
        partition = mock.cluster.topics.partition("foo", 0)
        assert partition.isr == (1, 2, 4)
        assert partition.reassigning
        # Up again, it still does not know.
        await mock.set_level(3, "cluster")
        with pytest.raises(ClusterError, match=TOO_OLD):
            mock.join_isr("foo-0", 3)
        mock.failover(2)
        mock.join_isr("foo-0", 3)
        assert not mock.cluster.topics.partition("foo", 0).reassigning


@BOTH
@pytest.mark.parametrize("how", ["in place", "by failover"])
@pytest.mark.requirement("K455-65")
async def test_with_the_controller_downgraded_all_stop(draft: str, how: str) -> None:
    async with talking(4, topics=["foo=1"], profile=draft, clock="manual") as mock:
        assert alter(mock, [2, 3]) == 0
        await mock.settled()
        seen, target = last(mock), mock.cluster.topics.partition("foo", 0).target
        if how == "in place":
            await mock.set_level(1, "kafka-2.3")
        else:
            await mock.set_level(4, "kafka-2.3")
            mock.failover(4)
        await mock.settled()
        for broker_id in (1, 2, 3):
            assert told_of_foo(mock, broker_id, seen) == [(2, "absent")]
        for broker_id in (2, 3):
            with pytest.raises(ClusterError, match=TOO_OLD):
                mock.join_isr("foo-0", broker_id)
        assert mock.cluster.topics.partition("foo", 0).target == target
        assert '"targetReplicas":[2,3]' in mock.cluster.state.znodes[STATE]
        # And nobody can ask the old controller what is going on.
        controller = mock.cluster.state.controller_id
        async with connect(mock, controller) as wire:
            rows = {row.api_key: row for row in (await wire.ask("ApiVersions", 2)).api_keys}
            assert (45 in rows, 46 in rows, rows[4].max_version) == (False, False, 2)
            listing = mock.dialect.apis[46].request
            wire.send(wire.frame(listing(), 0))
            assert await wire.closed() == b""
        async with connect(mock, 2) as wire:
            rows = {row.api_key: row for row in (await wire.ask("ApiVersions", 2)).api_keys}
            assert (46 in rows, rows[4].max_version) == (True, 3)

        await mock.set_level(controller, "cluster")
        mock.join_isr("foo-0", 2)
        mock.join_isr("foo-0", 3)
        # The older draft's controllers have forgotten that 1 was to go.
        replicas = (1, 2, 3) if draft == "kip-455-old" else (2, 3)
        assert mock.cluster.topics.partition("foo", 0).replicas == replicas
        assert not mock.cluster.topics.partition("foo", 0).reassigning


async def test_released_brokers_of_any_age_follow() -> None:
    """Replicas are replicas from the start there; an old broker needs no field to see it."""
    async with talking(
        3, topics=["foo=1"], profile="kafka-2.4", clock="manual", broker_levels={3: "4=0-1"}
    ) as mock:
        assert alter(mock, [2, 3]) == 0
        await mock.settled()
        assert {row[0] for row in told_of_foo(mock, 3)} == {1}
        mock.join_isr("foo-0", 3)
        mock.join_isr("foo-0", 2)
        assert mock.cluster.topics.partition("foo", 0).replicas == (2, 3)


@pytest.mark.requirement("K455-64")
def test_auto_progress_passes_those_by_that_do_not_follow() -> None:
    old = Broker(3, apis=((4, 0, 2),))
    cluster = simulated_cluster(
        [Broker(1), Broker(2), old, Broker(4)], topics=["foo=1"], reassignment=NEW
    )
    cluster.auto_progress.set_interval(100)
    alter_cluster(cluster, [3, 4])
    cluster.turns.advance(1000)
    assert now(cluster) == ([1, 4], [1, 4], [3, 4])


@pytest.mark.requirement("K455-64")
def test_a_broker_that_was_down_when_it_all_began_is_told_when_it_comes() -> None:
    cluster = simulated_cluster(4, topics=["foo=1"], reassignment=NEW)
    Operations(cluster).stop_broker(4)
    alter_cluster(cluster, [4])
    since = len(cluster.log)
    Operations(cluster).start_broker(4)
    (request,) = changes(cluster, LeaderAndIsrSent, since)
    assert (request.to, request.target_replicas) == ((4,), (4,))
    joined(cluster, 4)
    assert now(cluster) == ([4], [4], None)


@pytest.mark.requirement("K455-64")
def test_a_topic_that_goes_leaves_nothing_behind() -> None:
    """Also what a broker was told that has stopped since, and is told nothing any more."""
    cluster = simulated_cluster(
        [Broker(1), Broker(2, apis=((4, 0, 2),))], topics=["foo=1"], reassignment=NEW
    )
    alter_cluster(cluster, [2])
    assert cluster.state.known_targets.by_replica == {(1, "foo", 0): True, (2, "foo", 0): False}
    Operations(cluster).stop_broker(2)
    (deleted,) = cluster.topics.delete([("foo", ZERO_UUID)])
    assert deleted.error_code == 0
    assert cluster.state.known_targets.by_replica == {}


async def test_connections_to_a_broker_do_not_outlive_its_software() -> None:
    async with (
        talking(
            2, topics=["foo=1"], profile="kafka-2.4", clock="manual", broker_levels={2: "4=0-1"}
        ) as mock,
        connect(mock, 2) as wire,
    ):
        await mock.settled()
        await mock.set_level(2, "cluster")
        assert await wire.closed() == b""
        mock.cluster.topics.add("bar=2")
        await mock.settled()
        assert [row[0] for row in said(heard(mock, 2)[-2])] == [4]
        assert not mock.journal.select(event="unsupported")


LEVELS = st.integers(0, 3)


@given(levels=st.tuples(LEVELS, LEVELS, LEVELS))
@pytest.mark.requirement("A-38")
def test_each_gets_the_highest_version_both_know(levels: tuple[int, int, int]) -> None:
    brokers = [Broker(i, apis=((4, 0, level),)) for i, level in enumerate(levels, 1)]
    cluster = simulated_cluster(brokers, cluster_id="c", topics=["foo=1"], reassignment=NEW)
    alter_cluster(cluster, [2, 3])
    sent = changes(cluster, LeaderAndIsrSent)[-1]
    assert dict(zip(sent.to, sent.versions, strict=True)) == {
        broker.broker_id: min(level, levels[0])
        for broker, level in zip(brokers, levels, strict=True)
    }
    for broker_id in (2, 3):
        follows = min(levels[0], levels[broker_id - 1]) == 3
        if follows:
            Operations(cluster).join_isr(FOO, broker_id)
        else:
            with pytest.raises(ClusterError, match="does not fetch"):
                Operations(cluster).join_isr(FOO, broker_id)
    replayed = replay("c", cluster.log)
    assert replayed.known_targets == cluster.state.known_targets
    assert replayed.topics == cluster.topics


def test_a_request_that_a_broker_lacks_is_not_sent() -> None:
    cluster = simulated_cluster([Broker(1), Broker(2, apis=((6, 0, -1),))], reassignment=NEW)
    greeting = changes(cluster, LiveBrokersSent)[0]
    assert (greeting.to, greeting.versions) == ((1, 2), (5, -1))


@pytest.mark.parametrize(
    ("level", "problem"),
    [
        ("kafka-2.33", "kafka-2.3"),
        ("4=1-2", "from version 0 on"),
        ("4=0-9", "at versions 0-3"),
        ("4", "or give versions"),
        ("4=x", "version range"),
        ("nope=0", "unknown API"),
    ],
)
async def test_a_level_that_cannot_be_is_refused(level: str, problem: str) -> None:
    async with talking(profile=NEW) as mock:
        before = len(mock.cluster.log)
        with pytest.raises(ClusterError, match=problem):
            await mock.set_level(2, level)
        assert len(mock.cluster.log) == before
        with pytest.raises(ClusterError, match="no broker 9"):
            await mock.set_level(9, "4=0-2")


def test_levels_of_brokers_that_there_are() -> None:
    with pytest.raises(ClusterError, match="no broker 9: its API versions cannot be set"):
        talking(profile=NEW, broker_levels={9: "4=0-2"})


async def test_a_level_is_a_release_too() -> None:
    """What that release has is served where the others have more; and that it has less is said."""
    async with talking(profile="kafka-2.4", clock="manual") as mock:
        await mock.set_level(2, "kafka-2.0")
        async with connect(mock, 2) as wire:
            rows = {row.api_key: row for row in (await wire.ask("ApiVersions", 0)).api_keys}
        assert 45 not in rows
        assert rows[4].max_version == 1
        await mock.set_level(2, {46: None, 45: Versions(0, 0)})
        async with connect(mock, 2) as wire:
            rows = {row.api_key: row for row in (await wire.ask("ApiVersions", 0)).api_keys}
            assert 45 in rows
            assert 46 not in rows
            wire.send(wire.frame(request_of("ListPartitionReassignments", topics=None), 0))
            assert await wire.closed() == b""
