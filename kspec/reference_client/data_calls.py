"""The calls of the reference client's producer and consumer.

docs/reference/adapters.md documents each call's arguments and result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from kspec.reference_client.consumer import Consumer
from kspec.reference_client.processor import EXACTLY_ONCE, Processor
from kspec.reference_client.producer import Producer
from kspec.reference_client.rules import outcome
from kspec.reference_client.share_consumer import ACKNOWLEDGE_TYPES, ShareConsumer
from kspec.reference_client.telemetry import Telemetry
from kspec.reference_client.topics import split
from kspec.reference_client.transactional_producer import TransactionalProducer

__all__ = ["DATA_CALLS", "DataClients"]


_TRANSACTIONAL_ID: Final = "processing"

Arguments = Mapping[str, Any]


class DataClients:
    """The producer and the consumer of a client, each made by its first call."""

    def __init__(
        self,
        producer: Callable[[Arguments], Producer],
        consumer: Callable[[Arguments], Consumer],
        telemetry: Callable[[str], Telemetry],
        processor: type[Processor],
    ) -> None:
        """``producer`` and ``consumer`` take options beside those of the case."""
        self._make_producer, self._make_consumer = producer, consumer
        self._make_telemetry, self._make_processor = telemetry, processor
        self.processor: Processor | None = None
        self._telemetry: dict[str, Telemetry] = {}
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None

    @property
    def producer(self) -> Producer:
        self._producer = self._producer or self._make_producer({})
        self._observe("producer")
        return self._producer

    @property
    def transactions(self) -> TransactionalProducer:
        """Raises ValueError if the case has no transactional id."""
        producer = self.producer
        if not isinstance(producer, TransactionalProducer):
            raise ValueError("the producer has no transactional id")
        return producer

    @property
    def consumer(self) -> Consumer:
        self._consumer = self._consumer or self._make_consumer({})
        self._observe("consumer")
        return self._consumer

    @property
    def sharing(self) -> ShareConsumer:
        """Raises ValueError if the case has no share group."""
        consumer = self.consumer
        if not isinstance(consumer, ShareConsumer):
            raise ValueError("the consumer has no share group")
        return consumer

    def start_processing(self, topics: Sequence[str], topic: str, guarantee: str) -> None:
        if guarantee == EXACTLY_ONCE:
            self._consumer = self._make_consumer({"isolation": "read_committed"})
            self._producer = self._make_producer({"transactional_id": _TRANSACTIONAL_ID})
        self.processor = self._make_processor(self.consumer, self.producer, topic)
        self.consumer.subscribe(topics, None)

    def _observe(self, role: str) -> None:
        """A producer, or a consumer, pushes metrics as long as it lives."""
        if role not in self._telemetry:
            self._telemetry[role] = self._make_telemetry(role)
            self._telemetry[role].start()

    async def close_consumer(self) -> None:
        consumer, self._consumer = self.consumer, None
        await self._telemetry.pop("consumer").close()
        await consumer.close()

    async def abandon(self) -> None:
        """End what the producer and the consumer do beside their calls."""
        while self._telemetry:
            await self._telemetry.popitem()[1].close()
        if self._consumer is not None:
            await self._consumer.abandon()


async def produce(data: DataClients, arguments: Arguments) -> list[dict[str, Any]]:
    return await data.producer.send(arguments["records"])


async def send(data: DataClients, arguments: Arguments) -> None:
    data.producer.hand_over(arguments["records"])


async def begin_transaction(data: DataClients, _arguments: Arguments) -> None:
    await data.transactions.begin()


async def send_offsets(data: DataClients, arguments: Arguments) -> None:
    offsets = {split(key): each for key, each in arguments["offsets"].items()}
    await data.transactions.send_offsets(offsets, data.consumer.group_metadata())


async def commit_transaction(data: DataClients, _arguments: Arguments) -> None:
    await data.transactions.commit()


async def abort_transaction(data: DataClients, _arguments: Arguments) -> None:
    await data.transactions.abort()


async def assign(data: DataClients, arguments: Arguments) -> None:
    data.consumer.assign({split(key): each for key, each in arguments["offsets"].items()})


async def seek(data: DataClients, arguments: Arguments) -> None:
    data.consumer.seek({split(key): each for key, each in arguments["offsets"].items()})


async def pause(data: DataClients, arguments: Arguments) -> None:
    data.consumer.pause([split(each) for each in arguments["partitions"]])


async def resume(data: DataClients, arguments: Arguments) -> None:
    data.consumer.resume([split(each) for each in arguments["partitions"]])


async def subscribe(data: DataClients, arguments: Arguments) -> None:
    data.consumer.subscribe(arguments.get("topics", ()), arguments.get("pattern"))


async def unsubscribe(data: DataClients, _arguments: Arguments) -> None:
    await data.consumer.unsubscribe()


async def assignment(data: DataClients, _arguments: Arguments) -> list[str]:
    return [f"{topic}-{index}" for topic, index in sorted(data.consumer.assigned)]


async def process(data: DataClients, arguments: Arguments) -> None:
    data.start_processing(arguments["from"], arguments["to"], arguments["guarantee"])


async def commit(data: DataClients, arguments: Arguments) -> dict[str, Any]:
    if data.processor is not None:
        return {}  # it commits what it processes
    given = arguments.get("offsets")
    offsets = None if given is None else {split(key): each for key, each in given.items()}
    codes = await data.consumer.commit(offsets)
    return {
        f"{topic}-{index}": outcome(code, None) if code else None
        for (topic, index), code in codes.items()
    }


async def acknowledge(data: DataClients, arguments: Arguments) -> None:
    data.sharing.acknowledge(
        {
            split(key): {int(offset): ACKNOWLEDGE_TYPES[name] for offset, name in types.items()}
            for key, types in arguments["records"].items()
        }
    )


async def committed(data: DataClients, arguments: Arguments) -> dict[str, int]:
    found = await data.consumer.member.committed(split(each) for each in arguments["partitions"])
    return {f"{topic}-{index}": offset for (topic, index), (offset, _) in found.items()}


async def close_consumer(data: DataClients, _arguments: Arguments) -> None:
    await data.close_consumer()


async def poll(data: DataClients, arguments: Arguments) -> list[dict[str, Any]]:
    records = await data.consumer.poll(arguments["records"], arguments["ms"] / 1000)
    if data.processor is not None and records:
        await data.processor.process(records)
    return records


async def position(data: DataClients, arguments: Arguments) -> dict[str, int | None]:
    found = await data.consumer.positions(split(each) for each in arguments["partitions"])
    return {f"{topic}-{index}": offset for (topic, index), offset in found.items()}


DATA_CALLS: Final[Mapping[str, Callable[[DataClients, Arguments], Awaitable[Any]]]] = {
    "produce": produce,
    "send": send,
    "begin_transaction": begin_transaction,
    "send_offsets": send_offsets,
    "commit_transaction": commit_transaction,
    "abort_transaction": abort_transaction,
    "assign": assign,
    "seek": seek,
    "pause": pause,
    "resume": resume,
    "subscribe": subscribe,
    "unsubscribe": unsubscribe,
    "assignment": assignment,
    "poll": poll,
    "commit": commit,
    "committed": committed,
    "acknowledge": acknowledge,
    "close_consumer": close_consumer,
    "position": position,
    "process": process,
}
