"""Defects of transactional producers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from kspec.defects.declaration import defect
from kspec.defects.producers import KeepsTheOldLeader
from kspec.reference_client.coordinators import TRANSACTION, Coordinators, GroupMetadata
from kspec.reference_client.link import BrokerError, Link, LinkClosedError, TimedOutError
from kspec.reference_client.producer import OutgoingBatch
from kspec.reference_client.topics import TopicPartition
from kspec.reference_client.transactional_producer import TransactionalProducer

__all__: list[str] = []

_CONCURRENT_TRANSACTIONS: Final = 51
_MANY: Final = 60


@defect("never-ends-a-transaction")
class NeverEndsATransaction(TransactionalProducer):
    """Reports a transaction as ended and sends nothing to the coordinator."""

    async def end(self, *, committed: bool) -> None:
        self.is_open, self.error = False, None


@defect("commits-what-is-aborted")
class CommitsWhatIsAborted(TransactionalProducer):
    """Commits a transaction whose abort was requested."""

    async def end(self, *, committed: bool) -> None:
        await super().end(committed=True)


@defect("sends-plain-batches")
class SendsPlainBatches(TransactionalProducer):
    """Does not mark its batches as transactional."""

    def is_in_transaction(self) -> bool:
        return False


@defect("keeps-the-former-epoch")
class KeepsTheFormerEpoch(TransactionalProducer):
    """Ignores the epoch in the answer to EndTxn."""

    def take_new_epoch(self, answer: Any) -> None:
        """Ignored."""


@defect("keeps-the-former-producer-id")
class KeepsTheFormerProducerId(TransactionalProducer):
    """Takes the epoch of an answer to EndTxn, but not the producer id."""

    def take_new_epoch(self, answer: Any) -> None:
        self.take_identity(self.identity[0], answer.producer_epoch)


@defect("goes-on-with-the-sequence")
class GoesOnWithTheSequence(TransactionalProducer):
    """Continues its sequences under another epoch."""

    def take_identity(self, producer_id: int, epoch: int) -> None:
        self.identity = (producer_id, epoch)
        self.numbered_under = dict.fromkeys(self.numbered_under, self.identity)


@defect("adds-no-partitions")
class AddsNoPartitions(TransactionalProducer):
    """Produces to partitions that it did not add to the transaction."""

    async def add_partitions(self, wanted: Sequence[TopicPartition]) -> None:
        """Nothing is sent."""


@defect("adds-partitions-once")
class AddsPartitionsOnce(TransactionalProducer):
    """Adds a partition to its first transaction alone."""

    async def begin(self) -> None:
        added = self.added
        await super().begin()
        self.added = added


@defect("adds-partitions-behind")
class AddsPartitionsBehind(TransactionalProducer):
    """Adds a partition after it has produced to it."""

    async def prepare(self, pending: Sequence[OutgoingBatch]) -> None:
        self.has_begun = True

    async def end(self, *, committed: bool) -> None:
        if not self.is_version_2 and self.sequences:
            await self.add_partitions(sorted(self.sequences))
        await super().end(committed=committed)


@defect("adds-partitions-always")
class AddsPartitionsAlways(TransactionalProducer):
    """Adds partitions although the brokers do it by themselves."""

    async def prepare(self, pending: Sequence[OutgoingBatch]) -> None:
        self.has_begun = True
        missing = sorted({each.tp for each in pending} - self.added)
        if missing:
            await self.add_partitions(missing)


@defect("trusts-the-version-of-produce")
class TrustsTheVersionOfProduce(TransactionalProducer):
    """Takes the highest versions for a promise that brokers add partitions by themselves."""

    def has_feature(self) -> bool:
        links = [each for each in self.client.links.values() if each.versions]
        return any(each.choose_version(0) >= 12 for each in links)


@defect("gives-up-on-the-coordinator")
class GivesUpOnTheCoordinator(TransactionalProducer):
    """Fails at the first error of a coordinator, whatever it is."""

    class Impatient(Coordinators):
        def passes(self, code: int) -> bool:
            return False

        async def find(self, kind: int, key: str) -> tuple[str, int]:
            """The first request of all makes the brokers create the internal topic."""
            try:
                return await super().find(kind, key)
            except BrokerError:
                await self.client.refresh()
                return await super().find(kind, key)

    coordinators_type: ClassVar[type[Coordinators]] = Impatient

    async def attempt(self, pending: Sequence[OutgoingBatch]) -> Exception | None:
        problem = await super().attempt(pending)
        if isinstance(problem, BrokerError):
            for batch in pending:
                batch.fail(problem.code)
        return problem

    def may_retry(self, code: int, batch: OutgoingBatch) -> bool:
        return code != _CONCURRENT_TRANSACTIONS and super().may_retry(code, batch)


@defect("keeps-the-coordinator")
class KeepsTheCoordinator(TransactionalProducer):
    """Never looks for another coordinator."""

    class Faithful(Coordinators):
        def forget(self, kind: int, key: str) -> None:
            """Ignored."""

    coordinators_type: ClassVar[type[Coordinators]] = Faithful


@defect("fences-back")
class FencesBack(TransactionalProducer):
    """Gets a new epoch when another producer has taken over, and reports success."""

    async def end(self, *, committed: bool) -> None:
        try:
            await super().end(committed=committed)
        except BrokerError:
            self.fatal = self.error = None
            self.identity, self.is_open = (-1, -1), False
            await self.initialize()


@defect("hides-a-failed-end")
class HidesAFailedEnd(TransactionalProducer):
    """Reports success when the coordinator refuses to end the transaction."""

    def end_failed(self, code: int) -> None:
        """Ignored."""


@defect("hides-a-failed-record")
class HidesAFailedRecord(TransactionalProducer):
    """Reports success for records that the broker refused, and commits the rest."""

    async def send(self, records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        found = await super().send(records)
        self.error = self.fatal = None
        return [
            {"topic": record["topic"], "partition": record["partition"], "offset": 0}
            if "error" in each
            else each
            for record, each in zip(records, found, strict=True)
        ]


@defect("commits-in-spite-of-an-error")
class CommitsInSpiteOfAnError(TransactionalProducer):
    """Commits the rest of a transaction of which a record failed."""

    def take_error(self, error: BrokerError) -> None:
        """Ignored."""


@defect("ends-with-any-error")
class EndsWithAnyError(TransactionalProducer):
    """Is of no more use after any error of a transaction."""

    def is_fatal(self, code: int) -> bool:
        return True


@defect("keeps-the-epoch-of-an-abort")
class KeepsTheEpochOfAnAbort(TransactionalProducer):
    """Gets no new epoch after sequences that did not fit."""

    def begin_epoch(self, refused: Sequence[OutgoingBatch]) -> None:
        super().begin_epoch(refused)
        self.is_doubtful = False


@defect("aborts-after-a-lost-answer")
class AbortsAfterALostAnswer(TransactionalProducer):
    """Aborts the transaction when it does not learn whether it was committed."""

    async def end(self, *, committed: bool) -> None:
        try:
            link = await self.coordinators.link(TRANSACTION, self.transactional_id)
            await link.ask(self.end_body(committed), self.version_for(link, 26))
        except (LinkClosedError, TimedOutError):
            await super().end(committed=not committed)
        self.is_open = self.is_ready = False


@defect("gives-up-on-a-lost-answer")
class GivesUpOnALostAnswer(TransactionalProducer):
    """Fails when the answer of the coordinator is lost."""

    class Hasty(Coordinators):
        def forget(self, kind: int, key: str) -> None:
            raise LinkClosedError("the coordinator is gone")

    coordinators_type: ClassVar[type[Coordinators]] = Hasty


@defect("renumbers-within-a-transaction")
class RenumbersWithinATransaction(TransactionalProducer):
    """Gives a batch of a transaction another sequence with each attempt."""

    def number(self, batch: OutgoingBatch) -> None:
        batch.sequence = -1
        super().number(batch)


@defect("commits-without-a-flush")
class CommitsWithoutAFlush(TransactionalProducer):
    """Drops at the commit what was not sent yet."""

    async def flush(self) -> None:
        self.unsent = []


@defect("carries-over-what-was-dropped")
class CarriesOverWhatWasDropped(TransactionalProducer):
    """Sends what was handed over before an abort with the next transaction."""

    async def abort(self) -> None:
        kept = self.unsent
        await super().abort()
        self.kept = kept

    async def begin(self) -> None:
        await super().begin()
        self.unsent = getattr(self, "kept", [])


@defect("sends-outside-transactions")
class SendsOutsideTransactions(TransactionalProducer):
    """Produces without a transaction."""

    def check_sending(self) -> None:
        """Ignored."""

    def is_in_transaction(self) -> bool:
        return self.is_open


@defect("ends-what-was-not-begun")
class EndsWhatWasNotBegun(TransactionalProducer):
    """Accepts the end of a transaction that is not open, and a second beginning."""

    def check_open(self) -> None:
        self.check_usable()

    async def begin(self) -> None:
        self.is_open = False
        await super().begin()


@defect("takes-an-id-from-a-refusal")
class TakesAnIdFromARefusal(TransactionalProducer):
    """Begins a transaction although it was refused a producer id."""

    async def initialize(self) -> None:
        try:
            await super().initialize()
        except BrokerError:
            self.fatal, self.is_ready = None, True


@defect("invents-a-producer-id")
class InventsAProducerId(TransactionalProducer):
    """Sends id 0 and epoch 0 with its first InitProducerId, although it has neither."""

    def init_body(self, link: Link) -> Any:
        body = super().init_body(link)
        if self.sends_epoch(link) and body.producer_id == -1:
            body.producer_id = body.producer_epoch = 0
        return body


@defect("asks-for-an-id-again-and-again")
class AsksForAnIdAgainAndAgain(TransactionalProducer):
    """Repeats InitProducerId whatever its error is."""

    async def initialize(self) -> None:
        for _ in range(_MANY):
            self.fatal = None
            try:
                return await super().initialize()
            except BrokerError as error:
                problem = error
        raise problem


@defect("adds-no-group")
class AddsNoGroup(TransactionalProducer):
    """Commits offsets of a group that it did not add to the transaction."""

    async def add_group(self, group: str) -> None:
        """Nothing is sent."""


@defect("sends-no-offsets")
class SendsNoOffsets(TransactionalProducer):
    """Adds the group to the transaction and leaves its offsets out."""

    async def commit_offsets(
        self, offsets: Mapping[TopicPartition, int], group: GroupMetadata
    ) -> None:
        """Nothing is sent."""


@defect("hides-refused-offsets")
class HidesRefusedOffsets(TransactionalProducer):
    """Reports offsets as part of the transaction that the group's coordinator refused."""

    async def commit_offsets(
        self, offsets: Mapping[TopicPartition, int], group: GroupMetadata
    ) -> None:
        try:
            await super().commit_offsets(offsets, group)
        except BrokerError:
            return


