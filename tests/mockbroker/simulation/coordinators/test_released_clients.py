"""Released clients commit offsets and read them back: with groups of one, and without members."""

import asyncio
from typing import Any

import pytest

from mockbroker import MockCluster
from tests.support.toolchain import require_module

SECONDS = 30
TOPIC = "foo"


def kafka_python(bootstrap: str) -> tuple[int | None, int | None]:
    kafka = require_module("kafka")
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, group_id="g", enable_auto_commit=False
    )
    try:
        first, second = (kafka.TopicPartition(TOPIC, index) for index in (0, 1))
        consumer.assign([first, second])
        consumer.commit({first: kafka.OffsetAndMetadata(7, "m", -1)})
        return consumer.committed(first), consumer.committed(second)
    finally:
        consumer.close()


def confluent(bootstrap: str) -> tuple[int | None, int | None]:
    module = require_module("confluent_kafka")
    consumer = module.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False}
    )
    try:
        partition = module.TopicPartition
        consumer.commit(offsets=[partition(TOPIC, 0, 7, "m")], asynchronous=False)
        found = consumer.committed([partition(TOPIC, 0), partition(TOPIC, 1)], SECONDS)
        assert [each.error for each in found] == [None, None]
        return found[0].offset, None if found[1].offset == module.OFFSET_INVALID else 0
    finally:
        consumer.close()


async def _aiokafka(bootstrap: str) -> tuple[int | None, int | None]:
    module = require_module("aiokafka")
    consumer = module.AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id="g", enable_auto_commit=False
    )
    await consumer.start()
    try:
        first, second = (module.TopicPartition(TOPIC, index) for index in (0, 1))
        consumer.assign([first, second])
        await consumer.commit({first: module.structs.OffsetAndMetadata(7, "m")})
        return await consumer.committed(first), await consumer.committed(second)
    finally:
        await consumer.stop()


def aiokafka(bootstrap: str) -> tuple[int | None, int | None]:
    return asyncio.run(_aiokafka(bootstrap))


@pytest.mark.requirement("DP-OFFSET-02", "DP-OFFSET-13")
@pytest.mark.parametrize("profile", ["kafka-4.4", "kafka-2.4"])
@pytest.mark.parametrize("client", [kafka_python, confluent, aiokafka])
async def test_a_client_reads_what_it_has_committed(client, profile):
    async with MockCluster(topics=[f"{TOPIC}:2:1"], profile=profile) as mock:
        work = asyncio.to_thread(client, mock.bootstrap)
        assert await asyncio.wait_for(work, SECONDS) == (7, None)
        found: Any = mock.cluster.offsets["g"]
        # confluent-kafka sends the NUL at the end of its C string, too.
        committed = {tp: (each.offset, each.metadata.rstrip("\0")) for tp, each in found.items()}
        assert committed == {(TOPIC, 0): (7, "m")}
