"""The situations of ``../situations.txt`` with aiokafka, on a cluster in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from mockbroker.pytest_plugin import MockKafkaFactory
from mockbroker.running.fixture import MockKafka
from tests.clients.python.reassignments import reassign
from tests.support.toolchain import require_module

aiokafka: Any = require_module("aiokafka")
administration: Any = require_module("aiokafka.admin")
errors: Any = require_module("aiokafka.errors")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.asyncio,
    pytest.mark.mock_kafka(topics=["foo:1:3"]),
]

Make = Callable[..., Any]


@pytest_asyncio.fixture
async def start(mock_kafka: MockKafka) -> AsyncIterator[Make]:
    """A function that starts a client of a class of aiokafka, which stops with the test."""
    started = []

    async def start(kind: str, *topics: str, on: MockKafka = mock_kafka, **options: Any) -> Any:
        made = getattr(aiokafka, kind)(*topics, bootstrap_servers=on.bootstrap, **options)
        started.append(made)
        await made.start()
        return made

    yield start
    for each in reversed(started):
        await each.stop()


@pytest_asyncio.fixture
async def sender(start: Make) -> Any:
    return await start("AIOKafkaProducer", enable_idempotence=True)


async def send(to: Any, value: str) -> None:
    await to.send_and_wait("foo", value.encode())


async def receiver(start: Make, **options: Any) -> Any:
    own = {"group_id": "g", "auto_offset_reset": "earliest", "heartbeat_interval_ms": 100}
    return await start("AIOKafkaConsumer", "foo", **{**own, **options})


async def read(of: Any) -> str:
    value: bytes = (await of.getone()).value
    return value.decode()


async def test_happy_path(mock_kafka: MockKafka, start: Make, sender: Any) -> None:
    await send(sender, "a")
    assert await read(await receiver(start)) == "a"
    mock_kafka.assert_produced("foo", value="a", times=1)


async def test_lost_acknowledgement(mock_kafka: MockKafka, sender: Any) -> None:
    mock_kafka.fault(api="Produce", disconnect="after", times=1)
    await send(sender, "a")
    mock_kafka.assert_requested("Produce", times=2)
    mock_kafka.assert_produced("foo", value="a", times=1)


async def test_fenced_producer(mock_kafka: MockKafka, start: Make) -> None:
    first = await start("AIOKafkaProducer", transactional_id="t")
    await first.begin_transaction()
    await send(first, "a")
    second = await start("AIOKafkaProducer", transactional_id="t")
    await second.begin_transaction()
    await send(second, "b")
    with pytest.raises(errors.ProducerFenced):
        await first.commit_transaction()
    await second.commit_transaction()
    await mock_kafka.aio.wait_for_transaction("t", state="CompleteCommit")


async def test_rebalance_in_mid_batch(mock_kafka: MockKafka, start: Make, sender: Any) -> None:
    consumer = await receiver(start)
    await send(sender, "a")
    assert await read(consumer) == "a"
    before = mock_kafka.groups()["g"].generation
    mock_kafka.rebalance("g")
    while mock_kafka.groups()["g"].generation == before:
        await asyncio.sleep(0.02)
    await send(sender, "b")
    assert await read(consumer) == "b"
    await consumer.commit()
    mock_kafka.assert_committed("g", {"foo-0": 2})


async def test_leader_change(mock_kafka: MockKafka, sender: Any) -> None:
    await send(sender, "a")
    leader = mock_kafka.requests("Produce")[0].broker
    mock_kafka.stop_broker(leader)
    await send(sender, "b")
    assert mock_kafka.requests("Produce")[-1].broker != leader
    assert [each.value for each in mock_kafka.records("foo")] == [b"a", b"b"]


async def test_coordinator_move(mock_kafka: MockKafka, start: Make, sender: Any) -> None:
    consumer = await receiver(start)
    await send(sender, "a")
    assert await read(consumer) == "a"
    await consumer.commit()
    target = mock_kafka.requests("JoinGroup")[0].broker % 3 + 1
    mock_kafka.move_coordinator("group", "g", target)
    await send(sender, "b")
    assert await read(consumer) == "b"
    await consumer.commit()
    mock_kafka.assert_committed("g", {"foo-0": 2})
    mock_kafka.assert_requested("OffsetCommit", broker_id=target)


async def test_throttle(mock_kafka: MockKafka, start: Make) -> None:
    mock_kafka.throttle_client("service", "200ms")
    producer = await start("AIOKafkaProducer", client_id="service")
    for value in ("a", "b"):
        await send(producer, value)
    first, second = (each.entry.timestamp_ns for each in mock_kafka.requests("Produce"))
    assert second - first > 150e6


@pytest.mark.mock_kafka(topics=["foo:1:3"], apis={22: "off"})
async def test_unsupported_version(mock_kafka: MockKafka, start: Make) -> None:
    with pytest.raises(errors.IncompatibleBrokerVersion):
        await start("AIOKafkaProducer", enable_idempotence=True)
    mock_kafka.assert_not_requested("InitProducerId")


@pytest.mark.mock_kafka(topics=["foo:1:3"], profile="kafka-0.11.0")
async def test_old_release(mock_kafka: MockKafka, start: Make, sender: Any) -> None:
    await send(sender, "a")
    assert await read(await receiver(start)) == "a"
    assert mock_kafka.requests("Produce").versions == [3]


@pytest.mark.mock_kafka(brokers=4, topics=["foo=1,2,3"])
async def test_reassignment_watched(mock_kafka: MockKafka) -> None:
    admin = administration.AIOKafkaAdminClient(bootstrap_servers=mock_kafka.bootstrap)
    await admin.start()

    async def replicas() -> list[int]:
        (topic,) = await admin.describe_topics(["foo"])
        return list(topic["partitions"][0]["replicas"])

    await asyncio.to_thread(reassign, mock_kafka, [2, 3, 4])
    assert sorted(await replicas()) == [1, 2, 3, 4]
    mock_kafka.join_isr("foo-0", 4)
    assert await replicas() == [2, 3, 4]
    await admin.close()


async def test_poison_record(mock_kafka: MockKafka, start: Make) -> None:
    compressing = await start("AIOKafkaProducer", compression_type="gzip")
    await send(compressing, "poison" * 100)
    mock_kafka.corrupt_batch("foo-0", 0, "crc")
    mock_kafka.produce("foo", value="good")
    consumer = await receiver(start)
    with pytest.raises(errors.CorruptRecordException):
        await read(consumer)
    consumer.seek(aiokafka.TopicPartition("foo", 0), 1)
    assert await read(consumer) == "good"


async def test_fifty_in_parallel(mock_kafka_factory: MockKafkaFactory, start: Make) -> None:
    async def run() -> int:
        mock = await asyncio.to_thread(mock_kafka_factory, topics=["foo:1:3"])
        await send(await start("AIOKafkaProducer", on=mock), "a")
        return len(mock.records("foo"))

    assert await asyncio.gather(*(run() for _ in range(50))) == [1] * 50