@defect("forgets-the-generation")
class ForgetsTheGeneration(TransactionalProducer):
    """Commits offsets as if it knew nothing of the consumer's membership."""

    def offsets_body(self, offsets: Mapping[TopicPartition, int], group: GroupMetadata) -> Any:
        return super().offsets_body(offsets, GroupMetadata(group.group))


@defect("has-a-time-out-of-its-own")
class HasATimeOutOfItsOwn(TransactionalProducer):
    """Requests a transaction time-out other than the one that was chosen."""

    def init_body(self, link: Link) -> Any:
        body = super().init_body(link)
        body.transaction_timeout_ms = 60_000
        return body


@defect("stays-with-the-leader-of-the-transaction")
class StaysWithTheLeaderOfTheTransaction(KeepsTheOldLeader, TransactionalProducer):
    """Never looks for another leader within a transaction."""


@defect("sends-the-first-offset")
class SendsTheFirstOffset(TransactionalProducer):
    """Makes the offset of the first partition a part of the transaction, and no others."""

    def offsets_body(self, offsets: Mapping[TopicPartition, int], group: GroupMetadata) -> Any:
        return super().offsets_body(dict([*offsets.items()][:1]), group)


@defect("sends-offsets-at-any-time")
class SendsOffsetsAtAnyTime(TransactionalProducer):
    """Sends offsets to the coordinator although no transaction is open."""

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, int], group: GroupMetadata
    ) -> None:
        await self.add_group(group.group)
        self.has_begun = True
        await self.commit_offsets(offsets, group)
