"""Brokers and controllers that come and go while there is something to say."""

import asyncio
import logging
from typing import Any

import pytest

from mockbroker import MockCluster
from mockbroker.errors import ClusterError, ControllerDiedError
from mockbroker.simulation.state.actions import LeaderAndIsrSent
from tests.mockbroker.simulation.brokers.inter_broker.heard import alter, heard, recorded, said
from tests.mockbroker.simulation.brokers.inter_broker.talking import talking
from tests.mockbroker.simulation.reassignment.walks import changes

PROFILES = pytest.mark.parametrize("profile", ["kafka-2.4", "kip-455-new"])


def arrived(mock: MockCluster, broker_id: int, after: int = 0) -> list[tuple[Any, ...]]:
    return [row for each in heard(mock, broker_id, after) for row in said(each)]


def last(mock: MockCluster) -> int:
    return heard(mock)[-1].sequence


@PROFILES
@pytest.mark.requirement("K455-36")
async def test_what_brokers_know_in_the_end_is_what_there_is(profile: str) -> None:
    async with talking(6, topics=["foo=1,2,3", "bar=1,2"], profile=profile, clock="manual") as mock:
        assert alter(mock, [4, 5, 6]) == 0
        for broker_id in (4, 5, 6):
            mock.join_isr("foo-0", broker_id)
        await mock.settled()
        partition = mock.cluster.topics.partition("foo", 0)
        assert partition.replicas == (4, 5, 6)
        for broker_id in range(1, 7):
            memory = mock.broker_knows(broker_id)
            assert (("foo", 0) in memory.replicas) == (broker_id in (4, 5, 6))
            known = memory.partitions["foo", 0]
            assert (known.leader, known.isr, known.replicas) == (
                partition.leader, partition.isr, (4, 5, 6),
            )  # fmt: skip
            assert sorted(memory.live_brokers) == [1, 2, 3, 4, 5, 6]
            assert (memory.controller_id, memory.controller_epoch) == (1, 1)
        hosted = mock.broker_knows(partition.leader).replicas["foo", 0]
        assert (hosted.replicas, hosted.leader) == ((4, 5, 6), partition.leader)


async def test_replicas_that_go_are_stopped_at_the_partitions_leader_epoch() -> None:
    async with talking(3, topics=["foo=1,2"], profile="kafka-2.6", clock="manual") as mock:
        assert alter(mock, [2, 3]) == 0
        mock.join_isr("foo-0", 3)
        await mock.settled()
        stops = [each.body.topic_states[0] for each in heard(mock, 1) if each.api_key == 5]
        epoch = mock.cluster.topics.partition("foo", 0).leader_epoch
        assert epoch > 0
        assert [
            (state.leader_epoch, state.delete_partition)
            for topic in stops
            for state in topic.partition_states
        ] == [(epoch, False), (epoch, True)]


async def test_only_what_is_new_is_called_so() -> None:
    async with talking(3, topics=["foo=1,2"], profile="kafka-2.4", clock="manual") as mock:
        mock.failover(2)
        await mock.settled()
        assert [row[6] for row in arrived(mock, 1) if row[1] == 4] == [True, False]


@pytest.mark.requirement("K455-36")
async def test_the_last_leader_and_isr_has_the_full_isr_on_the_wire() -> None:
    async with talking(6, topics=["foo=1,2,3"], profile="kip-455-new", clock="manual") as mock:
        assert alter(mock, [4, 5, 6]) == 0
        mock.join_isr("foo-0", 4)
        mock.join_isr("foo-0", 5)
        await mock.settled()
        seen = last(mock)
        mock.join_isr("foo-0", 6)
        await mock.settled()
        (row,) = [row for row in arrived(mock, 4, seen) if row[1] == 4]
        _, _, tp, (leader, epoch, isr, _), replicas, (target,), _ = row
        assert (tp, leader, epoch, isr) == (("foo", 0), 4, 2, (1, 2, 3, 4, 5, 6))
        assert (replicas, target) == ((4, 5, 6), None)
        hosted = mock.broker_knows(1).replicas
        assert ("foo", 0) not in hosted


