"""DeleteRecords: errors in order, where logs begin then, and waiting for replicas."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import LogStartMoved
from mockbroker.simulation.state.results import AclBinding
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulation.log.records import append_times
from tests.mockbroker.simulation.security.enforced import ENFORCED
from tests.mockbroker.wire import PATIENCE
from tests.support.requests import request_of

FOO = ("foo", 0)
HOUR = 3_600_000


def request(offset: int, topic: str = "foo", timeout_ms: int = HOUR) -> Any:
    partition = {"partition_index": 0, "offset": offset}
    return request_of("DeleteRecords", name=topic, partitions=[partition], timeout_ms=timeout_ms)


def result(response: Any) -> tuple[int, int]:
    """Return error code and low watermark."""
    (found,) = response.topics[0].partitions
    return found.error_code, found.low_watermark


def ask(cluster: Cluster, offset: int, topic: str = "foo", *, broker_id: int = 1) -> Any:
    return result(DirectBroker(cluster).ask(request(offset, topic), 2, broker_id=broker_id))


def filled() -> Cluster:
    """Offsets 0 to 4 in batches of two, two and one; the last is not replicated."""
    cluster = Cluster(2, topics=["foo=1,2", "__consumer_offsets=1,2"])
    append_times(cluster, 1, 1)
    append_times(cluster, 1, 1)
    return cluster


@pytest.mark.requirement("DP-DELREC-01", "DP-DELREC-02")
@pytest.mark.parametrize(
    ("offset", "answer", "start"),
    [
        (1, (0, 1), 1),
        (2, (0, 2), 2),
        (-1, (0, 4), 4),
        (4, (0, 4), 4),
        (5, (1, -1), 0),
        (-2, (1, -1), 0),
    ],
)
def test_the_log_begins_at_the_offset(offset: int, answer: tuple[int, int], start: int) -> None:
    cluster = filled()
    assert ask(cluster, offset) == answer
    assert cluster.logs.log(FOO).start_offset == start
    moves = [each.change for each in cluster.log if isinstance(each.change, LogStartMoved)]
    assert [each.after for each in moves] == ([start] if start else [])


@pytest.mark.requirement("DP-DELREC-02")
def test_the_start_never_falls() -> None:
    cluster = filled()
    assert [ask(cluster, each) for each in (3, 1, 0)] == [(0, 3)] * 3


@pytest.mark.requirement("DP-DELREC-05")
def test_a_partition_is_deleted_from_and_answered_once() -> None:
    cluster = filled()
    topics = [*request(1).topics, {"name": "nosuch", "partitions": []}, *request(3).topics]
    response = DirectBroker(cluster).ask("DeleteRecords", 2, timeout_ms=HOUR, topics=topics)
    assert [
        (topic.name, [row.low_watermark for row in topic.partitions]) for topic in response.topics
    ] == [("foo", [3])]


@pytest.mark.requirement("DP-DELREC-01")
def test_errors_in_order() -> None:
    cluster = filled()
    assert ask(cluster, 9, "nosuch") == (3, -1)
    assert ask(cluster, 9, "__consumer_offsets", broker_id=2) == (17, -1)
    assert ask(cluster, 9, broker_id=2) == (6, -1)
    policy = [("cleanup.policy", 0, "compact")]
    cluster.config_changes.alter_incrementally([(2, "foo", policy)])
    assert ask(cluster, 9) == (44, -1)
    cluster.config_changes.alter_incrementally(
        [(2, "foo", [("cleanup.policy", 0, "compact,delete")])]
    )
    assert ask(cluster, 9) == (1, -1)


@pytest.mark.requirement("DP-DELREC-01")
def test_deleting_needs_permission() -> None:
    cluster = filled()
    broker = DirectBroker(cluster, security=ENFORCED, principal="User:a")
    assert result(broker.ask(request(1), 2)) == (29, -1)
    assert result(broker.ask(request(1, "nosuch"), 2)) == (29, -1)
    delete = 6
    cluster.acls.create([AclBinding(2, "foo", 3, "User:a", "*", delete, 3)])
    assert result(broker.ask(request(1), 2)) == (0, 1)


class Waiting:
    """A deletion before offset 2 that waits for a replica that a tester holds."""

    def __init__(self, timeout_ms: int = HOUR) -> None:
        self.cluster = filled()
        self.cluster.logs.hold_replication(FOO, 2)
        self.broker = DirectBroker(self.cluster)
        frame = self.broker.codec.encode_request(
            request(2, timeout_ms=timeout_ms), api_version=2, correlation_id=1, client_id="test"
        )
        outcome = self.broker.send(frame)
        assert isinstance(outcome, Awaitable)
        self.task = asyncio.ensure_future(outcome)

    async def done(self) -> bool:
        for _ in range(3):
            await asyncio.sleep(0)
        return self.task.done()

    async def answer(self) -> tuple[int, int]:
        async with asyncio.timeout(PATIENCE):
            frame = await self.task
        assert isinstance(frame, bytes)
        assert all(data.log.watched == 0 for _, data in self.cluster.logs)
        _, response = self.broker.codec.decode_response(frame, api_key=21, api_version=2)
        return result(response)


@pytest.mark.requirement("DP-DELREC-03")
async def test_an_answer_waits_for_the_live_replicas() -> None:
    waiting = Waiting()
    assert not await waiting.done()
    assert waiting.cluster.logs.log(FOO).start_offset == 2
    waiting.cluster.logs.replicate(FOO, 2, 0)
    assert await waiting.answer() == (0, 2)


@pytest.mark.requirement("DP-DELREC-03")
async def test_stopped_replicas_do_not_count() -> None:
    waiting = Waiting()
    assert not await waiting.done()
    Operations(waiting.cluster).stop_broker(2)
    assert await waiting.answer() == (0, 2)


@pytest.mark.requirement("DP-DELREC-03")
async def test_a_replica_out_of_sync_counts() -> None:
    waiting = Waiting()
    waiting.cluster.logs.release_replication(FOO, 2)
    assert await waiting.answer() == (0, 2)
    Operations(waiting.cluster).leave_isr(FOO, 2)
    body = request(3, timeout_ms=0)
    frame = waiting.broker.codec.encode_request(
        body, api_version=2, correlation_id=1, client_id="test"
    )
    outcome = waiting.broker.send(frame)
    assert isinstance(outcome, Awaitable)
    waiting.task = asyncio.ensure_future(outcome)
    assert await waiting.answer() == (7, 2)


@pytest.mark.requirement("DP-DELREC-03")
async def test_the_time_out_ends_the_wait() -> None:
    waiting = Waiting(timeout_ms=1)
    assert await waiting.answer() == (7, 0)
    assert waiting.cluster.logs.log(FOO).start_offset == 2, "at the leader it is done"


@pytest.mark.requirement("DP-DELREC-03")
async def test_a_lost_leader_or_topic_ends_the_wait() -> None:
    waiting = Waiting()
    assert not await waiting.done()
    Operations(waiting.cluster).stop_broker(1)
    assert await waiting.answer() == (6, -1)
    waiting = Waiting()
    topic_id = waiting.cluster.topics["foo"].topic_id
    waiting.cluster.topics.delete([(None, topic_id)])
    assert await waiting.answer() == (3, -1)


@pytest.mark.requirement("DP-DELREC-04")
def test_what_a_log_derives_is_cut_with_it() -> None:
    cluster = filled()
    for stopped in (1, 2):
        Operations(cluster).stop_broker(stopped)
        Operations(cluster).start_broker(stopped)
        Operations(cluster).join_isr(FOO, stopped)
    append_times(cluster, 1)
    log = cluster.logs.log(FOO)
    assert [tuple(each) for each in log.epochs.starts] == [(0, 0), (2, 4)]
    assert ask(cluster, 3) == (0, 3)
    assert [tuple(each) for each in log.epochs.starts] == [(0, 3), (2, 4)]
    assert ask(cluster, -1) == (0, 5)
    assert [tuple(each) for each in log.epochs.starts] == [(2, 5)]
    assert log.start_offset <= log.last_stable_offset
