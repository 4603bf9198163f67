"""Produce and Fetch under the steps of a tester: what waits, what is answered, what is lost."""

import asyncio
import json
from typing import Any
from uuid import UUID

import pytest

from kproto.records import Record, build_batch
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from tests.mockbroker.control.test_control import controlled
from tests.mockbroker.wire import Wire, connect
from tests.support.requests import request_of

TP = "foo-0"


def produce(value: bytes = b"x", acks: int = -1) -> Any:
    partition = {"index": 0, "records": build_batch([Record(timestamp=0, value=value)])}
    topic = {"name": "foo", "partition_data": [partition]}
    return request_of("Produce", acks=acks, timeout_ms=30_000, topic_data=[topic])


def fetch(offset: int = 0, max_wait_ms: int = 30_000, **session: int) -> Any:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    topic = {"topic": "foo", "partitions": [partition]}
    return request_of(
        "Fetch", max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, topics=[topic], **session
    )


def first(response: Any) -> Any:
    topic = response.responses[0]
    return (topic.partition_responses if hasattr(topic, "partition_responses") else
            topic.partitions)[0]  # fmt: skip


async def until_appended(mock: MockCluster, count: int) -> None:
    """Wait until the request has reached the log; the answer is what is held."""
    async with asyncio.timeout(10):
        while len(mock.records("foo")) < count:
            await asyncio.sleep(0)


async def asked(wire: Wire, body: Any, version: int) -> asyncio.Task[Any]:
    return asyncio.create_task(wire.ask(body, version))


@pytest.mark.requirement("DP-CTL-01", "DP-CTL-02", "DP-CTL-03")
async def test_a_produce_waits_for_a_held_follower() -> None:
    async with MockCluster(topics=["foo=1,2,3"]) as mock, connect(mock) as wire:
        mock.hold_replication(TP, 2)
        waiting = await asked(wire, produce(), 9)
        await until_appended(mock, 1)
        assert not waiting.done()
        mock.replicate(TP, 2)
        answer = first(await waiting)
        assert (answer.error_code, answer.base_offset) == (0, 0)
        again = await asked(wire, produce(), 9)
        await until_appended(mock, 2)
        mock.release_replication(TP)
        assert first(await again).base_offset == 1


@pytest.mark.requirement("DP-CTL-07")
@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("partition", [TP, None])
async def test_an_answer_waits_although_the_records_are_appended(acks, partition):
    async with MockCluster(topics=["foo:2:1"]) as mock, connect(mock) as wire:
        mock.hold_produces(partition)
        waiting = await asked(wire, produce(acks=acks), 9)
        await until_appended(mock, 1)
        assert not waiting.done()
        mock.release_produces(partition)
        assert first(await waiting).error_code == 0
        assert first(await wire.ask(produce(acks=acks), 9)).base_offset == 1
    with pytest.raises(ClusterError, match="the answers for foo-0 are not held"):
        mock.release_produces(TP)


@pytest.mark.requirement("DP-CTL-07", "DP-PRODUCE-35")
async def test_a_topic_may_be_deleted_while_an_answer_is_held() -> None:
    async with MockCluster(topics=["foo=1,2"]) as mock, connect(mock) as wire:
        mock.hold_produces(TP)
        mock.hold_replication(TP)
        waiting = await asked(wire, produce(), 9)
        await until_appended(mock, 1)
        mock.cluster.topics.delete([("foo", UUID(int=0))])
        assert not waiting.done()
        mock.release_produces()
        assert first(await waiting).error_code == 3


async def test_other_partitions_are_answered_and_a_client_may_leave() -> None:
    async with MockCluster(topics=["foo:2:1"]) as mock:
        mock.hold_produces("foo-1")
        async with connect(mock) as wire:
            assert first(await wire.ask(produce(), 9)).error_code == 0
        mock.hold_produces(TP)
        async with connect(mock) as wire:
            wire.send(wire.frame(produce(), 9))
            await until_appended(mock, 2)
        async with asyncio.timeout(10):
            while mock.cluster.appender.holds.waiting:
                await asyncio.sleep(0.001)
        mock.release_produces()


@pytest.mark.requirement("DP-CTL-05", "DP-CTL-06")
async def test_fetches_see_nothing_while_they_are_held() -> None:
    async with MockCluster(topics=["foo:1:1"]) as mock, connect(mock) as wire:
        mock.produce("foo", value="one")
        mock.hold_fetches(TP)
        assert not first(await wire.ask(fetch(max_wait_ms=0), 11)).records
        waiting = await asked(wire, fetch(), 11)
        async with asyncio.timeout(10):
            while not mock.cluster.fetches.waiting():
                await asyncio.sleep(0)
        mock.complete_fetches(TP)
        assert not first(await waiting).records
        waiting = await asked(wire, fetch(), 11)
        mock.release_fetches(TP)
        assert b"one" in first(await waiting).records


@pytest.mark.requirement("DP-CTL-38")
async def test_a_session_that_a_broker_has_forgotten_is_an_error() -> None:
    async with MockCluster(topics=["foo:1:1"]) as mock, connect(mock) as wire:
        opened = await wire.ask(fetch(max_wait_ms=0, session_id=0, session_epoch=0), 11)
        assert opened.session_id
        mock.expire_fetch_session(1)
        again = fetch(max_wait_ms=0, session_id=opened.session_id, session_epoch=1)
        assert (await wire.ask(again, 11)).error_code == 70


