"""Defects of consumers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from kproto.records import Compression, RecordBatches
from kproto.records.batch import Batch
from kspec.defects.declaration import defect
from kspec.reference_client.consumer import Aborted, Assigned, Consumer, Session
from kspec.reference_client.link import BrokerError
from kspec.reference_client.topics import TopicPartition

__all__ = ["Buffering"]


@defect("delivers-the-whole-batch")
class DeliversTheWholeBatch(Consumer):
    """Delivers all records of a batch, also those before the position."""

    def is_wanted(self, offset: int, position: int) -> bool:
        return True


@defect("delivers-damaged-records")
class DeliversDamagedRecords(Consumer):
    """Does not check the checksums of batches."""

    def batches(self, data: bytes | None) -> Iterable[Batch]:
        return RecordBatches(data, allow_partial=True, check_crc=False)


@defect("passes-over-a-damaged-batch")
class PassesOverADamagedBatch(Consumer):
    """Skips a batch whose checksum is wrong, and reports no error."""

    def batches(self, data: bytes | None) -> Iterable[Batch]:
        every = RecordBatches(data, allow_partial=True, check_crc=False)
        return (each for each in every if each.crc_is_right())


@defect("delivers-control-records")
class DeliversControlRecords(Consumer):
    """Delivers the markers of transactions as if they were records."""

    def is_hidden(self, batch: Batch, aborted: Aborted) -> bool:
        return self.committed_only and aborted.covers(batch)


@defect("delivers-aborted-records")
class DeliversAbortedRecords(Consumer):
    """Delivers the records of aborted transactions although only committed ones were asked for."""

    def is_hidden(self, batch: Batch, aborted: Aborted) -> bool:
        return batch.is_control


@defect("hides-a-time-of-aborts")
class HidesATimeOfAborts(Consumer):
    """Hides every transaction's records while one that was aborted is open."""

    def is_hidden(self, batch: Batch, aborted: Aborted) -> bool:
        hidden = super().is_hidden(batch, aborted)
        return hidden or (batch.is_transactional and bool(aborted.open_ids))


@defect("moves-by-records")
class MovesByRecords(Consumer):
    """Goes on behind the last record that it delivered, not behind the batch."""

    def next_position(self, batch: Batch, position: int, offsets: Sequence[int]) -> int:
        return offsets[-1] + 1 if offsets else position


@defect("fails-on-a-partial-batch")
class FailsOnAPartialBatch(Consumer):
    """Takes a last batch that is cut off for an error."""

    def batches(self, data: bytes | None) -> Iterable[Batch]:
        return RecordBatches(data)


@defect("resets-to-the-latest")
class ResetsToTheLatest(Consumer):
    """Goes to the end of the log whatever the policy is."""

    async def reset(self, tp: TopicPartition, policy: str) -> None:
        await super().reset(tp, "latest")


@defect("resets-without-a-policy")
class ResetsWithoutAPolicy(Consumer):
    """Goes to the start of the log although it has no policy for a position out of range."""

    def out_of_range(self, tp: TopicPartition, each: Assigned) -> None:
        each.position = None

    async def reset(self, tp: TopicPartition, policy: str) -> None:
        await super().reset(tp, "earliest" if policy == "none" else policy)


@defect("starts-at-zero")
class StartsAtZero(Consumer):
    """Starts at offset 0 if it cannot learn where to start."""

    async def reset(self, tp: TopicPartition, policy: str) -> None:
        await super().reset(tp, policy)
        if self.assigned[tp].position is None:
            self.assigned[tp].position = 0


@defect("raises-what-passes")
class RaisesWhatPasses(Consumer):
    """Reports an error that a new look at the leader mends."""

    def look_again(self, tp: TopicPartition, row: Any, answer: Any) -> None:
        self.fail(BrokerError(row.error_code))


@defect("stays-with-the-old-leader")
class StaysWithTheOldLeader(Consumer):
    """Never looks for another leader."""

    def __init__(self, client: Any, options: Any, *more: Any) -> None:
        super().__init__(client, options, *more)
        self.first: dict[TopicPartition, int] = {}

    def look_again(self, tp: TopicPartition, row: Any, answer: Any) -> None:
        """Nothing."""

    async def prepare(self) -> None:
        await super().prepare()
        self.first = {**self.topics.leaders, **self.first}
        self.topics.leaders = dict(self.first)


