"""The adapter of Kafka Streams: what its topology reads, writes and commits, what ends an instance,
and what it refuses to choose."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import pytest
import pytest_asyncio

from kspec.client_catalog import client
from kspec.runner.adapters import ProcessAdapter
from mockbroker import MockCluster
from mockbroker.simulation.operations.simulated import Operations
from tests.kspec.fixed_answers import raw_line
from tests.kspec.which import program

Call: TypeAlias = Callable[..., Awaitable[Any]]

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.asyncio(loop_scope="module")]

PRODUCER = {"acks": "all", "delivery_timeout_ms": 4000}
CONSUMER = {"group": "g", "offset_reset": "earliest", "max_wait_ms": 100}


@pytest_asyncio.fixture(loop_scope="module")
async def mock() -> AsyncIterator[MockCluster]:
    async with MockCluster(brokers=1, topics=["foo=1/1", "bar=1"]) as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def adapter() -> AsyncIterator[ProcessAdapter]:
    """One JVM for all tests, as a run has one for many cases."""
    started = await program(client("kafka-streams")).start()
    assert isinstance(started, ProcessAdapter)
    yield started
    await started.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def call(mock: MockCluster, adapter: ProcessAdapter) -> AsyncIterator[Call]:
    async def called(op: str, **members: Any) -> Any:
        if op == "connect":
            members = {"bootstrap": mock.bootstrap, "timeout_ms": 2000, "client_id": "c", **members}
        return await raw_line(adapter, op, **members)

    yield called
    await called("close")


async def test_a_topology_reads_writes_and_commits(mock: MockCluster, call: Call) -> None:
    Operations(mock.cluster).append("foo-0", "a")
    await call("connect", producer=PRODUCER, consumer=CONSUMER)
    assert (await call("subscribe", topics=["foo"]))["ok"]
    read = await call("poll", records=1, ms=14_000)
    assert [each["value"] for each in read["result"]] == ["a"]
    assert (await call("assignment"))["result"] == ["foo-0", "foo-1"]
    wanted = [
        {"topic": "bar", "partition": 0, "key": "k", "value": "b"},
        {"topic": "foo", "partition": 1, "value": "c"},
    ]
    written = await call("produce", records=wanted)
    assert written["result"] == [
        {"topic": "bar", "partition": 0, "offset": 0},
        {"topic": "foo", "partition": 1, "offset": 0},
    ]
    read = await call("poll", records=1, ms=14_000)
    assert [each["value"] for each in read["result"]] == ["c"]
    assert mock.committed("g") == {}
    assert await call("commit") == {"ok": True, "raw": "null", "result": None}
    assert mock.committed("g") == {("foo", 0): 1, ("foo", 1): 1}
    found = await call("committed", partitions=["foo-0", "foo-1"])
    assert found["result"] == {"foo-0": 1, "foo-1": 1}


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
async def test_records_are_processed_with_the_guarantee_that_was_chosen(
    mock: MockCluster, call: Call, guarantee: str
) -> None:
    Operations(mock.cluster).append("foo-0", "a")
    await call("connect", producer=PRODUCER, consumer=CONSUMER)
    assert (await call("process", **{"from": ["foo"], "to": "bar", "guarantee": guarantee}))["ok"]
    read = await call("poll", records=1, ms=14_000)
    assert [each["value"] for each in read["result"]] == ["a"]
    assert (await call("commit"))["ok"]
    assert mock.committed("g")["foo", 0] == 1
    apis = {each.api_key for each in mock.journal if each.direction == "request"}
    assert {0, 22} <= apis
    assert (28 in apis, 26 in apis) == ((guarantee == "exactly_once",) * 2)


async def test_an_instance_is_a_member_of_a_streams_group_if_the_case_says_so(call: Call) -> None:
    async with MockCluster(brokers=1, topics=["foo=1/1", "bar=1"], profile="kafka-4.4") as mock:
        Operations(mock.cluster).append("foo-0", "a")
        options = {"producer": PRODUCER, "consumer": {**CONSUMER, "protocol": "streams"}}
        await call("connect", bootstrap=mock.bootstrap, **options)
        chosen = {"from": ["foo"], "to": "bar", "guarantee": "exactly_once"}
        assert (await call("process", **chosen))["ok"]
        read = await call("poll", records=1, ms=14_000)
        assert [each["value"] for each in read["result"]] == ["a"]
        assert (await call("commit"))["ok"]
        assert mock.committed("g")["foo", 0] == 1
        group = mock.group("g")
        assert group.type == "streams"
        assert [each.assignment for each in group.members] == [(("0", 0), ("0", 1))]
        apis = {each.api_key for each in mock.journal if each.direction == "request"}
        assert 88 in apis
        assert not {11, 68} & apis


async def test_an_exception_ends_an_instance_and_is_told_once(
    mock: MockCluster, call: Call
) -> None:
    Operations(mock.cluster).append("foo-0", "a")
    mock.fault(api="FindCoordinator", error=30, times=1)
    await call("connect", producer=PRODUCER, consumer=CONSUMER)
    await call("subscribe", topics=["foo"])
    refused = await call("poll", records=1, ms=14_000)
    assert (refused["ok"], refused["records"]) == (False, [])
    causes = [refused, refused.get("cause", {})]
    assert "GroupAuthorizationException" in [each.get("error") for each in causes]
    read = await call("poll", records=1, ms=14_000)
    assert [each["value"] for each in read["result"]] == ["a"]


async def test_a_record_has_the_outcome_that_the_producer_gave_it(
    mock: MockCluster, call: Call
) -> None:
    mock.fault(api="Produce", topic="foo", partition=1, error=29, times=1)
    await call("connect", producer=PRODUCER)
    wanted = [{"topic": "foo", "partition": n, "value": "a"} for n in (0, 1, 2)]
    answer = await call("produce", records=wanted)
    errors = [each.get("error", each.get("offset")) for each in answer["result"]]
    assert errors == [0, "TopicAuthorizationException", "TimeoutException"]
    again = await call("produce", records=wanted[:2])
    assert [each.get("offset") for each in again["result"]] == [1, 0]


@pytest.mark.parametrize(
    ("options", "op", "members"),
    [
        ({"consumer": {**CONSUMER, "instance_id": "i"}}, "subscribe", {"topics": ["foo"]}),
        ({"consumer": {**CONSUMER, "assignors": ["range"]}}, "subscribe", {"topics": ["foo"]}),
        ({"consumer": {**CONSUMER, "protocol": "consumer"}}, "subscribe", {"topics": ["foo"]}),
        ({"consumer": {**CONSUMER, "max_poll_ms": 500}}, "subscribe", {"topics": ["foo"]}),
        (
            {"producer": {**PRODUCER, "transactional_id": "t"}},
            "produce",
            {"records": [{"topic": "foo", "value": "a"}]},
        ),
        ({}, "produce", {"records": [{"topic": "no-such-topic", "value": "a"}]}),
        ({}, "commit", {"offsets": {"foo-0": 1}}),
        ({}, "assign", {"offsets": {"foo-0": 0}}),
        ({}, "poll", {"records": 1, "ms": 100}),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
async def test_what_streams_leaves_no_choice_of_is_unsupported(
    call: Call, options: dict[str, Any], op: str, members: dict[str, Any]
) -> None:
    await call("connect", **options)
    assert set(await call(op, **members)) == {"unsupported"}