@pytest.mark.requirement("DP-CTL-52")
@pytest.mark.parametrize("version", [11, 13])
async def test_the_control_port_shows_fetch_sessions(version: int) -> None:
    async with controlled(clock="manual") as (mock, client), connect(mock) as wire:
        assert await client.get("/sessions") == (200, [])
        body = fetch(max_wait_ms=0, session_id=0, session_epoch=0)
        body.topics[0].topic_id = mock.cluster.topics["foo"].topic_id
        opened = await wire.ask(body, version)
        assert (await client.get("/sessions"))[1] == [
            {"broker": 1, "session_id": opened.session_id, "epoch": 1, "from_replica": False,
             "created_ms": 0, "used_ms": 0, "partitions": ["foo-0"]}
        ]  # fmt: skip
        mock.expire_fetch_session(1)
        assert (await client.get("/sessions"))[1] == []


@pytest.mark.requirement("DP-CTL-13")
async def test_an_epoch_diverges_where_the_tester_says() -> None:
    async with MockCluster(topics=["foo:1:1"]) as mock, connect(mock) as wire:
        for value in ("one", "two", "three"):
            mock.produce("foo", value=value)
        mock.diverge(TP, 0, 1)
        request = fetch(offset=2, max_wait_ms=0)
        request.topics[0].partitions[0].last_fetched_epoch = 0
        request.topics[0].partitions[0].current_leader_epoch = 0
        found = first(await wire.ask(request, 12))
        assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (0, 1)
        assert not found.records


@pytest.mark.requirement("DP-CTL-17")
async def test_a_forgotten_producer_begins_anew() -> None:
    options = {"topics": ["foo:1:1"], "profile": "kafka-2.4"}
    async with MockCluster(**options) as mock, connect(mock) as wire:
        batch = build_batch(
            [Record(timestamp=0, value=b"x")], producer_id=5, producer_epoch=0, base_sequence=0
        )
        request = produce(acks=1)
        request.topic_data[0].partition_data[0].records = batch
        for offset in (0, 0):  # the second is a duplicate
            assert first(await wire.ask(request, 8)).base_offset == offset
        mock.forget_producer(TP, 5)
        assert first(await wire.ask(request, 8)).base_offset == 1


@pytest.mark.requirement("DP-CTL-09")
@pytest.mark.parametrize(
    ("appended", "following"),
    [({"producer_epoch": 1, "base_sequence": 2}, 3),  # the next one
     ({"producer_epoch": 1, "base_sequence": 1}, 2),  # repeats the last one
     ({"producer_epoch": 1, "base_sequence": 7}, 8),  # goes ahead
     ({"producer_epoch": 0, "base_sequence": 9}, 2)],  # of a fenced producer
)  # fmt: skip
async def test_a_producer_goes_on_after_a_tester_has_appended(appended, following):
    """Each record has a sequence of its own, so a producer that goes on elsewhere is refused."""
    async with MockCluster(topics=["foo:1:1"]) as mock, connect(mock) as wire:

        async def code_of(sequence: int) -> int:
            request = produce(acks=1)
            request.topic_data[0].partition_data[0].records = build_batch(
                [Record(timestamp=0, value=b"x")],
                producer_id=5, producer_epoch=1, base_sequence=sequence,
            )  # fmt: skip
            found: int = first(await wire.ask(request, 9)).error_code
            return found

        assert [await code_of(0), await code_of(1)] == [0, 0]
        given = {"records": [{"value": "tester"}], "producer_id": 5, **appended}
        mock.append(TP, json.dumps(given))
        assert [each.value for each in mock.records("foo")] == [b"x", b"x", b"tester"]
        assert await code_of(following + 1) == 45
        assert await code_of(following) == 0
        assert await code_of(following) == 0, "a duplicate"
        assert len(mock.records("foo")) == 4


@pytest.mark.requirement("DP-CTL-08")
async def test_a_rule_loses_the_answer_after_the_append() -> None:
    async with MockCluster(topics=["foo:1:1"]) as mock:
        mock.fault(api="Produce", disconnect="after", times=1)
        batch = build_batch(
            [Record(timestamp=0, value=b"x")], producer_id=5, producer_epoch=0, base_sequence=0
        )
        request = produce()
        request.topic_data[0].partition_data[0].records = batch
        async with connect(mock) as wire:
            wire.send(wire.frame(request, 9))
            assert await wire.closed() == b""
        assert len(mock.records("foo")) == 1
        async with connect(mock) as wire:
            answer = first(await wire.ask(request, 9))
            assert (answer.error_code, answer.base_offset) == (0, 0)
        assert len(mock.records("foo")) == 1


@pytest.mark.requirement("DP-CTL-26", "DP-CTL-27")
async def test_coordinators_move_and_load() -> None:
    leave = request_of("LeaveGroup", group_id="g", member_id="m")
    async with MockCluster(clock="manual") as mock:
        mock.load_coordinator("group", "g")
        name, index = mock.cluster.coordinators.partition_of(CoordinatorKind.GROUP, "g")
        old = mock.cluster.topics.partition(name, index).leader
        other = next(each for each in mock.cluster.topics.partition(name, index).isr if each != old)

        async def error(broker: int) -> int:
            async with connect(mock, broker) as wire:
                found: int = (await wire.ask(leave, 2)).error_code
                return found

        assert (await error(old), await error(other)) == (14, 16)
        mock.finish_loading("group", "g")
        assert await error(old) == 25
        mock.move_coordinator("group", "g", other)
        assert (await error(old), await error(other)) == (16, 25)
        with pytest.raises(
            ClusterError, match="must be one of group, transaction, share, not 'party'"
        ):
            mock.move_coordinator("party", "g", other)
