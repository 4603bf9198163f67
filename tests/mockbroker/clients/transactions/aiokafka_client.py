"""aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiokafka

from tests.mockbroker.clients.transactions.words import COMMANDS, serve


class Commands:
    def __init__(self) -> None:
        self.bootstrap = ""
        self.producers: dict[str, Any] = {}
        self.consumers: dict[str, Any] = {}
        self.groups: dict[str, str] = {}

    async def connect(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    async def open(self, name: str, transactional_id: str, timeout_ms: str, *source: str) -> None:
        self.producers[name] = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=int(timeout_ms),
        )
        await self.producers[name].start()
        if source:
            group, topic = source
            self.groups[name] = group
            self.consumers[name] = self.consumer(group, "read_committed", topic)
            await self.consumers[name].start()

    async def begin(self, name: str) -> None:
        await self.producers[name].begin_transaction()

    async def send(self, name: str, topic: str, *values: str) -> None:
        producer = self.producers[name]
        sent = [await producer.send(topic, each.encode(), partition=0) for each in values]
        await asyncio.gather(*sent)

    async def move(self, name: str, target: str, last: str) -> None:
        consumer = self.consumers[name]
        await self.send(name, target, *await self.values(consumer, last))
        offsets = {each: await consumer.position(each) for each in consumer.assignment()}
        await self.producers[name].send_offsets_to_transaction(offsets, self.groups[name])

    async def commit(self, name: str) -> None:
        await self.producers[name].commit_transaction()

    async def abort(self, name: str) -> None:
        await self.producers[name].abort_transaction()

    async def close(self, name: str) -> None:
        await self.producers.pop(name).stop()
        await self.consumers.pop(name).stop()

    async def read(self, topic: str, isolation_level: str, last: str) -> list[str]:
        consumer = self.consumer(None, isolation_level)
        consumer.assign([aiokafka.TopicPartition(topic, 0)])
        async with consumer:
            return await self.values(consumer, last)

    def consumer(self, group: str | None, isolation_level: str, *topics: str) -> Any:
        return aiokafka.AIOKafkaConsumer(
            *topics,
            bootstrap_servers=self.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level=isolation_level,
        )

    @staticmethod
    async def values(consumer: Any, last: str) -> list[str]:
        values: list[str] = []
        while not values or values[-1] != last:
            values.append((await consumer.getone()).value.decode())
        return values


if __name__ == "__main__":
    commands = Commands()
    loop = asyncio.new_event_loop()

    def run(command: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *words: loop.run_until_complete(command(*words))

    serve({name: run(getattr(commands, name)) for name in COMMANDS})
