"""Defects of producers about what they send again, where to, and in which form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from kspec.defects.declaration import defect
from kspec.reference_client.link import BrokerError, Link
from kspec.reference_client.producer import OutgoingBatch, Producer, Request

__all__: list[str] = []


@defect("writes-empty-for-null")
class WritesEmptyForNull(Producer):
    """Writes an empty value where there is none."""

    def encoded(self, batch: OutgoingBatch) -> bytes:
        records = batch.records
        batch.records = [{**each, "value": each["value"] or ""} for each in records]
        try:
            return super().encoded(batch)
        finally:
            batch.records = records


@defect("retries-no-batch")
class RetriesNoBatch(Producer):
    """Fails a batch with the first error, also with one that passes."""

    def may_retry(self, code: int, batch: OutgoingBatch) -> bool:
        return False


@defect("sends-again-without-pause")
class SendsAgainWithoutPause(Producer):
    """Sends a refused batch again at once, for as long as a record may take."""

    async def deliver(self, batches: list[OutgoingBatch], ends: float) -> None:
        self.client.pause = lambda attempt: 0.001  # type: ignore[method-assign]
        await super().deliver(batches, ends)


@defect("stops-for-one-broker")
class StopsForOneBroker(Producer):
    """Sends nothing to any broker while one cannot be reached."""

    async def opened(self, broker: int) -> Link | None:
        return await self.topics.link_to(broker)

    def unanswered(self, request: Request) -> None:
        super().unanswered(request)
        self.topics.errors = dict.fromkeys((topic for topic, _ in request), 29)


@defect("writes-to-another-partition")
class WritesToAnotherPartition(Producer):
    """Writes records of a partition that it does not know to the first one."""

    async def find_leaders(self, pending: Sequence[OutgoingBatch]) -> None:
        await super().find_leaders(pending)
        for batch in pending:
            if batch.tp not in self.topics.leaders:
                self.topics.leaders[batch.tp] = self.topics.leaders.get((batch.tp[0], 0), -1)

    def body(self, request: Request) -> Any:
        body = super().body(request)
        for topic in body.topic_data:
            for row in topic.partition_data:
                row.index = row.index if row.index < self.topics.counts[topic.name] else 0
        return body


@defect("compresses-for-old-brokers")
class CompressesForOldBrokers(Producer):
    """Sends zstd to brokers that are too old for it."""

    def can_encode(self, version: int) -> bool:
        return True


@defect("asks-for-a-producer-id-for-ever")
class AsksForAProducerIdForEver(Producer):
    """Asks for a producer id again and again, whatever the broker's error."""

    async def identify(self) -> None:
        for _ in range(60):
            try:
                return await super().identify()
            except BrokerError:
                continue
        await super().identify()


@defect("gets-along-without-a-producer-id")
class GetsAlongWithoutAProducerId(Producer):
    """Writes without a producer id if it gets none."""

    async def identify(self) -> None:
        try:
            await super().identify()
        except BrokerError:
            self.idempotent = False


@defect("sends-twice-without-acks")
class SendsTwiceWithoutAcks(Producer):
    """Sends a batch twice if no acknowledgement is to be had."""

    async def exchange(self, link: Link | None, request: Request) -> None:
        if self.acks == 0 and link is not None:
            await link.send_unanswered(self.body(request))
        await super().exchange(link, request)


@defect("keeps-the-count-of-partitions")
class KeepsTheCountOfPartitions(Producer):
    """Refuses records of partitions that a topic has got since the producer first used it."""

    first: Mapping[str, int] = MappingProxyType({})

    def without_refused(self, pending: Sequence[OutgoingBatch]) -> list[OutgoingBatch]:
        self.first = {**self.topics.counts, **self.first}
        for batch in pending:
            if batch.tp[1] >= self.first.get(batch.tp[0], 0):
                batch.fail(3)
        return super().without_refused([each for each in pending if not each.done])


@defect("sends-its-newest-produce")
class SendsItsNewestProduce(Producer):
    """Sends Produce at its newest version, whatever the broker serves."""

    def produce_version(self, link: Link) -> int | None:
        return link.codec.apis[0].valid_versions.highest