@PROFILES
async def test_a_new_controller_introduces_itself_and_resends(profile: str) -> None:
    async with talking(4, topics=["foo=1,2", "bar=3"], profile=profile, clock="manual") as mock:
        assert alter(mock, [3, 4]) == 0
        await mock.settled()
        seen, since = last(mock), len(mock.cluster.log)
        mock.failover(2)
        await mock.settled()
        for broker_id in (1, 2, 3, 4):
            requests = heard(mock, broker_id, seen)
            assert {(each.client_id, each.body.controller_id) for each in requests} == {("2", 2)}
            assert {each.body.controller_epoch for each in requests} == {2}
            assert requests[0].correlation_id == 0
            # First who lives; a partition's state only after that.
            assert (requests[0].api_key, said(requests[0])) == (6, [])
            told = [row for row in arrived(mock, broker_id, seen) if row[1] == 4]
            assert ("foo", 0) in {row[2] for row in told}
            assert arrived(mock, broker_id, seen) == recorded(mock, broker_id, since)
            assert mock.broker_knows(broker_id).controller_epoch == 2


@PROFILES
async def test_a_broker_that_is_back_learns_everything_anew(profile: str) -> None:
    async with talking(
        3, topics=["foo=1,2,3", "bar=3,1", "baz=1"], profile=profile, clock="manual"
    ) as mock:
        await mock.settled()
        await mock.stop_broker(3)
        mock.cluster.topics.add("new=1,2")
        await mock.settled()
        seen, since = last(mock), len(mock.cluster.log)
        await mock.start_broker(3)
        await mock.settled()
        memory = mock.broker_knows(3)
        assert set(memory.replicas) == {("foo", 0), ("bar", 0)}
        assert {tp[0] for tp in memory.partitions} == {"foo", "bar", "baz", "new"}
        assert sorted(memory.live_brokers) == [1, 2, 3]
        assert arrived(mock, 3, seen) == recorded(mock, 3, since)
        assert mock.broker_knows(1).live_brokers.keys() == {1, 2, 3}
        epochs = {each.body.broker_epoch for each in heard(mock, 3, seen) if each.version >= 5}
        assert epochs == {mock.cluster.memories.epoch(3)}


@PROFILES
async def test_with_the_controller_stopped_its_successor_goes_on(profile: str) -> None:
    async with talking(3, topics=["foo=1,2,3"], profile=profile, clock="manual") as mock:
        await mock.settled()
        seen = last(mock)
        await mock.stop_broker(1)
        await mock.settled()
        assert {each.broker_id for each in heard(mock, after=seen)} == {2, 3}
        assert {each.body.controller_id for each in heard(mock, after=seen)} == {2}
        for broker_id in (2, 3):
            memory = mock.broker_knows(broker_id)
            assert (memory.partitions["foo", 0].leader, memory.replicas["foo", 0].leader) == (2, 2)
            assert sorted(memory.live_brokers) == [2, 3]
            updates = [each.body for each in heard(mock, broker_id, seen) if each.api_key == 6]
            state = updates[-1].topic_states[0].partition_states[0]
            assert (state.replicas, state.offline_replicas) == ([1, 2, 3], [1])


async def test_all_down_and_up_again() -> None:
    async with talking(2, topics=["foo=2"], profile="kafka-2.4", clock="manual") as mock:
        await mock.settled()
        await mock.stop_broker(1)
        await mock.stop_broker(2)
        await mock.start_broker(2)
        await mock.start_broker(1)
        await mock.settled()
        for broker_id in (1, 2):
            memory = mock.broker_knows(broker_id)
            assert (memory.controller_id, memory.controller_epoch) == (
                2,
                mock.cluster.state.controller_epoch,
            )
            assert memory.partitions["foo", 0].leader == 2


async def test_what_is_due_before_there_is_a_controller_again_is_its_first_word() -> None:
    async with talking(2, topics=["foo=1"], profile="kafka-2.4", clock="manual") as mock:
        await mock.settled()
        await mock.stop_broker(1)
        await mock.stop_broker(2)  # the controller by then
        seen, since = last(mock), len(mock.cluster.log)
        await mock.start_broker(1)
        await mock.settled()
        assert arrived(mock, 1, seen) == recorded(mock, 1, since)
        heads = {
            (each.body.controller_id, each.body.controller_epoch) for each in heard(mock, 1, seen)
        }
        assert heads == {(1, 3)}
        memory = mock.broker_knows(1)
        assert (memory.replicas["foo", 0].leader, memory.controller_epoch) == (1, 3)


