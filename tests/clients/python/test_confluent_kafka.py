"""The situations of ``../situations.txt`` with confluent-kafka (librdkafka)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mockbroker.pytest_plugin import MockKafkaFactory
from mockbroker.running.fixture import MockKafka
from tests.clients.python.reassignments import reassign
from tests.support.toolchain import require_module

kafka: Any = require_module("confluent_kafka")
admin_of: Any = require_module("confluent_kafka.admin")

pytestmark = [pytest.mark.slow, pytest.mark.mock_kafka(topics=["foo:1:3"])]

SECONDS = 60.0


def producer(mock: MockKafka, **options: Any) -> Any:
    return kafka.Producer(
        {
            "bootstrap.servers": mock.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "log_level": 0,
        }
        | {name.replace("_", "."): value for name, value in options.items()}
    )


def send(to: Any, value: str) -> None:
    failures: list[Any] = []
    to.produce("foo", value, on_delivery=lambda error, _: failures.append(error))
    assert to.flush(SECONDS) == 0
    assert failures == [None]


@pytest.fixture
def consumer(mock_kafka: MockKafka) -> Iterator[Callable[..., Any]]:
    """A function that makes a consumer of the group ``g``, which is closed with the test."""
    made = []

    def make(**options: Any) -> Any:
        own = {
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 100,
            "log_level": 0,
        }
        consumer = kafka.Consumer({"bootstrap.servers": mock_kafka.bootstrap} | own | options)
        consumer.subscribe(["foo"])
        made.append(consumer)
        return consumer

    yield make
    for each in made:
        each.close()


def read(of: Any, count: int) -> list[str]:
    messages: list[Any] = []
    while len(messages) < count:
        messages += of.consume(count - len(messages), 0.1)
    assert [each.error() for each in messages] == [None] * count
    return [each.value().decode() for each in messages]


def test_happy_path(mock_kafka: MockKafka, consumer: Callable[..., Any]) -> None:
    send(producer(mock_kafka), "a")
    assert read(consumer(), 1) == ["a"]
    mock_kafka.assert_produced("foo", value="a", times=1)


def test_lost_acknowledgement(mock_kafka: MockKafka) -> None:
    mock_kafka.fault(api="Produce", disconnect="after", times=1)
    send(producer(mock_kafka), "a")
    mock_kafka.assert_requested("Produce", times=2)
    mock_kafka.assert_produced("foo", value="a", times=1)


def test_fenced_producer(mock_kafka: MockKafka) -> None:
    first, second = (producer(mock_kafka, transactional_id="t") for _ in range(2))
    first.init_transactions(SECONDS)
    first.begin_transaction()
    send(first, "a")
    second.init_transactions(SECONDS)
    second.begin_transaction()
    send(second, "b")
    with pytest.raises(kafka.KafkaException) as raised:
        first.commit_transaction(SECONDS)
    assert raised.value.args[0].code() == kafka.KafkaError._FENCED
    second.commit_transaction(SECONDS)
    mock_kafka.wait_for_transaction("t", state="CompleteCommit")


def test_rebalance_in_mid_batch(mock_kafka: MockKafka, consumer: Callable[..., Any]) -> None:
    sender, receiver = producer(mock_kafka), consumer()
    send(sender, "a")
    assert read(receiver, 1) == ["a"]
    before = mock_kafka.wait_for_group("g", state="Stable", members=1).generation
    mock_kafka.rebalance("g")
    while mock_kafka.groups()["g"].generation == before:
        assert receiver.poll(0.1) is None  # members join again in poll
    send(sender, "b")
    assert read(receiver, 1) == ["b"]
    receiver.commit(asynchronous=False)
    mock_kafka.assert_committed("g", {"foo-0": 2})


def test_leader_change(mock_kafka: MockKafka) -> None:
    sender = producer(mock_kafka)
    send(sender, "a")
    leader = mock_kafka.requests("Produce")[0].broker
    mock_kafka.stop_broker(leader)
    send(sender, "b")
    assert mock_kafka.requests("Produce")[-1].broker != leader
    assert [each.value for each in mock_kafka.records("foo")] == [b"a", b"b"]


def test_coordinator_move(mock_kafka: MockKafka, consumer: Callable[..., Any]) -> None:
    sender, receiver = producer(mock_kafka), consumer()
    send(sender, "a")
    assert read(receiver, 1) == ["a"]
    receiver.commit(asynchronous=False)
    target = mock_kafka.requests("JoinGroup")[0].broker % 3 + 1
    mock_kafka.move_coordinator("group", "g", target)
    # As docs/how-to/producers-and-consumers.md says of librdkafka.
    mock_kafka.wait_for("Heartbeat", broker_id=target)
    send(sender, "b")
    assert read(receiver, 1) == ["b"]
    receiver.commit(asynchronous=False)
    mock_kafka.assert_committed("g", {"foo-0": 2})
    mock_kafka.assert_requested("OffsetCommit", broker_id=target)


def test_throttle(mock_kafka: MockKafka) -> None:
    mock_kafka.throttle_client("service", "200ms")
    sender = producer(mock_kafka, client_id="service")
    for value in ("a", "b"):
        send(sender, value)
    first, second = (each.entry.timestamp_ns for each in mock_kafka.requests("Produce"))
    assert second - first > 150e6


@pytest.mark.mock_kafka(topics=["foo:1:3"], apis={43: "off"})
def test_unsupported_version(mock_kafka: MockKafka) -> None:
    admin = admin_of.AdminClient({"bootstrap.servers": mock_kafka.bootstrap})
    elections = admin.elect_leaders(kafka.ElectionType.PREFERRED, [kafka.TopicPartition("foo", 0)])
    with pytest.raises(kafka.KafkaException) as raised:
        elections.result(SECONDS)
    assert raised.value.args[0].code() == kafka.KafkaError._UNSUPPORTED_FEATURE
    mock_kafka.assert_not_requested("ElectLeaders")


@pytest.mark.mock_kafka(topics=["foo:1:3"], profile="kafka-0.11.0")
def test_old_release(mock_kafka: MockKafka, consumer: Callable[..., Any]) -> None:
    send(producer(mock_kafka), "a")
    assert read(consumer(), 1) == ["a"]
    assert mock_kafka.requests("Produce").versions == [3]


@pytest.mark.mock_kafka(brokers=4, topics=["foo=1,2,3"])
def test_reassignment_watched(mock_kafka: MockKafka) -> None:
    admin = admin_of.AdminClient({"bootstrap.servers": mock_kafka.bootstrap})

    def replicas() -> list[int]:
        return list(admin.list_topics("foo", SECONDS).topics["foo"].partitions[0].replicas)

    reassign(mock_kafka, [2, 3, 4])
    assert sorted(replicas()) == [1, 2, 3, 4]
    mock_kafka.join_isr("foo-0", 4)
    assert replicas() == [2, 3, 4]


def test_poison_record(mock_kafka: MockKafka, consumer: Callable[..., Any]) -> None:
    send(producer(mock_kafka, compression_type="gzip"), "poison" * 100)
    mock_kafka.corrupt_batch("foo-0", 0, "codec")
    mock_kafka.produce("foo", value="good")
    receiver = consumer()
    (poison,) = receiver.consume(1, SECONDS)
    assert poison.error() is not None
    receiver.seek(kafka.TopicPartition("foo", 0, 1))
    assert read(receiver, 1) == ["good"]


def test_fifty_in_parallel(mock_kafka_factory: MockKafkaFactory) -> None:
    def run(_number: int) -> int:
        mock = mock_kafka_factory(topics=["foo:1:3"])
        send(producer(mock), "a")
        return len(mock.records("foo"))

    with ThreadPoolExecutor(50) as threads:
        assert list(threads.map(run, range(50))) == [1] * 50
