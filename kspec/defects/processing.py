"""Defects of clients that read, write and commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kspec.defects.declaration import defect
from kspec.reference_client.processor import Processor, next_offsets
from kspec.reference_client.topics import TopicPartition
from kspec.reference_client.transactional_producer import TransactionalProducer

__all__: list[str] = []


@defect("commits-before-it-writes")
class CommitsBeforeItWrites(Processor):
    """Commits what it read before the records that it makes of it are written."""

    async def process(self, records: Sequence[Mapping[str, Any]]) -> None:
        await self.commit(next_offsets(records))
        await super().process(records)


@defect("commits-outside-its-transaction")
class CommitsOutsideItsTransaction(Processor):
    """Commits the offsets of what it read as a member does, behind the transaction."""

    async def process_in_transaction(
        self,
        producer: TransactionalProducer,
        records: Sequence[Mapping[str, Any]],
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        await producer.begin()
        await self.write(records)
        await producer.commit()
        await self.commit(offsets)


@defect("writes-twice")
class WritesTwice(Processor):
    """Writes each record again after its transaction, as if that had not ended."""

    async def process_in_transaction(
        self,
        producer: TransactionalProducer,
        records: Sequence[Mapping[str, Any]],
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        await super().process_in_transaction(producer, records, offsets)
        await super().process_in_transaction(producer, records, offsets)


@defect("leaves-its-transaction-open")
class LeavesItsTransactionOpen(Processor):
    """Does not abort a transaction that cannot be committed."""

    async def process_in_transaction(
        self,
        producer: TransactionalProducer,
        records: Sequence[Mapping[str, Any]],
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        await producer.begin()
        await self.write(records)
        await producer.send_offsets(offsets, self.consumer.group_metadata())
        await producer.commit()
