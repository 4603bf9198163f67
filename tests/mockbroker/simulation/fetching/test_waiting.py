"""Fetches that wait: what ends the wait, and that nothing of it is left."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kproto.error_codes import ErrorCode
from mockbroker import Broker, MockCluster
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.releases.release import ReleaseNumber
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.fetching.fetching import (
    FOO,
    append,
    begin,
    decoded,
    request,
    row,
    rows,
    values,
)
from tests.mockbroker.wire import PATIENCE, connect

HOUR = 3_600_000


class Waiting:
    """A fetch of foo-0 and bar-0 that has begun to wait for records."""

    def __init__(self, **fields: int) -> None:
        self.cluster = Cluster(3, topics=["foo=1,2", "bar=1,2"])
        self.broker = DirectBroker(self.cluster)
        self.fields = {"max_wait_ms": HOUR, **fields}

    async def start(self, foo: int = 0) -> None:
        outcome = begin(self.broker, request({FOO: foo, ("bar", 0): 0}, **self.fields))
        assert isinstance(outcome, Awaitable)
        self.task = asyncio.ensure_future(outcome)
        await self.settle()

    async def settle(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    async def done(self) -> bool:
        await self.settle()
        return self.task.done()

    async def answer(self) -> list[tuple[int, list[bytes | None]]]:
        async with asyncio.timeout(PATIENCE):
            frame = await self.task
        assert not self.cluster.fetches.waiting()
        assert self.watched == 0
        found = rows(decoded(self.broker, frame)).values()
        return [(each.error_code, values(each)) for each in found]

    @property
    def watched(self) -> int:
        return sum(data.log.watched for _, data in self.cluster.logs)


@pytest.mark.requirement("DP-FETCH-10")
@pytest.mark.parametrize(
    "fields", [{"max_wait_ms": 0}, {"min_bytes": 0}, {"offset": 1}, {"max_bytes": 0}]
)
async def test_some_fetches_are_answered_at_once(fields: dict[str, int]) -> None:
    cluster = Cluster(1, topics=["foo=1"])
    broker = DirectBroker(cluster)
    given = {"max_wait_ms": HOUR, **fields}
    assert isinstance(begin(broker, request({FOO: given.pop("offset", 0)}, **given)), bytes)
    assert isinstance(begin(broker, request({}, max_wait_ms=HOUR)), bytes)


@pytest.mark.requirement("DP-FETCH-11")
async def test_an_append_ends_the_wait() -> None:
    fetch = Waiting()
    await fetch.start()
    assert not await fetch.done()
    append(fetch.cluster, b"a", tp=("bar", 0))
    append(fetch.cluster, b"b")
    assert await fetch.answer() == [(0, [b"b"]), (0, [b"a"])], "read anew (DP-FETCH-12)"


@pytest.mark.requirement("DP-FETCH-10", "DP-FETCH-11")
async def test_bytes_of_all_partitions_count() -> None:
    fetch = Waiting(min_bytes=150)
    await fetch.start()
    append(fetch.cluster, b"a")
    append(fetch.cluster, b"b")
    assert not await fetch.done()
    append(fetch.cluster, b"c", tp=("bar", 0))
    assert await fetch.answer() == [(0, [b"a", b"b"]), (0, [b"c"])]


@pytest.mark.requirement("DP-FETCH-11", "DP-FETCH-14")
async def test_only_replicated_records_count() -> None:
    fetch = Waiting()
    await fetch.start()
    fetch.cluster.logs.hold_replication(FOO, 2)
    append(fetch.cluster, b"a")
    assert not await fetch.done()
    fetch.cluster.logs.release_replication(FOO, 2)
    assert await fetch.answer() == [(0, [b"a"]), (0, [])]


@pytest.mark.requirement("DP-FETCH-11")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda cluster: Operations(cluster).stop_broker(1), ErrorCode.NONE),
        (lambda cluster: cluster.topics.delete([(None, cluster.topics["foo"].topic_id)]), 3),
    ],
)
async def test_changes_end_the_wait(change: Callable[[Cluster], object], code: int) -> None:
    fetch = Waiting(min_bytes=1000)
    append(fetch.cluster, b"a")
    append(fetch.cluster, b"b")
    await fetch.start(1)
    assert not await fetch.done()
    change(fetch.cluster)
    if code == ErrorCode.NONE:
        # A follower serves clients of version 11 on.
        assert not await fetch.done()
        fetch.task.cancel()
        return
    (found, *_) = await fetch.answer()
    assert found == (code, [])


@pytest.mark.requirement("DP-FETCH-05", "DP-FETCH-11")
async def test_records_that_are_deleted_do_not_end_the_wait() -> None:
    """The records that end it show that the offset is out of range."""
    fetch = Waiting(min_bytes=1000)
    append(fetch.cluster, b"a")
    append(fetch.cluster, b"b")
    await fetch.start(1)
    fetch.cluster.logs.advance_start("test", FOO, 2)
    assert not await fetch.done()
    append(fetch.cluster, bytes(1000))
    (found, *_) = await fetch.answer()
    assert found == (1, [])


@pytest.mark.requirement("DP-FETCH-11")
async def test_a_newer_segment_ends_the_wait() -> None:
    fetch = Waiting(min_bytes=1000)
    append(fetch.cluster, b"a")
    await fetch.start()
    assert not await fetch.done()
    fetch.cluster.logs.log(FOO).roll(0)
    append(fetch.cluster, b"b")
    assert await fetch.answer() == [(0, [b"a"]), (0, [])]


@pytest.mark.requirement("DP-FETCH-11")
@pytest.mark.parametrize(("release", "waits"), [((3, 7), True), ((3, 8), False)])
async def test_an_offset_above_the_watermark_does_not_wait_since_3_8(release, waits):
    fetch = Waiting()
    fetch.cluster = simulated_cluster(2, topics=["foo=1,2", "bar=1,2"], release=release)
    fetch.broker = DirectBroker(fetch.cluster)
    fetch.cluster.logs.hold_replication(FOO, 2)
    append(fetch.cluster, b"a")
    await fetch.start(1)
    assert await fetch.done() is not waits
    if waits:
        fetch.cluster.fetches.complete_fetches()
    assert await fetch.answer() == [(0, []), (0, [])]


@pytest.mark.requirement("REL-27")
@pytest.mark.parametrize(("release", "waits"), [((2, 8, 2), True), ((3, 2, 3), False)])
async def test_a_redirection_waited_before_3_2(release: ReleaseNumber, waits: bool) -> None:
    configs = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    fetch = Waiting()
    fetch.cluster = simulated_cluster(
        [Broker(1, rack="x"), Broker(2, rack="y")], topics=["foo=1,2"],
        broker_configs=configs, release=release,
    )  # fmt: skip
    fetch.broker = DirectBroker(fetch.cluster)
    append(fetch.cluster, b"a")
    outcome = begin(fetch.broker, request({FOO: 0}, rack_id="y", max_wait_ms=HOUR, min_bytes=1), 11)
    if waits:
        assert isinstance(outcome, Awaitable)
        fetch.task = asyncio.ensure_future(outcome)
        append(fetch.cluster, b"b")
        assert not await fetch.done()
        fetch.cluster.fetches.complete_fetches()
        async with asyncio.timeout(PATIENCE):
            outcome = await fetch.task
    assert isinstance(outcome, bytes)
    found = row(decoded(fetch.broker, outcome, 11))
    assert (found.preferred_read_replica, values(found)) == (2, [])


@pytest.mark.requirement("DP-FETCH-12")
async def test_time_ends_the_wait() -> None:
    fetch = Waiting(max_wait_ms=1, min_bytes=1000)
    append(fetch.cluster, b"a")
    await fetch.start()
    assert await fetch.answer() == [(0, [b"a"]), (0, [])]


async def test_a_fetch_that_is_cancelled_leaves_nothing() -> None:
    fetch = Waiting()
    await fetch.start()
    assert (len(fetch.cluster.fetches.waiting()), fetch.watched) == (1, 2)
    fetch.task.cancel()
    await fetch.settle()
    assert (len(fetch.cluster.fetches.waiting()), fetch.watched) == (0, 0)


async def test_a_client_that_disconnects_leaves_nothing() -> None:
    async with MockCluster(1, topics=["foo=1"], profile="kafka-4.4") as mock:
        log = mock.cluster.logs.log(FOO)
        async with connect(mock) as wire, asyncio.timeout(PATIENCE):
            wire.send(wire.frame(request({FOO: 0}, max_wait_ms=HOUR), 12))
            while not log.watched:
                await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE):
            while log.watched:
                await asyncio.sleep(0)
        assert not mock.cluster.fetches.waiting()


@pytest.mark.requirement("DP-FETCH-13")
async def test_requests_behind_a_waiting_fetch_wait_too() -> None:
    async with (
        MockCluster(1, topics=["foo=1"], profile="kafka-4.4") as mock,
        connect(mock) as wire,
        connect(mock) as other,
    ):
        wire.send(wire.frame(request({FOO: 0}, max_wait_ms=HOUR), 12))
        wire.send(wire.frame(request({FOO: 0}), 12))
        assert row(await other.ask(request({FOO: 0}), 12)).records == b""
        append(mock.cluster, b"a")
        for _ in range(2):
            _, body = mock.dialect.decode_response(await wire.receive(), api_key=1, api_version=12)
            assert values(row(body)) == [b"a"]


@pytest.mark.requirement("DP-CTL-05", "DP-CTL-06")
async def test_a_tester_holds_and_completes_fetches() -> None:
    fetch = Waiting()
    fetches = fetch.cluster.fetches
    fetches.hold_fetches(FOO)
    append(fetch.cluster, b"a")
    await fetch.start()
    assert not await fetch.done()
    assert fetches.complete_fetches(("bar", 0)) == 1
    assert await fetch.answer() == [(0, []), (0, [])]
    await fetch.start()
    fetches.release_fetches()
    assert await fetch.answer() == [(0, [b"a"]), (0, [])]
    fetches.hold_fetches(None)
    await fetch.start()
    append(fetch.cluster, b"b", tp=("bar", 0))
    assert not await fetch.done()
    assert fetches.complete_fetches() == 1
    assert await fetch.answer() == [(0, []), (0, [])]
