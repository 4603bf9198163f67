"""The reference processing: a consumer's records are written by a producer, and what was read is
committed behind that, or within the same transaction (KIP-98, KIP-447)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kspec.reference_client.consumer import Consumer
from kspec.reference_client.link import BrokerError
from kspec.reference_client.producer import Producer
from kspec.reference_client.topics import TopicPartition
from kspec.reference_client.transactional_producer import TransactionalProducer

__all__ = ["EXACTLY_ONCE", "Processor", "next_offsets"]

EXACTLY_ONCE: Final = "exactly_once"


class Processor:
    """Writes the records of one consumer to ``topic``, each to the partition of its number.

    With a transactional producer each call of ``process`` is a transaction.
    """

    def __init__(self, consumer: Consumer, producer: Producer, topic: str) -> None:
        self.consumer, self.producer, self.topic = consumer, producer, topic

    async def process(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Raises BrokerError if a record is not written or its offset is not committed."""
        offsets = next_offsets(records)
        if isinstance(self.producer, TransactionalProducer):
            await self.process_in_transaction(self.producer, records, offsets)
        else:
            await self.write(records)
            await self.commit(offsets)

    async def process_in_transaction(
        self,
        producer: TransactionalProducer,
        records: Sequence[Mapping[str, Any]],
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        await producer.begin()
        try:
            await self.write(records)
            await producer.send_offsets(offsets, self.consumer.group_metadata())
        except BrokerError:
            await producer.abort()
            raise
        await producer.commit()

    async def write(self, records: Sequence[Mapping[str, Any]]) -> None:
        outcomes = await self.producer.send([{**each, "topic": self.topic} for each in records])
        for each in outcomes:
            if "error" in each:
                raise BrokerError(each.get("code") or -1, str(each.get("message")))

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        codes = await self.consumer.commit(offsets)
        for code in filter(None, codes.values()):
            raise BrokerError(code)


def next_offsets(records: Sequence[Mapping[str, Any]]) -> dict[TopicPartition, int]:
    """Return the offset to commit for each partition: the one that follows its last record."""
    return {(each["topic"], each["partition"]): each["offset"] + 1 for each in records}
