"""Drive aiokafka's ``AIOKafkaProducer`` and ``AIOKafkaConsumer``.

They run on the adapter's event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from kspec.adapters.python.lines import (
    PENDING,
    Operation,
    Raised,
    Returned,
    bytes_of,
    chosen,
    classic_only,
    client_call,
    keys_of,
    outcome_seconds,
    partition_of,
    polled,
    record_of,
    record_outcome,
)

__all__ = ["OPTIONS", "DataClients", "Runner"]

T = TypeVar("T")

OPTIONS: Final = {"enable_auto_commit of AIOKafkaConsumer": False}
_PRODUCER: Final = {
    "acks": "acks",
    "idempotence": "enable_idempotence",
    "compression": "compression_type",
    "linger_ms": "linger_ms",
    "batch_bytes": "max_batch_size",
    "transactional_id": "transactional_id",
    "transaction_timeout_ms": "transaction_timeout_ms",
    "metadata_age_ms": "metadata_max_age_ms",
}
_IGNORED: Final = ("delivery_timeout_ms",)
"""The request's time-out also bounds the delivery of a record."""
_CONSUMER: Final = {
    "group": "group_id",
    "offset_reset": "auto_offset_reset",
    "isolation": "isolation_level",
    "max_wait_ms": "fetch_max_wait_ms",
    "partition_max_bytes": "max_partition_fetch_bytes",
    "rack": "client_rack",
    "instance_id": "group_instance_id",
    "session_timeout_ms": "session_timeout_ms",
    "heartbeat_ms": "heartbeat_interval_ms",
    "metadata_age_ms": "metadata_max_age_ms",
    "max_poll_ms": "max_poll_interval_ms",
    "assignors": "partition_assignment_strategy",
}
_ASSIGNORS: Final = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Runner:
    """An event loop that runs in a thread of its own: a consumer keeps its membership, and a
    producer sends, while no call is made."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class DataClients:
    """A producer and a consumer, each made by its first call."""

    def __init__(self, runner: Runner, options: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        self._runner = runner
        self._options = options
        self._outcome_seconds = outcome_seconds(call)
        self._for_producer = call.get("producer", {})
        self._for_consumer = call.get("consumer", {})
        self._producer: AIOKafkaProducer | None = None
        self._consumer: AIOKafkaConsumer | None = None

    def operations(self) -> Mapping[str, Operation]:
        return {
            "produce": self._stepped(self._produce),
            "send": self._stepped(self._send),
            "begin_transaction": self._stepped(self._begin_transaction),
            "send_offsets": self._stepped(self._send_offsets),
            "commit_transaction": self._stepped(self._commit_transaction),
            "abort_transaction": self._stepped(self._abort_transaction),
            "assign": self._stepped(self._assign),
            "subscribe": self._stepped(self._subscribe),
            "unsubscribe": self._stepped(self._unsubscribe),
            "assignment": self._stepped(self._assignment),
            "close_consumer": self._stepped(self._close_consumer),
            "poll": self.poll,
            "position": self._stepped(self._position),
            "commit": self._stepped(self._commit),
            "committed": self._stepped(self._committed),
        }

    def close(self) -> None:
        producer, consumer = self._producer, self._consumer
        self._producer = self._consumer = None
        for each in (producer, consumer):
            with suppress(Exception):  # its state may not allow a clean close
                if each is not None:
                    self._runner.run(asyncio.wait_for(each.stop(), 1))

    def _stepped(
        self, call: Callable[[dict[str, Any]], Coroutine[Any, Any, Returned]]
    ) -> Operation:
        return lambda said: self._runner.run(call(said))

    async def _started_producer(self) -> AIOKafkaProducer:
        if self._producer is None:
            given = chosen(self._for_producer, _PRODUCER, _IGNORED)
            if given.get("compression_type") == "none":
                given["compression_type"] = None
            with client_call():
                self._producer = await _started(AIOKafkaProducer(**self._options, **given))
        return self._producer

    async def _started_consumer(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            given = chosen(
                classic_only(self._for_consumer), _CONSUMER, values={"assignors": _ASSIGNORS}
            )
            with client_call():
                self._consumer = await _started(
                    AIOKafkaConsumer(**self._options, enable_auto_commit=False, **given)
                )
        return self._consumer

    async def _produce(self, call: dict[str, Any]) -> Returned:
        producer = await self._started_producer()
        sent = [await self._sent(producer, record) for record in call["records"]]
        futures = [each for each in sent if not isinstance(each, Raised)]
        if futures:
            await asyncio.wait(futures, timeout=self._outcome_seconds)
        found = [each if isinstance(each, Raised) else await _awaited(each) for each in sent]
        return Returned(found, [record_outcome(each) for each in found])

    async def _send(self, call: dict[str, Any]) -> Returned:
        producer = await self._started_producer()
        found = [await self._sent(producer, record) for record in call["records"]]
        raised = next((each for each in found if isinstance(each, Raised)), None)
        if raised is not None:
            raise raised
        return Returned(None, None)

    async def _begin_transaction(self, _call: dict[str, Any]) -> Returned:
        producer = await self._started_producer()
        with client_call():
            await producer.begin_transaction()
        return Returned(None, None)

    async def _send_offsets(self, call: dict[str, Any]) -> Returned:
        """The client takes the group's id, and nothing else of a member."""
        producer = await self._started_producer()
        offsets = {_partition(key): offset for key, offset in call["offsets"].items()}
        with client_call():
            await producer.send_offsets_to_transaction(offsets, self._for_consumer["group"])
        return Returned(None, None)

    async def _commit_transaction(self, _call: dict[str, Any]) -> Returned:
        producer = await self._started_producer()
        with client_call():
            await producer.commit_transaction()
        return Returned(None, None)

    async def _abort_transaction(self, _call: dict[str, Any]) -> Returned:
        producer = await self._started_producer()
        with client_call():
            await producer.abort_transaction()
        return Returned(None, None)

    @staticmethod
    async def _sent(producer: AIOKafkaProducer, record: Mapping[str, Any]) -> Any:
        try:
            with client_call():
                return await producer.send(
                    record["topic"],
                    value=bytes_of(record.get("value")),
                    key=bytes_of(record.get("key")),
                    partition=record.get("partition"),
                )
        except Raised as raised:
            return raised

    async def _assign(self, call: dict[str, Any]) -> Returned:
        consumer = await self._started_consumer()
        wanted = {_partition(key): offset for key, offset in call["offsets"].items()}
        with client_call():
            consumer.assign(list(wanted))
            for partition, offset in wanted.items():
                if offset is not None:
                    consumer.seek(partition, offset)
        return Returned(None, None)

    async def _subscribe(self, call: dict[str, Any]) -> Returned:
        consumer = await self._started_consumer()
        with client_call():
            if "pattern" in call:
                consumer.subscribe(pattern=call["pattern"])
            else:
                consumer.subscribe(call["topics"])
        return Returned(None, None)

    async def _unsubscribe(self, _call: dict[str, Any]) -> Returned:
        consumer = await self._started_consumer()
        with client_call():
            consumer.unsubscribe()
        return Returned(None, None)

    async def _assignment(self, _call: dict[str, Any]) -> Returned:
        consumer = await self._started_consumer()
        with client_call():
            found = consumer.assignment()
        return Returned(found, keys_of(found))

    async def _close_consumer(self, _call: dict[str, Any]) -> Returned:
        consumer = await self._started_consumer()
        self._consumer = None
        with client_call():
            await consumer.stop()
        return Returned(None, None)

    def poll(self, call: dict[str, Any]) -> Returned:
        async def once(seconds: float) -> list[dict[str, Any]]:
            consumer = await self._started_consumer()
            with client_call():
                found = await consumer.getmany(timeout_ms=int(seconds * 1000))
            return [record_of(each) for records in found.values() for each in records]

        return polled(call["records"], call["ms"], lambda left: self._runner.run(once(left)))

    async def _position(self, call: dict[str, Any]) -> Returned:
        consumer = await self._started_consumer()
        found = {}
        for key in call["partitions"]:
            with client_call():
                found[key] = await consumer.position(_partition(key))
        return Returned(found, found)

    async def _commit(self, call: dict[str, Any]) -> Returned:
        consumer = await self._started_consumer()
        given = call.get("offsets")
        offsets = None if given is None else {
            _partition(key): offset for key, offset in given.items()
        }  # fmt: skip
        with client_call():
            await consumer.commit(offsets)
        return Returned(None, None)

    async def _committed(self, call: dict[str, Any]) -> Returned:
        consumer = await self._started_consumer()
        found = {}
        for key in call["partitions"]:
            with client_call():
                found[key] = await consumer.committed(_partition(key))
        return Returned(found, found)


async def _started(client: Any) -> Any:
    try:
        await client.start()
    except BaseException:
        with suppress(Exception):
            await client.stop()
        raise
    return client


async def _awaited(future: Any) -> Any:
    """Return what the client made of a record: PENDING if it has not yet."""
    if not future.done():
        return PENDING
    try:
        with client_call():
            return await future
    except Raised as raised:
        return raised


def _partition(key: str) -> TopicPartition:
    return TopicPartition(*partition_of(key))
