"""Defects of producers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kproto.records import Compression
from kproto.records.crc import crc32c
from kproto.records.record_batch import CHECKED, CRC
from kspec.defects.declaration import defect
from kspec.reference_client.link import Link, LinkClosedError
from kspec.reference_client.producer import OutgoingBatch, Producer, Request
from kspec.reference_client.topics import TopicPartition

__all__ = ["KeepsTheOldLeader"]


@defect("batches-without-a-bound")
class BatchesWithoutABound(Producer):
    """Puts all records of a partition in one batch, however large they are."""

    def __init__(self, client: Any, options: Mapping[str, Any]) -> None:
        super().__init__(client, {**options, "batch_bytes": 1_000_000})


@defect("renumbers-a-retry")
class RenumbersARetry(Producer):
    """Gives a batch another sequence with each attempt."""

    def number(self, batch: OutgoingBatch) -> None:
        batch.sequence = -1
        super().number(batch)


@defect("takes-another-producer-id")
class TakesAnotherProducerId(Producer):
    """Gets another producer id before it sends a batch again."""

    async def attempt(self, pending: Sequence[OutgoingBatch]) -> Exception | None:
        if any(each.attempts for each in pending):
            self.identity = (-1, -1)
            await self.identify()
            self.sequences = {}
            for each in pending:
                each.sequence = -1
        return await super().attempt(pending)


@defect("resends-the-whole-request")
class ResendsTheWholeRequest(Producer):
    """Sends all batches of a request again if one of them failed."""

    def settle_all(self, request: Request, answer: Any) -> None:
        super().settle_all(request, answer)
        if any(not batch.done for batch in request.values()):
            for batch in request.values():
                batch.done = batch.done and batch.error is not None


@defect("overtakes-a-failed-batch")
class OvertakesAFailedBatch(Producer):
    """Has five batches in flight without sequences, so that a retry comes behind later ones."""

    def __init__(self, client: Any, options: Mapping[str, Any]) -> None:
        super().__init__(client, {**options, "idempotence": False})
        self.window = 5


@defect("fails-on-duplicates")
class FailsOnDuplicates(Producer):
    """Reports DUPLICATE_SEQUENCE_NUMBER as a failure."""

    def is_written(self, code: int) -> bool:
        return code == 0


@defect("claims-sent-for-written")
class ClaimsSentForWritten(Producer):
    """Reports a record as written when it was sent."""

    def unanswered(self, request: Request) -> None:
        for batch in request.values():
            batch.done, batch.base_offset = True, 0


@defect("leaves-a-gap")
class LeavesAGap(Producer):
    """Goes on with the next sequence after a batch that was never written."""

    def expire(self, pending: Sequence[OutgoingBatch]) -> None:
        for batch in pending:
            batch.fail(7, "not delivered in time")

    def begin_epoch(self, refused: Sequence[OutgoingBatch]) -> None:
        for batch in refused:
            batch.fail(45)


@defect("waits-for-no-answer")
class WaitsForNoAnswer(Producer):
    """Waits for the answer to a request with acks 0, which has none."""

    async def exchange(self, link: Link | None, request: Request) -> None:
        if self.acks == 0 and link is not None:
            try:
                await link.exchange(self.body(request), link.choose_version(0))
            except (LinkClosedError, TimeoutError):
                return
        await super().exchange(link, request)


@defect("labels-without-compressing")
class LabelsWithoutCompressing(Producer):
    """Marks a batch as compressed and leaves its records as they are."""

    def encoded(self, batch: OutgoingBatch) -> bytes:
        codec, self.codec = self.codec, Compression.NONE
        data = bytearray(super().encoded(batch))
        self.codec = codec
        data[CHECKED + 1] |= codec.value
        data[CRC : CRC + 4] = _crc(bytes(data)).to_bytes(4, "big")
        return bytes(data)


def _crc(data: bytes) -> int:
    return crc32c(data, CHECKED, len(data))


@defect("compresses-nothing")
class CompressesNothing(Producer):
    """Sends records uncompressed whatever codec was chosen."""

    def encoded(self, batch: OutgoingBatch) -> bytes:
        codec, self.codec = self.codec, Compression.NONE
        try:
            return super().encoded(batch)
        finally:
            self.codec = codec


@defect("loses-half-of-a-split")
class LosesHalfOfASplit(Producer):
    """Sends the first half of a batch that it splits, and reports both as written."""

    def split(self, batch: OutgoingBatch) -> None:
        super().split(batch)
        batch.parts[1].done, batch.parts[1].base_offset = True, 0


@defect("splits-nothing")
class SplitsNothing(Producer):
    """Fails every record of a batch that is too large."""

    def split(self, batch: OutgoingBatch) -> None:
        batch.fail(10)


@defect("retries-what-is-too-large")
class RetriesWhatIsTooLarge(Producer):
    """Sends a batch that is too large again and again as it is, without a pause."""

    def split(self, batch: OutgoingBatch) -> None:
        batch.error = None

    async def deliver(self, batches: list[OutgoingBatch], ends: float) -> None:
        self.client.pause = lambda attempt: 0.001  # type: ignore[method-assign]
        await super().deliver(batches, ends)


@defect("retries-whatever")
class RetriesWhatever(Producer):
    """Sends a batch again and again whatever its error is."""

    def may_retry(self, code: int, batch: OutgoingBatch) -> bool:
        return True


@defect("one-error-for-all")
class OneErrorForAll(Producer):
    """Gives the first error of an answer to every batch of the request."""

    def settle_all(self, request: Request, answer: Any) -> None:
        super().settle_all(request, answer)
        error = next((each.error for each in request.values() if each.done and each.error), None)
        if error is not None:
            for batch in request.values():
                batch.done, batch.error = True, error


@defect("hides-a-partition-error")
class HidesAPartitionError(Producer):
    """Takes an answer with one success for a success of every batch."""

    def settle_all(self, request: Request, answer: Any) -> None:
        super().settle_all(request, answer)
        if any(each.done and not each.error for each in request.values()):
            for batch in request.values():
                batch.done, batch.error = True, None


@defect("keeps-the-old-leader")
class KeepsTheOldLeader(Producer):
    """Never looks for another leader."""

    def __init__(self, client: Any, options: Mapping[str, Any]) -> None:
        super().__init__(client, options)
        self.first: dict[TopicPartition, int] = {}

    async def find_leaders(self, pending: Sequence[OutgoingBatch]) -> None:
        await super().find_leaders(pending)
        self.first = {**self.topics.leaders, **self.first}
        self.topics.leaders = dict(self.first)


@defect("ignores-leader-hints")
class IgnoresLeaderHints(Producer):
    """Does not look at the leader that an answer names."""

    def settle_all(self, request: Request, answer: Any) -> None:
        for topic in answer.responses:
            for row in topic.partition_responses:
                row.current_leader.leader_id = -1
        super().settle_all(request, answer)


@defect("one-offset-for-a-batch")
class OneOffsetForABatch(Producer):
    """Reports the offset of a batch for each of its records."""

    @dataclass(slots=True, eq=False)
    class Batch(OutgoingBatch):
        def offset_of(self, number: int) -> int:
            return self.base_offset

    batch: type[OutgoingBatch] = Batch


@defect("gives-up-on-an-unknown-producer")
class GivesUpOnAnUnknownProducer(Producer):
    """Fails for good when the broker does not know its producer id."""

    def begin_epoch(self, refused: Sequence[OutgoingBatch]) -> None:
        for batch in refused:
            batch.fail(59)


@defect("keeps-the-epoch")
class KeepsTheEpoch(Producer):
    """Starts sequences anew under the same epoch."""

    def begin_epoch(self, refused: Sequence[OutgoingBatch]) -> None:
        identity = self.identity
        super().begin_epoch(refused)
        self.identity = identity


@defect("keeps-the-sequence")
class KeepsTheSequence(Producer):
    """Raises the epoch and continues its sequences."""

    def begin_epoch(self, refused: Sequence[OutgoingBatch]) -> None:
        numbers = [each.sequence for each in refused]
        super().begin_epoch(refused)
        for batch, sequence in zip(refused, numbers, strict=True):
            batch.sequence, batch.identity = sequence, self.identity
            self.numbered_under[batch.tp] = self.identity


@defect("has-acks-of-its-own")
class HasAcksOfItsOwn(Producer):
    """Asks the leader alone to acknowledge, whatever was chosen."""

    def body(self, request: Request) -> Any:
        body = super().body(request)
        body.acks = 1
        return body


@defect("gets-no-producer-id")
class GetsNoProducerId(Producer):
    """Fails for good if it does not get a producer id at once."""

    async def attempt(self, pending: Sequence[OutgoingBatch]) -> Exception | None:
        problem = await super().attempt(pending)
        if problem is not None:
            for each in pending:
                each.fail(-1, str(problem))
        return problem


@defect("raises-the-last-epoch")
class RaisesTheLastEpoch(Producer):
    """Raises its epoch beyond the largest one, and fails."""

    def begin_epoch(self, refused: Sequence[OutgoingBatch]) -> None:
        producer_id, epoch = self.identity
        super().begin_epoch(refused)
        if self.identity == (-1, -1):
            self.identity = (producer_id, epoch + 1)


@defect("takes-no-answer-for-success")
class TakesNoAnswerForSuccess(Producer):
    """Reports a record as written of which the answer says nothing."""

    def settle_all(self, request: Request, answer: Any) -> None:
        named = {
            (self.topics.name(topic), row.index)
            for topic in answer.responses
            for row in topic.partition_responses
        }
        for tp, batch in request.items():
            if tp not in named:
                batch.done = True
        super().settle_all({tp: request[tp] for tp in request if tp in named}, answer)


@defect("takes-the-only-outcome-for-its-own")
class TakesTheOnlyOutcomeForItsOwn(Producer):
    """Takes an outcome for that of its only record, whatever partition it names."""

    def settle_all(self, request: Request, answer: Any) -> None:
        rows = [row for topic in answer.responses for row in topic.partition_responses]
        if len(rows) == len(request) == 1:
            ((_, rows[0].index),) = request
        super().settle_all(request, answer)


@defect("reports-32-bits-of-an-offset")
class Reports32BitsOfAnOffset(OutgoingBatch):
    """Reports the lower 32 bits of the offset of a record."""

    def offset_of(self, number: int) -> int:
        return super().offset_of(number) % 2**32