@defect("insists-on-a-fetch-session")
class InsistsOnItsSession(Consumer):
    """Goes on with a fetch session that the broker does not know."""

    def keeps(self, session: Session, answer: Any, broker: int) -> bool:
        before = self.sessions[broker]
        kept = super().keeps(session, answer, broker)
        self.sessions[broker] = before
        return kept


@defect("ignores-a-truncation")
class IgnoresATruncation(Consumer):
    """Does not ask another leader whether what was read is still there."""

    async def validate(self, tp: TopicPartition, each: Assigned) -> None:
        """Nothing."""


@defect("ignores-the-preferred-replica")
class IgnoresThePreferredReplica(Consumer):
    """Fetches from the leader although it names a replica to fetch from."""

    def source(self, each: Assigned, leader: int) -> int:
        return leader


@defect("refuses-what-exceeds-its-limit")
class RefusesWhatExceedsItsLimit(Consumer):
    """Drops the records of an answer with more bytes than it asked for."""

    def read(self, tp: TopicPartition, each: Assigned, row: Any) -> None:
        if len(row.records or b"") <= self.partition_bytes:
            super().read(tp, each, row)


@defect("hides-a-fetch-error")
class HidesAFetchError(Consumer):
    """Reports no error for a partition that cannot be read."""

    def fail(self, problem: Exception) -> None:
        """Nothing."""


@defect("passes-over-compressed-batches")
class PassesOverCompressedBatches(Consumer):
    """Delivers nothing of a batch that is compressed."""

    def is_hidden(self, batch: Batch, aborted: Aborted) -> bool:
        return super().is_hidden(batch, aborted) or batch.compression is not Compression.NONE


@defect("reads-what-is-not-committed")
class ReadsWhatIsNotCommitted(Consumer):
    """Fetches up to the high watermark although only committed records were asked for."""

    def __init__(self, client: Any, options: Mapping[str, Any], *more: Any) -> None:
        super().__init__(client, {**options, "isolation": "read_uncommitted"}, *more)


@defect("forgets-every-abort-with-one")
class ForgetsEveryAbortWithOne(Consumer):
    """Takes the end of one aborted transaction for the end of every one."""

    class Hasty(Aborted):
        def covers(self, batch: Batch) -> bool:
            open_ids = set(self.open_ids)
            covered = super().covers(batch)
            if batch.is_control and self.open_ids != open_ids:
                self.open_ids.clear()
            return covered

    def aborted(self, row: Any) -> Aborted:
        return self.Hasty(super().aborted(row).listed)


class Buffering(Consumer):
    """Hands over one record at a time, and keeps the others."""

    def delivered(self) -> list[dict[str, Any]]:
        for each in self.assigned.values():
            if each.queue:
                return [each.queue.pop(0)]
        return []

    async def fetch_all(self) -> None:
        if not any(each.queue for each in self.assigned.values()):
            await super().fetch_all()


@defect("commits-what-is-buffered")
class CommitsWhatIsBuffered(Buffering):
    """Commits the position behind records that the application has not got yet."""


@defect("keeps-its-buffer")
class KeepsItsBuffer(Buffering):
    """Delivers what it has buffered although the application has chosen another position."""

    def assign(self, positions: Mapping[TopicPartition, int | None]) -> None:
        queues = {tp: each.queue for tp, each in self.assigned.items()}
        super().assign(positions)
        for tp, each in self.assigned.items():
            each.queue = queues.get(tp, [])


@defect("reads-empty-keys-as-null")
class ReadsEmptyKeysAsNull(Consumer):
    """Delivers no key where a record has an empty one."""

    def delivered(self) -> list[dict[str, Any]]:
        return [{**each, "key": each["key"] or None} for each in super().delivered()]


@defect("forgets-no-partition")
class ForgetsNoPartition(Consumer):
    """Leaves partitions in a fetch session that it does not read any more."""

    def forgotten(
        self, session: Session, partitions: Sequence[TopicPartition], *, by_id: bool
    ) -> list[tuple[TopicPartition, UUID]]:
        return []


@defect("sends-no-leader-epoch")
class SendsNoLeaderEpoch(Consumer):
    """Fetches without the leader epoch that it knows."""

    def known_epoch(self, tp: TopicPartition) -> int:
        return -1


@defect("sends-one-leader-epoch-for-all")
class SendsOneLeaderEpochForAll(Consumer):
    """Fetches every partition of a topic with the leader epoch of the first one."""

    def known_epoch(self, tp: TopicPartition) -> int:
        return super().known_epoch((tp[0], 0))
