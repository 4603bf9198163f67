"""Defects of consumers about brokers that fail, and about what batches hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import structs

from kproto.errors import DecodeError
from kproto.records import Compression, Record, RecordBatches
from kproto.records.batch import Batch
from kproto.records.record_batch import CHECKED
from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.consumer import Aborted, Assigned, Consumer, Session
from kspec.reference_client.link import BrokerError, LinkClosedError, TimedOutError
from kspec.reference_client.topics import TopicPartition

__all__: list[str] = []

_LEADER_NOT_AVAILABLE: Final = 5
_FETCH_SESSION_ID_NOT_FOUND: Final = 70
_OWN_LIMIT: Final = 1 << 20
_RECORD_BATCH: Final = 2
_CODECS: Final = frozenset(each.value for each in Compression)


@defect("reads-null-as-empty")
class ReadsNullAsEmpty(Consumer):
    """Delivers an empty value where a record has none."""

    def delivered(self) -> list[dict[str, Any]]:
        return [{**each, "value": each["value"] or ""} for each in super().delivered()]


@defect("passes-over-what-it-cannot-read")
class PassesOverWhatItCannotRead(Consumer):
    """Skips a batch that it cannot decompress, and reports no error."""

    def batches(self, data: bytes | None) -> Iterable[Batch]:
        """Pass over those with codecs that do not exist."""
        left = data or b""
        while len(left) > CHECKED:
            size = int.from_bytes(left[8:12], "big") + 12
            if left[CHECKED + 1] & 7 in _CODECS:
                yield from RecordBatches(left[:size], allow_partial=True)
            left = left[size:]

    def read_batch(
        self, tp: TopicPartition, each: Assigned, batch: Batch, aborted: Aborted
    ) -> None:
        try:
            super().read_batch(tp, each, batch, aborted)
        except DecodeError:
            each.position = batch.next_offset


@defect("delivers-what-it-cannot-decompress")
class DeliversWhatItCannotDecompress(Consumer):
    """Delivers the bytes of a batch whose codec it does not know as a record."""

    def read_batch(
        self, tp: TopicPartition, each: Assigned, batch: Batch, aborted: Aborted
    ) -> None:
        try:
            super().read_batch(tp, each, batch, aborted)
        except DecodeError:
            each.queue.append(
                {"topic": tp[0], "partition": tp[1], "offset": batch.base_offset, "value": "?"}
            )
            each.position = batch.next_offset


@defect("waits-for-a-fetch-for-ever")
class WaitsForAFetchForEver(Consumer):
    """Waits for the answer to a fetch for as long as it takes."""

    async def fetch(self, broker: int, partitions: Sequence[TopicPartition]) -> None:
        try:
            await super().fetch(broker, partitions)
        except TimedOutError:
            await asyncio.sleep(60)


@defect("stops-reading-for-one-broker")
class StopsReadingForOneBroker(Consumer):
    """Fetches from no other leader while one cannot be reached."""

    async def fetch_each(self, by_broker: Mapping[int, Sequence[TopicPartition]]) -> None:
        for broker in sorted(by_broker, reverse=True):
            await self.fetch(broker, by_broker[broker])


@defect("reports-a-lost-connection")
class ReportsALostConnection(Consumer):
    """Ends with an error when a connection ends during a fetch."""

    async def fetch(self, broker: int, partitions: Sequence[TopicPartition]) -> None:
        try:
            await super().fetch(broker, partitions)
        except LinkClosedError as error:
            self.fail(error)


@defect("stays-with-a-replica-that-is-gone")
class StaysWithAReplicaThatIsGone(Consumer):
    """Never goes back to the leader from a replica that it named."""

    async def fetch(self, broker: int, partitions: Sequence[TopicPartition]) -> None:
        replicas = {tp: self.assigned[tp].replica for tp in partitions}
        try:
            await super().fetch(broker, partitions)
        finally:
            for tp, replica in replicas.items():
                if replica >= 0:
                    self.assigned[tp].replica = replica


@defect("reads-one-batch-of-an-answer")
class ReadsOneBatchOfAnAnswer(Consumer):
    """Reads the first batch of an answer, and goes on behind the last."""

    def batches(self, data: bytes | None) -> Iterable[Batch]:
        every = list(RecordBatches(data, allow_partial=True))
        return (batch for number, batch in enumerate(every) if number in (0, len(every) - 1))


@defect("takes-an-epoch-error-for-a-truncation")
class TakesAnEpochErrorForATruncation(Consumer):
    """Starts over if it cannot learn where an epoch ends."""

    async def validate(self, tp: TopicPartition, each: Assigned) -> None:
        try:
            await super().validate(tp, each)
        except LinkClosedError:
            each.position = 0
            raise


@defect("fetches-its-newest-version")
class FetchesItsNewestVersion(Consumer):
    """Sends Fetch at its newest version, whatever the broker serves."""

    def fetch_version(self, newest: int) -> int | None:
        return newest


@defect("asks-for-the-high-watermark")
class AsksForTheHighWatermark(Consumer):
    """Starts at the end of the log although only committed records are wanted."""

    def isolation_of_offsets(self) -> int:
        return 0


@defect("gives-up-with-its-session")
class GivesUpWithItsSession(Consumer):
    """Reports the error of a fetch session instead of beginning another."""

    def keeps(self, session: Session, answer: Any, broker: int) -> bool:
        kept = super().keeps(session, answer, broker)
        if not kept and answer.error_code != _FETCH_SESSION_ID_NOT_FOUND:
            raise BrokerError(answer.error_code)
        return kept


@defect("stops-at-an-empty-batch")
class StopsAtAnEmptyBatch(Consumer):
    """Takes a batch without records for the end of an answer."""

    def batches(self, data: bytes | None) -> Iterable[Batch]:
        for batch in super().batches(data):
            if not batch.is_control and not batch.records():
                return
            yield batch


@defect("lets-no-broker-wait")
class LetsNoBrokerWait(Consumer):
    """Asks for records without pause and without letting the broker wait for them."""

    async def fetch(self, broker: int, partitions: Sequence[TopicPartition]) -> None:
        self.max_wait_ms = 0
        link = await self.topics.link_to(broker)
        for _ in range(30):
            await link.ask(self.body(Session(link), partitions))
        await super().fetch(broker, partitions)


@defect("gives-up-without-a-leader")
class GivesUpWithoutALeader(Consumer):
    """Reports an error if a partition has no leader when it is first looked up."""

    async def prepare(self) -> None:
        await super().prepare()
        if not self.sessions and any(self.topics.errors.get(tp[0]) for tp in self.assigned):
            self.fail(BrokerError(_LEADER_NOT_AVAILABLE))


@defect("passes-over-what-is-too-large")
class PassesOverWhatIsTooLarge(Consumer):
    """Skips a batch that decompresses to more than its own limit, and reports no error."""

    def batches(self, data: bytes | None) -> Iterable[Batch]:
        """Pass over large ones: the limit applies to what comes out, not to what was fetched."""
        for batch in RecordBatches(data, allow_partial=True, max_decompressed=_OWN_LIMIT):
            try:
                batch.records()
            except DecodeError:
                continue
            yield batch


class _Allocating(Consumer):
    def read_batch(
        self, tp: TopicPartition, each: Assigned, batch: Batch, aborted: Aborted
    ) -> None:
        try:
            super().read_batch(tp, each, batch, aborted)
        except DecodeError:
            raise MemoryError("no room for what the batch announces") from None


@defect("allocates-what-is-announced")
class AllocatesWhatIsAnnounced(Client):
    """Makes room for as much as a number in a batch says, and dies of it."""

    consumer = _Allocating

    def failure(self, error: Exception) -> dict[str, Any]:
        if isinstance(error, MemoryError):
            raise error
        return super().failure(error)


@defect("passes-over-older-messages")
class PassesOverOlderMessages(Consumer):
    """Reads record batches alone, and goes on behind messages of the formats before."""

    def records(self, batch: Batch) -> list[Record]:
        return super().records(batch) if batch.magic == _RECORD_BATCH else []


@defect("takes-relative-offsets-for-absolute")
class TakesRelativeOffsetsForAbsolute(Consumer):
    """Takes the offsets of messages within a message for those in the log (KIP-31)."""

    def records(self, batch: Batch) -> list[Record]:
        records = super().records(batch)
        if batch.magic != 1 or batch.compression is Compression.NONE:
            return records
        return [structs.replace(each, offset=number) for number, each in enumerate(records)]


@defect("gives-a-batch-one-time")
class GivesABatchOneTime(Consumer):
    """Gives every record of a batch the timestamp of the first."""

    def records(self, batch: Batch) -> list[Record]:
        records = super().records(batch)
        return [structs.replace(each, timestamp=records[0].timestamp) for each in records]


@defect("rewinds-every-partition")
class RewindsEveryPartition(Consumer):
    """Goes back in every partition of a topic if records of one are gone."""

    async def validate(self, tp: TopicPartition, each: Assigned) -> None:
        before = each.position
        await super().validate(tp, each)
        if each.position != before:
            for other in self.assigned.values():
                other.position = 0


@defect("starts-in-32-bits")
class StartsIn32Bits(Consumer):
    """Begins at the lower 32 bits of the offset at which the log begins."""

    async def reset(self, tp: TopicPartition, policy: str) -> None:
        await super().reset(tp, policy)
        each = self.assigned[tp]
        if each.position is not None:
            each.position %= 2**32


@defect("reads-32-bits-of-a-time")
class Reads32BitsOfATime(Consumer):
    """Delivers records with times in seconds of 32 bits, signed."""

    def delivered(self) -> list[dict[str, Any]]:
        found = super().delivered()
        for each in found:
            seconds = each["timestamp"] // 1000
            each["timestamp"] = ((seconds + 2**31) % 2**32 - 2**31) * 1000
        return found


@defect("validates-with-every-fetch")
class ValidatesWithEveryFetch(Consumer):
    """Asks before each fetch where the epoch of what it has read ends, although it knows."""

    async def prepare(self) -> None:
        for each in self.assigned.values():
            each.leader_epoch = min(each.leader_epoch, 0)
        await super().prepare()
