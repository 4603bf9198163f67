"""The calls of the reference client's producer and consumer.

docs/reference/adapters.md documents each call's arguments and result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from kspec.wrong.consumer import Consumer
from kspec.wrong.producer import Producer
from kspec.wrong.topics import split

__all__ = ["DATA_CALLS", "DataClients"]


class DataClients:
    """The producer and the consumer of a client, each made by its first call."""

    def __init__(self, producer: Callable[[], Producer], consumer: Callable[[], Consumer]) -> None:
        self._make_producer, self._make_consumer = producer, consumer
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None

    @property
    def producer(self) -> Producer:
        self._producer = self._producer or self._make_producer()
        return self._producer

    @property
    def consumer(self) -> Consumer:
        self._consumer = self._consumer or self._make_consumer()
        return self._consumer


Arguments = Mapping[str, Any]


async def produce(data: DataClients, arguments: Arguments) -> list[dict[str, Any]]:
    return await data.producer.send(arguments["records"])


async def assign(data: DataClients, arguments: Arguments) -> None:
    data.consumer.assign({split(key): each for key, each in arguments["offsets"].items()})


async def poll(data: DataClients, arguments: Arguments) -> list[dict[str, Any]]:
    return await data.consumer.poll(arguments["records"], arguments["ms"] / 1000)


async def position(data: DataClients, arguments: Arguments) -> dict[str, int | None]:
    found = await data.consumer.positions(split(each) for each in arguments["partitions"])
    return {f"{topic}-{index}": offset for (topic, index), offset in found.items()}


DATA_CALLS: Final[Mapping[str, Callable[[DataClients, Arguments], Awaitable[Any]]]] = {
    "produce": produce,
    "assign": assign,
    "poll": poll,
    "position": position,
}