async def test_a_controller_that_dies_in_the_midst_of_it() -> None:
    async with talking(4, topics=["foo=1,2,3"], profile="kip-455-new", clock="manual") as mock:
        await mock.settled()
        mock.kill_controller_after(2)
        with pytest.raises(ControllerDiedError):
            alter(mock, [4])
        await mock.settled()
        for broker_id in (2, 3, 4):
            assert (
                mock.broker_knows(broker_id).controller_id == mock.cluster.state.controller_id != 1
            )
        # As far as it came, it is on record, and the successor has said so.
        sent = [each for each in changes(mock.cluster, LeaderAndIsrSent) if 4 in each.to]
        assert [row[2] for row in arrived(mock, 4) if row[1] == 4] == [("foo", 0)] * len(sent)


async def test_topics_that_go_are_stopped_and_forgotten() -> None:
    async with talking(3, topics=["foo=1,2", "bar=2,3"], profile="kafka-3.4-zk") as mock:
        await mock.settled()
        seen = last(mock)
        name, topic_id = "foo", mock.cluster.topics["foo"].topic_id
        (result,) = mock.cluster.topics.delete([(None, topic_id)])
        assert result.error_code == 0
        await mock.settled()
        for broker_id in (1, 2, 3):
            requests = heard(mock, broker_id, seen)
            first, *rest = requests
            assert first.api_key == 6
            state = first.body.topic_states[0].partition_states[0]
            assert (state.leader, first.body.topic_states[0].topic_name) == (-2, name)
            assert first.body.topic_states[0].topic_id == topic_id
            stops = [(0, False), (0, True)] if broker_id in (1, 2) else []
            seen_stops = [
                (partition.partition_index, partition.delete_partition)
                for each in rest
                for partition in each.body.topic_states[0].partition_states
            ]
            assert (seen_stops, {each.api_key for each in rest} <= {5}) == (stops, True)
            assert set(mock.broker_knows(broker_id).partitions) == {("bar", 0)}
        assert mock.broker_knows(1).replicas == {}


async def test_clients_see_nothing_of_it() -> None:
    """Connections between brokers are no client's, and come to a listener apart."""
    async with talking(topics=["foo=1,2"], profile="kafka-2.4") as mock:
        await mock.settled()
        assert [mock.connections(broker_id) for broker_id in (1, 2, 3)] == [0, 0, 0]
        numbers = [each.connection_id for each in mock.journal.select(event="connected")]
        assert len(numbers) == len(set(numbers)) == 3


async def test_an_error_is_logged_and_sending_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async with talking(2, topics=["foo=1,2"], profile="kafka-2.4") as mock:
        mock.script(4, {"errorCode": 11, "partitionErrors": []})
        with caplog.at_level(logging.WARNING, logger="mockbroker"):
            await mock.settled()
        assert "LeaderAndIsrRequest v4 to broker 2: error STALE_CONTROLLER_EPOCH" in caplog.text
        assert ("foo", 0) in mock.broker_knows(2).partitions
        assert mock.broker_knows(2).replicas == {}


async def test_what_is_not_answered_is_named() -> None:
    async with talking(2, profile="kafka-2.4") as mock:
        never = asyncio.Event()

        async def wait() -> str:
            await never.wait()
            return "{}"

        @mock.on(6)
        def hold(call: object) -> object:
            return wait() if call.broker_id == 2 else None

        # On a slow machine the other may not have answered either, by then.
        with pytest.raises(ClusterError, match=r"within 0.2 s: (1, )?2$"):
            await mock.settled(0.2)


async def test_stopping_waits_for_nobody() -> None:
    mock = talking(3, topics=["foo=1,2,3"], profile="kafka-2.4")
    await mock.start()
    await mock.stop()
    await mock.stop()
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
