"""Released Python clients produce, share a group and read on, against a mock cluster."""

import asyncio
import importlib
import json
import shutil
import subprocess
from collections.abc import Iterable
from typing import Any

import pytest

from mockbroker import MockCluster
from tests.mockbroker.clients.scenario import BASE_MS, PARTITIONS, TOPIC, Client, Reader, play
from tests.support.full import drawn
from tests.support.toolchain import require, require_module

SECONDS = 170
BROKERS = 3
PROFILES = ("kafka-2.4", "kafka-3.9", "kafka-4.4")
"""The seed draws one of them; a full run has all."""
TOPICS = ["foo=1,2,3/2,3,1/3,1,2/1,2,3"]


async def in_thread(client: Client) -> None:
    await asyncio.wait_for(asyncio.to_thread(play, client), SECONDS)


# ---- kafka-python --------------------------------------------------------------------------------


class KafkaPython(Client):
    def __init__(self, bootstrap: str) -> None:
        self.kafka = require_module("kafka")
        codec = importlib.import_module("kafka.codec")
        named = ("gzip", "snappy", "lz4", "zstd")
        self.codecs = ("none", *(each for each in named if getattr(codec, f"has_{each}")()))
        self.bootstrap = bootstrap

    def produce(self, values: list[bytes], codec: str) -> None:
        producer = self.kafka.KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            linger_ms=5,
        )
        sent = [
            producer.send(TOPIC, value, partition=i % PARTITIONS, timestamp_ms=BASE_MS + i)
            for i, value in enumerate(values)
        ]
        for each in sent:
            each.get(timeout=30)
        producer.close()

    def reader(self, group: str) -> Reader:
        return _KafkaPythonReader(self, group)

    def offset_at(self, partition: int, timestamp: int) -> int | None:
        at = self.kafka.TopicPartition(TOPIC, partition)
        consumer = self.kafka.KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=None)
        found = consumer.offsets_for_times({at: timestamp})[at]
        consumer.close()
        return None if found is None else int(found.offset)


class _KafkaPythonReader(Reader):
    def __init__(self, client: KafkaPython, group: str) -> None:
        super().__init__()
        self._client = client
        self._group = group

    def open(self) -> None:
        self._consumer = self._client.kafka.KafkaConsumer(
            TOPIC,
            bootstrap_servers=self._client.bootstrap,
            group_id=self._group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=200,
            # A poll that ends cancels a refresh of metadata, and a leader without metadata assigns
            # nothing until the next refresh.
            metadata_max_age_ms=1000,
        )

    def poll(self) -> tuple[list[bytes], Iterable[int]]:
        found = self._consumer.poll(timeout_ms=500)
        values = [record.value for records in found.values() for record in records]
        return values, [each.partition for each in self._consumer.assignment()]

    def commit(self) -> None:
        self._consumer.commit()

    def close(self) -> None:
        self._consumer.close()


# ---- confluent-kafka (librdkafka) ----------------------------------------------------------------


class Confluent(Client):
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: str) -> None:
        self.module = require_module("confluent_kafka")
        self.bootstrap = bootstrap

    def produce(self, values: list[bytes], codec: str) -> None:
        failed: list[Any] = []

        def delivered(error: Any, _message: Any) -> None:
            if error is not None:
                failed.append(error)

        producer = self.module.Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "compression.type": codec,
                "enable.idempotence": True,
                "linger.ms": 5,
            }
        )
        for i, value in enumerate(values):
            producer.produce(
                TOPIC, value, partition=i % PARTITIONS, timestamp=BASE_MS + i, on_delivery=delivered
            )
        assert producer.flush(30) == 0
        assert failed == []

    def reader(self, group: str) -> Reader:
        return _ConfluentReader(self, group)

    def offset_at(self, partition: int, timestamp: int) -> int | None:
        consumer = self.module.Consumer({"bootstrap.servers": self.bootstrap, "group.id": "none"})
        asked = self.module.TopicPartition(TOPIC, partition, timestamp)
        (found,) = consumer.offsets_for_times([asked], timeout=30)
        consumer.close()
        assert found.error is None
        return None if found.offset == self.module.OFFSET_END else int(found.offset)


