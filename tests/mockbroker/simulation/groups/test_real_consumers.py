"""Released consumers in groups: partitions are shared, handed over, and read from where the group
committed."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from mockbroker import MockCluster
from tests.mockbroker.simulation.fetching.fetching import append
from tests.support.toolchain import require_module

pytestmark = pytest.mark.slow

SECONDS = 240
PROFILES = ["kafka-0.10.2", "kafka-1.1", "kafka-2.4", "kafka-3.9", "kafka-4.4"]
Assigned = dict[str, frozenset[int]]


def cluster(profile: str, brokers: int = 1, **configs: str) -> MockCluster:
    replicas = ",".join(str(1 + each) for each in range(brokers))
    return MockCluster(
        brokers,
        topics=[f"foo={replicas}/{replicas}"],
        profile=profile,
        broker_configs={name.replace("_", "."): value for name, value in configs.items()},
    )


def filled(mock: MockCluster) -> None:
    for index in (0, 1):
        append(mock.cluster, b"1", b"2", tp=("foo", index))


class Consumers:
    """Consumers in threads of their own: a client stays in its group only while it polls."""

    def __init__(self) -> None:
        self.assigned: Assigned = {}
        self.read: list[tuple[int, int]] = []
        """(partition, offset) of all records."""
        self.stopping: dict[str, threading.Event] = {}
        self._pool = ThreadPoolExecutor(4)
        self._running: dict[str, Any] = {}

    def start(self, name: str, run: Callable[[str], None]) -> None:
        self.stopping[name] = threading.Event()
        self._running[name] = self._pool.submit(run, name)

    def note(self, name: str, partitions: set[int], records: list[tuple[int, int]]) -> bool:
        """Note what a poll brought. Returns whether the consumer goes on."""
        self.assigned[name] = frozenset(partitions)
        self.read += records
        return not self.stopping[name].is_set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS):
            while not holds():
                for running in self._running.values():
                    if running.done():
                        running.result()
                await asyncio.sleep(0.01)

    async def stop(self, name: str) -> None:
        self.stopping[name].set()
        await asyncio.wait_for(asyncio.wrap_future(self._running.pop(name)), SECONDS)
        self.assigned.pop(name, None)

    def shared(self) -> bool:
        """Whether each of two consumers has one of the two partitions."""
        return sorted(map(sorted, self.assigned.values())) == [[0], [1]]


@contextmanager
def consumers() -> Iterator[Consumers]:
    running = Consumers()
    try:
        yield running
    finally:
        for each in running.stopping.values():
            each.set()
        running._pool.shutdown()


def kafka_python(mock: MockCluster, all_of_them: Consumers) -> Callable[[str], None]:
    kafka = require_module("kafka")

    def run(name: str) -> None:
        consumer = kafka.KafkaConsumer(
            "foo",
            bootstrap_servers=mock.bootstrap,
            group_id="g",
            # A poll that ends cancels a refresh of metadata, and a leader without metadata assigns
            # nothing until the next refresh.
            metadata_max_age_ms=1000,
            client_id=name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=50,
            session_timeout_ms=10_000,
        )
        try:
            going = True
            while going:
                batches = consumer.poll(timeout_ms=200)
                records = [(r.partition, r.offset) for each in batches.values() for r in each]
                if records:
                    consumer.commit()
                going = all_of_them.note(
                    name, {tp.partition for tp in consumer.assignment()}, records
                )
        finally:
            consumer.close()

    return run


CLASSIC = {
    "heartbeat.interval.ms": 50,
    "session.timeout.ms": 10_000,
    "partition.assignment.strategy": "cooperative-sticky",
}


def confluent(
    mock: MockCluster,
    all_of_them: Consumers,
    topic: str = "foo",
    options: Mapping[str, object] = MappingProxyType(CLASSIC),
) -> Callable[[str], None]:
    confluent_kafka = require_module("confluent_kafka")

    def run(name: str) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": mock.bootstrap,
                "group.id": "g",
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **options,
            }
        )
        consumer.subscribe([topic])
        try:
            going = True
            while going:
                message = consumer.poll(0.05)
                records = []
                if message is not None and message.error() is None:
                    records = [(message.partition(), message.offset())]
                    consumer.commit(message, asynchronous=False)
                going = all_of_them.note(
                    name, {each.partition for each in consumer.assignment()}, records
                )
        finally:
            consumer.close()

    return run


@pytest.mark.requirement("DP-GROUP-09", "DP-SYNC-07", "DP-BEAT-04", "DP-LEAVE-01", "DP-OFFSET-08")
@pytest.mark.parametrize(
    ("client", "profile"),
    [(kafka_python, each) for each in PROFILES]
    + [(confluent, each) for each in ("kafka-2.4", "kafka-3.9", "kafka-4.4")],
)
async def test_two_consumers_share_partitions_and_hand_them_over(client, profile):
    async with cluster(profile) as mock:
        filled(mock)
        with consumers() as all_of_them:
            run = client(mock, all_of_them)
            all_of_them.start("one", run)
            await all_of_them.until(lambda: all_of_them.assigned.get("one") == frozenset({0, 1}))
            await all_of_them.until(lambda: len(all_of_them.read) == 4)
            all_of_them.start("two", run)
            await all_of_them.until(all_of_them.shared)
            for index in (0, 1):
                append(mock.cluster, b"3", tp=("foo", index))
            await all_of_them.until(lambda: len(all_of_them.read) == 6)
            await all_of_them.stop("one")
            await all_of_them.until(lambda: all_of_them.assigned["two"] == frozenset({0, 1}))
            append(mock.cluster, b"4")
            await all_of_them.until(lambda: len(all_of_them.read) == 7)
            await all_of_them.stop("two")
            # Every record was read once: the group went on from where it had committed.
            assert sorted(all_of_them.read) == [
                (0, 0),
                (0, 1),
                (0, 2),
                (0, 3),
                (1, 0),
                (1, 1),
                (1, 2),
            ]
        group = mock.cluster.groups.group("g")
        assert group is not None
        assert (group.state, group.members) == ("Empty", {})
        assert not mock.journal.select(event="failed")


@pytest.mark.requirement("DP-CGH-17", "DP-CGH-20", "DP-RECON-07", "DP-MIGRATE-06")
@pytest.mark.parametrize("topic", ["foo", "^f.*"])
@pytest.mark.parametrize("profile", ["kafka-4.0", "kafka-4.4"])
async def test_consumers_of_the_consumer_protocol(profile: str, topic: str) -> None:
    configs = {"group_consumer_heartbeat_interval_ms": "50"}
    async with cluster(profile, **configs) as mock:
        filled(mock)
        with consumers() as all_of_them:
            run = confluent(mock, all_of_them, topic, {"group.protocol": "consumer"})
            all_of_them.start("one", run)
            await all_of_them.until(lambda: len(all_of_them.read) == 4)
            all_of_them.start("two", run)
            await all_of_them.until(all_of_them.shared)
            append(mock.cluster, b"3", tp=("foo", 1))
            await all_of_them.until(lambda: len(all_of_them.read) == 5)
            await all_of_them.stop("one")
            await all_of_them.until(lambda: all_of_them.assigned["two"] == frozenset({0, 1}))
            await all_of_them.stop("two")
            # librdkafka does not wait until its last heartbeat, with which it leaves, is answered.
            await all_of_them.until(lambda: mock.group("g").state == "Empty")
            assert sorted(all_of_them.read) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
        view = mock.group("g")
        assert (view.type, view.state, view.members) == ("consumer", "Empty", ())
        assert mock.committed("g") == {("foo", 0): 2, ("foo", 1): 3}
        assert not mock.journal.select(event="failed")


@pytest.mark.requirement("DP-COORD-06", "DP-COORD-07")
async def test_a_consumer_follows_its_coordinator() -> None:
    async with cluster("kafka-4.4", brokers=3) as mock:
        filled(mock)
        with consumers() as all_of_them:
            all_of_them.start("one", confluent(mock, all_of_them))
            await all_of_them.until(lambda: len(all_of_them.read) == 4)
            group = mock.cluster.groups.group("g")
            assert group is not None
            (member_id,) = group.members
            before = next(
                each
                for each in (1, 2, 3)
                if mock.cluster.coordinators.group_error("g", each) is ErrorCode.NONE
            )
            await mock.stop_broker(before)
            append(mock.cluster, b"3")
            await all_of_them.until(lambda: len(all_of_them.read) == 5)
            after = mock.cluster.groups.group("g")
            assert after is not None
            assert member_id in after.members
            await all_of_them.stop("one")
