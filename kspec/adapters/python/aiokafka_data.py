"""Drive aiokafka's ``AIOKafkaProducer`` and ``AIOKafkaConsumer``, on one event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from kspec.adapters.python.data_clients import DataClients
from kspec.adapters.python.lines import DONE, Raised, Returned, client_call
from kspec.adapters.python.values import PENDING

__all__ = ["OPTIONS", "AiokafkaDataClients", "Runner"]

T = TypeVar("T")

OPTIONS: Final = {"enable_auto_commit of AIOKafkaConsumer": "False, but with auto_commit_ms"}


class Runner:
    """An event loop that runs in a thread of its own: a consumer keeps its membership, and a
    producer sends, while no call is made."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class AiokafkaDataClients(DataClients):
    """The request's time-out also bounds the delivery of a record."""

    producer_options: ClassVar[Mapping[str, str]] = {
        **DataClients.producer_options,
        "batch_bytes": "max_batch_size",
    }
    ignored_options = (*DataClients.ignored_options, "delivery_timeout_ms")
    consumer_values: ClassVar[Mapping[str, Mapping[Any, Any]]] = {
        "assignors": {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": StickyPartitionAssignor,
        }
    }
    partition_type = TopicPartition

    def __init__(self, runner: Runner, options: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        super().__init__(options, call)
        self._runner = runner

    def perform(self, work: Callable[[Any], Any], client: Any) -> Any:
        """Call the client on the event loop, and wait for a coroutine's result."""

        async def performed() -> Any:
            with client_call():
                found = work(client)
                return await found if asyncio.iscoroutine(found) else found

        return self._runner.run(performed())

    def new_producer(self, options: dict[str, Any]) -> Any:
        return _started(AIOKafkaProducer(**self.options, **options))

    def new_consumer(self, options: dict[str, Any]) -> Any:
        automatic = self.commits_by_itself
        return _started(AIOKafkaConsumer(**self.options, enable_auto_commit=automatic, **options))

    def abandon(self, producer: Any, consumer: Any) -> None:
        client = producer or consumer
        if client is not None:
            self._runner.run(asyncio.wait_for(client.stop(), 1))

    def outcome(self, future: Any, seconds: float) -> Any:
        async def result(future: asyncio.Future[Any]) -> Any:
            done, _ = await asyncio.wait([future], timeout=max(seconds, 0))
            return await future if done else PENDING

        try:
            return self.perform(result, future)
        except Raised as raised:
            return raised

    def begin_transaction(self, _call: dict[str, Any]) -> Returned:
        self.perform(lambda producer: producer.begin_transaction(), self.producer)
        return DONE

    def send_offsets(self, call: dict[str, Any]) -> Returned:
        """The client takes the group's id, and nothing else of a member."""
        offsets, group = self.offsets(call["offsets"]), self.for_consumer["group"]
        self.perform(
            lambda producer: producer.send_offsets_to_transaction(offsets, group), self.producer
        )
        return DONE

    def close_one(self, consumer: AIOKafkaConsumer) -> Any:
        return consumer.stop()

    def fetch(self, consumer: AIOKafkaConsumer, seconds: float) -> Any:
        return consumer.getmany(timeout_ms=int(seconds * 1000))


async def _started(client: Any) -> Any:
    try:
        await client.start()
    except BaseException:
        with suppress(Exception):
            await client.stop()
        raise
    return client