class _ConfluentReader(Reader):
    def __init__(self, client: Confluent, group: str) -> None:
        super().__init__()
        self._client = client
        self._group = group

    def open(self) -> None:
        self._consumer = self._client.module.Consumer(
            {
                "bootstrap.servers": self._client.bootstrap,
                "group.id": self._group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([TOPIC])

    def poll(self) -> tuple[list[bytes], Iterable[int]]:
        message = self._consumer.poll(0.1)
        if message is not None:
            assert message.error() is None, message.error()
        values = [] if message is None else [message.value()]
        return values, [each.partition for each in self._consumer.assignment()]

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.slow
@pytest.mark.requirement("DP-GROUP-09", "DP-LISTOFF-08")
@pytest.mark.parametrize("client", [KafkaPython, Confluent])
@pytest.mark.parametrize("profile", drawn("profiles", PROFILES, 1))
async def test_clients_in_threads(client: type[KafkaPython | Confluent], profile: str) -> None:
    async with MockCluster(BROKERS, topics=TOPICS, profile=profile) as mock:
        await in_thread(client(mock.bootstrap))


# ---- aiokafka ------------------------------------------------------------------------------------


class AioKafka(Client):
    """In a loop of its own for each call: its consumers need one."""

    codecs = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, bootstrap: str) -> None:
        self.module = require_module("aiokafka")
        self.bootstrap = bootstrap

    def produce(self, values: list[bytes], codec: str) -> None:
        asyncio.run(self._produce(values, codec))

    async def _produce(self, values: list[bytes], codec: str) -> None:
        async with self.module.AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=True,
        ) as producer:
            sent = [
                await producer.send(TOPIC, value, partition=i % 4, timestamp_ms=BASE_MS + i)
                for i, value in enumerate(values)
            ]
            await asyncio.gather(*sent)

    def reader(self, group: str) -> Reader:
        return _AioKafkaReader(self, group)

    def offset_at(self, partition: int, timestamp: int) -> int | None:
        return asyncio.run(self._offset_at(partition, timestamp))

    async def _offset_at(self, partition: int, timestamp: int) -> int | None:
        at = self.module.TopicPartition(TOPIC, partition)
        async with self.module.AIOKafkaConsumer(bootstrap_servers=self.bootstrap) as consumer:
            found = (await consumer.offsets_for_times({at: timestamp}))[at]
        return None if found is None else int(found.offset)


class _AioKafkaReader(Reader):
    def __init__(self, client: AioKafka, group: str) -> None:
        super().__init__()
        self._client = client
        self._group = group

    def open(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._open())

    async def _open(self) -> None:
        self._consumer = self._client.module.AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=self._client.bootstrap,
            group_id=self._group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=200,
        )
        await self._consumer.start()

    def poll(self) -> tuple[list[bytes], Iterable[int]]:
        found = self._loop.run_until_complete(self._consumer.getmany(timeout_ms=100))
        values = [record.value for records in found.values() for record in records]
        return values, [each.partition for each in self._consumer.assignment()]

    def commit(self) -> None:
        self._loop.run_until_complete(self._consumer.commit())

    def close(self) -> None:
        self._loop.run_until_complete(self._consumer.stop())
        self._loop.close()


@pytest.mark.slow
@pytest.mark.requirement("DP-GROUP-09", "DP-LISTOFF-08")
@pytest.mark.parametrize("profile", drawn("profiles of aiokafka", PROFILES[1:], 1))
async def test_aiokafka(profile: str) -> None:
    async with MockCluster(BROKERS, topics=TOPICS, profile=profile) as mock:
        await in_thread(AioKafka(mock.bootstrap))


# ---- kcat ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("DP-FETCH-06", "DP-LISTOFF-08")
@pytest.mark.parametrize("codec", drawn("kcat", ("none", "gzip", "snappy", "lz4"), 1))
async def test_kcat(codec: str) -> None:
    require("kcat")
    kcat = shutil.which("kcat") or "kcat"
    lines = [f"line {i}" for i in range(20)]

    def run(*arguments: str, text: str = "") -> list[str]:
        done = subprocess.run(
            [kcat, "-b", mock.bootstrap, *arguments],
            input=text, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        return done.stdout.splitlines()

    async with MockCluster(1, topics=["foo:1:1"]) as mock:
        sent = "".join(f"{each}\n" for each in lines)
        await asyncio.to_thread(run, "-P", "-t", "foo", "-z", codec, text=sent)
        assert await asyncio.to_thread(run, "-C", "-t", "foo", "-e", "-q") == lines
        found = await asyncio.to_thread(run, "-C", "-t", "foo", "-e", "-q", "-o", "15", "-J")
        assert [json.loads(each)["offset"] for each in found] == list(range(15, 20))
        last = await asyncio.to_thread(run, "-Q", "-t", "foo:0:-1")
        assert last == ["foo [0] offset 20"]
        grouped = await asyncio.to_thread(
            run, "-G", "readers", "-e", "-q", "-X", "auto.offset.reset=earliest", "foo"
        )
        assert grouped == lines
