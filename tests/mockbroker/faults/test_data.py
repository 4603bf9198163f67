"""Fault rules on the keys of the data plane: one partition, one group, damaged batches."""

from typing import Any

import pytest

from kproto.records import Record, RecordBatches, build_batch
from mockbroker import MockCluster
from mockbroker.errors import FaultError
from mockbroker.faults import Fault
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

BATCH = build_batch([Record(timestamp=0, value=b"x" * 30)])


def produce(mock: MockCluster, version: int) -> Any:
    partitions = [{"index": each, "records": BATCH} for each in (0, 1)]
    by = {"topic_id": mock.cluster.topics["foo"].topic_id} if version >= 13 else {"name": "foo"}
    return request_of(
        "Produce", acks=1, timeout_ms=1, topic_data={"partition_data": partitions, **(by)}
    )


def fetch(mock: MockCluster, version: int, **session: int) -> Any:
    partitions = [
        {"partition": each, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for each in (0, 1)
    ]
    by = {"topic_id": mock.cluster.topics["foo"].topic_id} if version >= 13 else {"topic": "foo"}
    topics = [{"partitions": partitions, **(by)}]
    return request_of(
        "Fetch", max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics, **session
    )


def list_offsets(mock: MockCluster, version: int) -> Any:
    partitions = [{"partition_index": each, "timestamp": -1} for each in (0, 1)]
    return request_of("ListOffsets", name="foo", partitions=partitions)


def commit(mock: MockCluster, version: int) -> Any:
    partitions = [{"partition_index": each, "committed_offset": 1} for each in (0, 1)]
    by = {"topic_id": mock.cluster.topics["foo"].topic_id} if version >= 10 else {"name": "foo"}
    topics = [{"partitions": partitions, **(by)}]
    return request_of("OffsetCommit", group_id="g", topics=topics)


def codes(response: Any) -> list[int]:
    """The error codes of both partitions, in the request's order."""
    (topic,) = response.topics if hasattr(response, "topics") else response.responses
    for name in ("partition_responses", "partitions"):
        if hasattr(topic, name):
            return [each.error_code for each in getattr(topic, name)]
    raise AssertionError(topic)


@pytest.mark.requirement("DP-CTL-58")
@pytest.mark.parametrize(
    ("make", "api", "version"),
    [(produce, 0, 9), (produce, 0, 13), (fetch, 1, 12), (fetch, 1, 16), (list_offsets, 2, 7),
     (commit, 8, 9), (commit, 8, 10)],
)  # fmt: skip
async def test_one_partition_fails_and_the_other_does_not(make, api, version):
    options = {"topics": ["foo:2:1"], "profile": "kafka-4.4"}
    async with MockCluster(1, **options) as mock, connect(mock) as wire:
        mock.set_offset("g", "foo-0", 0)
        rule = mock.fault(api=api, topic="fo*", partition=1, error="KAFKA_STORAGE_ERROR")
        assert codes(await wire.ask(make(mock, version), version)) == [0, 56]
        assert rule.hits == 1
        ends = [mock.cluster.logs.log(("foo", each)).end_offset for each in (0, 1)]
        assert ends == ([1, 0] if api == 0 else [0, 0])
        if api == 8:
            assert mock.committed("g") == {("foo", 0): 1}


@pytest.mark.requirement("DP-CTL-58")
@pytest.mark.parametrize("version", [9, 13])
async def test_offsets_and_records_beside_an_error_are_those_of_kafka(version: int) -> None:
    """A high watermark of 0 is the end of the log for librdkafka, which refuses null records."""
    options = {"topics": ["foo:2:1"], "profile": "kafka-4.4"}
    async with MockCluster(1, **options) as mock, connect(mock) as wire:
        mock.fault(topic="foo", error="KAFKA_STORAGE_ERROR")
        fetched = (await wire.ask(fetch(mock, version), version)).responses[0].partitions[1]
        assert (fetched.records, fetched.high_watermark) == (b"", -1)
        produced = (await wire.ask(produce(mock, version), version)).responses[0]
        assert produced.partition_responses[1].base_offset == -1


@pytest.mark.requirement("DP-CTL-58")
@pytest.mark.parametrize("version", [12, 16])
async def test_a_rule_takes_the_fetches_of_a_session_that_do_not_repeat_the_partition(version):
    options = {"topics": ["foo:2:1"], "profile": "kafka-4.4"}
    async with MockCluster(1, **options) as mock, connect(mock) as wire:
        opened = await wire.ask(fetch(mock, version, session_epoch=0), version)
        assert opened.session_id
        rule = mock.fault(api=1, topic="foo", partition=1, error=56, times=1)
        again = fetch(mock, version, session_id=opened.session_id, session_epoch=1)
        again.topics = []
        response = await wire.ask(again, version)
        assert rule.hits == 1
        (topic,) = response.responses
        assert [(each.partition_index, each.error_code) for each in topic.partitions] == [(1, 56)]
        assert (response.session_id, response.error_code) == (opened.session_id, 0)
        other = mock.fault(api=1, topic="bar", error=56)
        again.session_epoch = 2
        await wire.ask(again, version)
        assert other.hits == 0


@pytest.mark.requirement("DP-CTL-10")
@pytest.mark.parametrize(
    ("how", "problem"),
    [("bit", "crc"), ("crc", "crc"), ("count", "record"), ("short", "cut off"), ("codec", "")],
)
async def test_a_batch_is_damaged_for_one_answer_only(how: Any, problem: str) -> None:
    codec = "gzip" if how == "codec" else "none"
    async with MockCluster(1, topics=["foo:2:1"]) as mock, connect(mock) as wire:
        for partition in (0, 1):
            mock.produce("foo", value="x" * 50, partition=partition, codec=codec)
        mock.fault(api="Fetch", topic="foo", partition=1, corrupt=how, times=1)

        async def read() -> list[bytes]:
            response = await wire.ask(fetch(mock, 11), 11)
            return [bytes(each.records) for each in response.responses[0].partitions]

        good, bad = await read()
        assert len(list(RecordBatches(good))) == 1
        with pytest.raises(Exception, match=f"(?i){problem}"):
            [each.records() for each in RecordBatches(bad)]
        assert [await read()] * 2 == [[good, (await read())[1]]] * 2
        assert len(mock.records("foo")) == 2


async def test_damage_that_finds_nothing_is_noted() -> None:
    async with MockCluster(1, topics=["foo:2:1"]) as mock, connect(mock) as wire:
        mock.fault(api=1, corrupt="crc", times=1)
        await wire.ask(fetch(mock, 11), 11)
        mock.produce("foo", value="x", partition=0)
        mock.fault(api=1, corrupt="codec")
        await wire.ask(fetch(mock, 11), 11)
        notes = " | ".join(each.note or "" for each in mock.journal.newer(0))
        assert "the response has no records" in notes
        assert "the batch is not compressed" in notes
    with pytest.raises(FaultError, match="corrupt cannot be combined with disconnect after"):
        Fault(api=1, corrupt="crc", disconnect="after")
    with pytest.raises(FaultError, match="raw cannot be combined with corrupt"):
        Fault(api=1, corrupt="crc", raw="00")


@pytest.mark.requirement("DP-CTL-58")
@pytest.mark.parametrize(
    ("members", "request_of", "version", "hits"),
    [
        ({"group": "g*"}, request_of("Heartbeat", group_id="group", member_id="m"), 3, 1),
        ({"group": "h*"}, request_of("Heartbeat", group_id="group", member_id="m"), 3, 0),
        ({"member": "m"}, request_of("Heartbeat", group_id="g", member_id="m"), 3, 1),
        ({"member": "i"}, request_of("Heartbeat", member_id="m", group_instance_id="i"), 3, 1),
        ({"group": "g", "member": "n"}, request_of("Heartbeat", group_id="g", member_id="m"), 3, 0),
        ({"group": "g"}, request_of("FindCoordinator", key="g"), 1, 1),
        ({"group": "g"}, request_of("FindCoordinator", coordinator_keys=["f", "g"]), 4, 1),
        ({"group": "t"}, request_of("FindCoordinator", key="t", key_type=1), 1, 0),
        ({"transactional_id": "t"}, request_of("FindCoordinator", key="t", key_type=1), 1, 1),
        ({"transactional_id": "t"}, request_of("InitProducerId", transactional_id="t"), 3, 1),
        ({"producer_id": 7}, request_of("InitProducerId", producer_id=7), 3, 1),
        ({"producer_id": 8}, request_of("InitProducerId", producer_id=7), 3, 0),
    ],
)
async def test_rules_select_by_group_member_and_producer(members, request_of, version, hits):
    async with MockCluster(1) as mock, connect(mock) as wire:
        rule = mock.fault(error="UNKNOWN_SERVER_ERROR", error_at="top", **members)
        await wire.ask(request_of, version)
        assert rule.hits == hits


@pytest.mark.requirement("DP-CTL-58")
async def test_rules_select_the_producer_of_a_batch() -> None:
    async with MockCluster(1, topics=["foo:2:1"]) as mock, connect(mock) as wire:
        rule = mock.fault(api=0, producer_id=5, error=56)
        request = produce(mock, 9)
        assert codes(await wire.ask(request, 9)) == [0, 0]
        request.topic_data[0].partition_data[0].records = build_batch(
            [Record(timestamp=0, value=b"x")], producer_id=5, producer_epoch=0, base_sequence=0
        )
        assert codes(await wire.ask(request, 9)) == [56, 56]
        assert rule.hits == 1
