"""Released consumers against a mock cluster: assign, seek, poll, sessions, waits, truncation."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kproto.records import Compression
from mockbroker import MockCluster
from mockbroker.simulation.state.cluster_parts import Broker
from tests.mockbroker.simulation.fetching.fetching import FOO, append
from tests.support.toolchain import require_module
from tests.support.waiting import in_thread

BAR = ("foo", 1)


def filled(mock: MockCluster) -> None:
    """``foo-0`` has the values 0 to 9 in batches of two, ``foo-1`` one compressed batch."""
    for number in range(0, 10, 2):
        append(mock.cluster, b"%d" % number, b"%d" % (number + 1))
    append(mock.cluster, b"a", b"b", tp=BAR, compression=Compression.GZIP)


# ---- kafka-python --------------------------------------------------------------------------------


@contextmanager
def kafka_python(mock: MockCluster, **settings: Any) -> Iterator[Any]:
    kafka = require_module("kafka")
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=mock.bootstrap, enable_auto_commit=False, group_id=None, **settings
    )
    try:
        yield consumer
    finally:
        consumer.close()


def polled(consumer: Any, count: int) -> list[tuple[int, int, bytes]]:
    """As many records as partition, offset and value."""
    found: list[tuple[int, int, bytes]] = []
    while len(found) < count:
        for records in consumer.poll(timeout_ms=1000).values():
            found += [(each.partition, each.offset, each.value) for each in records]
    return sorted(found)


@pytest.mark.slow
@pytest.mark.requirement("DP-FETCH-06", "DP-FETCH-11", "DP-SESSION-07")
async def test_kafka_python_reads_from_where_it_wants() -> None:
    kafka = require_module("kafka")
    foo, bar = (kafka.TopicPartition(*tp) for tp in (FOO, BAR))
    async with MockCluster(2, topics=["foo=1,2/2,1"]) as mock:
        filled(mock)

        def consume() -> list[list[tuple[int, int, bytes]]]:
            with kafka_python(mock, auto_offset_reset="earliest") as consumer:
                consumer.assign([foo, bar])
                everything = polled(consumer, 12)
                consumer.seek(foo, 7)
                later = polled(consumer, 3)
                consumer.seek_to_end(foo)
                consumer.seek_to_beginning(bar)
                again = polled(consumer, 2)
                assert consumer.position(foo) == 10
                return [everything, later, again]

        everything, later, again = await in_thread(consume)
        assert everything == [
            *((0, number, b"%d" % number) for number in range(10)),
            (1, 0, b"a"),
            (1, 1, b"b"),
        ]
        assert later == [(0, number, b"%d" % number) for number in (7, 8, 9)]
        assert again == [(1, 0, b"a"), (1, 1, b"b")]


@pytest.mark.requirement("DP-FETCH-11")
async def test_kafka_python_is_woken_by_an_append() -> None:
    kafka = require_module("kafka")
    async with MockCluster(1, topics=["foo=1"]) as mock:
        log = mock.cluster.logs.log(FOO)

        def consume() -> list[tuple[int, int, bytes]]:
            hour = 3_600_000
            with kafka_python(
                mock,
                auto_offset_reset="earliest",
                fetch_max_wait_ms=hour,
                request_timeout_ms=2 * hour,
                connections_max_idle_ms=3 * hour,
            ) as consumer:
                consumer.assign([kafka.TopicPartition(*FOO)])
                return polled(consumer, 1)

        consuming = asyncio.ensure_future(in_thread(consume))
        while not log.watched:
            await asyncio.sleep(0.01)
        append(mock.cluster, b"late")
        assert await consuming == [(0, 0, b"late")]


@pytest.mark.parametrize("profile", ["kafka-0.10.2", "kafka-0.11.0", "kafka-2.4", "kafka-3.9"])
async def test_kafka_python_reads_from_older_brokers(profile: str) -> None:
    kafka = require_module("kafka")
    async with MockCluster(1, topics=["foo=1"], profile=profile) as mock:
        append(mock.cluster, b"a", b"b")

        def consume() -> list[tuple[int, int, bytes]]:
            with kafka_python(mock, auto_offset_reset="earliest") as consumer:
                consumer.assign([kafka.TopicPartition(*FOO)])
                return polled(consumer, 2)

        assert await in_thread(consume) == [(0, 0, b"a"), (0, 1, b"b")]


# ---- confluent-kafka (librdkafka) ----------------------------------------------------------------


@contextmanager
def confluent(mock: MockCluster, **settings: Any) -> Iterator[Any]:
    confluent_kafka = require_module("confluent_kafka")
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": mock.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def consumed(consumer: Any, count: int) -> list[tuple[int, int, bytes]]:
    found: list[tuple[int, int, bytes]] = []
    while len(found) < count:
        message = consumer.poll(1)
        if message is not None:
            assert message.error() is None, message.error()
            found.append((message.partition(), message.offset(), message.value()))
    return sorted(found)


@pytest.mark.slow
@pytest.mark.requirement("DP-FETCH-06", "DP-SESSION-07")
async def test_librdkafka_reads_from_where_it_wants() -> None:
    module = require_module("confluent_kafka")
    async with MockCluster(2, topics=["foo=1,2/2,1"]) as mock:
        filled(mock)

        def consume() -> list[list[tuple[int, int, bytes]]]:
            with confluent(mock) as consumer:
                beginning = module.OFFSET_BEGINNING
                consumer.assign(
                    [module.TopicPartition(name, index, beginning) for name, index in (FOO, BAR)]
                )
                everything = consumed(consumer, 12)
                consumer.seek(module.TopicPartition("foo", 0, 7))
                return [everything, consumed(consumer, 3)]

        everything, later = await in_thread(consume)
        assert len(everything) == 12
        assert later == [(0, number, b"%d" % number) for number in (7, 8, 9)]


@pytest.mark.requirement("DP-FETCH-17", "DP-FETCH-18")
async def test_librdkafka_reads_from_the_replica_in_its_rack() -> None:
    module = require_module("confluent_kafka")
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    async with MockCluster(
        [Broker(1, rack="x"), Broker(2, rack="y")],
        topics=["foo=1,2"],
        broker_configs={"replica.selector.class": selector},
    ) as mock:
        append(mock.cluster, b"a")

        def consume() -> list[tuple[int, int, bytes]]:
            with confluent(mock, client_rack="y") as consumer:
                consumer.assign([module.TopicPartition("foo", 0, 0)])
                return consumed(consumer, 1)

        assert await in_thread(consume) == [(0, 0, b"a")]
        asked = [each.broker_id for each in mock.journal.select(api=1, direction="request")]
        assert asked[0] == 1
        assert 2 in asked
