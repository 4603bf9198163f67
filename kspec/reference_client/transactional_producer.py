"""The reference transactional producer: KIP-98, 360, 447, 588 and 890, each rule in a method.

It is a producer that gets its id and epoch from the transaction's coordinator, tells it which
partitions a transaction has, and ends the transaction there. With the feature transaction.version 2
(KIP-890) the brokers add partitions themselves, and each end of a transaction raises the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from kspec.reference_client.coordinators import GROUP, TRANSACTION, Coordinators, GroupMetadata
from kspec.reference_client.link import BrokerError, Link
from kspec.reference_client.producer import OutgoingBatch, Producer
from kspec.reference_client.rules import ClientRules
from kspec.reference_client.topics import TopicPartition, message

__all__ = ["ProducerStateError", "TransactionalProducer"]

_FEATURE: Final = "transaction.version"
_INVALID_PRODUCER_EPOCH: Final = 47
_INVALID_TXN_STATE: Final = 48
_INVALID_PRODUCER_ID_MAPPING: Final = 49
_TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
_OPERATION_NOT_ATTEMPTED: Final = 55
_PRODUCER_FENCED: Final = 90
_TRANSACTION_TIMEOUT_MS: Final = 60_000
_LAST_OF_VERSION_1: Final[Mapping[int, int]] = {0: 11, 26: 4, 28: 4}
"""The highest versions of Produce, EndTxn and TxnOffsetCommit without transaction.version 2."""
_LAST_FOR_CLIENTS: Final = 3
"""Higher versions of AddPartitionsToTxn are for brokers."""
_EPOCH_SINCE: Final = 3
"""InitProducerId takes the producer's id and epoch since then (KIP-360)."""


class ProducerStateError(Exception):
    """A call that the state of the transaction does not allow. Nothing is sent."""


class TransactionalProducer(Producer):
    """A transactional producer of one client."""

    coordinators_type: ClassVar[type[Coordinators]] = Coordinators

    def __init__(self, client: ClientRules, options: Mapping[str, Any]) -> None:
        super().__init__(client, {**options, "acks": "all", "idempotence": True})
        self.transactional_id: str = options["transactional_id"]
        self.transaction_timeout_ms = options.get("transaction_timeout_ms", _TRANSACTION_TIMEOUT_MS)
        self.coordinators = self.coordinators_type(client)
        self.is_ready = False
        self.is_open = False
        self.added: set[TopicPartition] = set()
        self.has_begun = False
        """Whether the coordinator may know about the transaction."""
        self.error: BrokerError | None = None
        """Why the transaction can only be aborted."""
        self.fatal: BrokerError | None = None
        """Why the producer is of no more use."""
        self.is_doubtful = False
        """Whether the broker's sequences are unknown, so that a new epoch is needed (KIP-360)."""
        self.is_version_2 = False
        """Whether brokers add partitions by themselves, and ends raise the epoch (KIP-890)."""
        self.refused: dict[int, int] = {}
        """Codes of batches whose sequences did not fit."""

    # ---- calls -----------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Begin a transaction, with a producer id before the first one."""
        self.check_usable()
        if self.is_open:
            raise ProducerStateError("a transaction is open already")
        if not self.is_ready:
            await self.initialize()
        self.is_version_2 = self.has_feature()
        self.is_open, self.has_begun, self.error = True, False, None
        self.added, self.unsent = set(), []

    async def send(self, records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        self.check_sending()
        before, self.unsent = self.unsent, []
        found = await self.deliver_all([*before, *records])
        self.keep_error(found)
        return found[len(before) :]

    def hand_over(self, records: Sequence[Mapping[str, Any]]) -> None:
        self.check_sending()
        super().hand_over(records)

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, int], group: GroupMetadata
    ) -> None:
        """Make the offsets a part of the transaction."""
        self.check_sending()
        try:
            await self.add_group(group.group)
            self.has_begun = True
            await self.commit_offsets(offsets, group)
        except BrokerError as error:
            self.take_error(error)
            raise

    async def commit(self) -> None:
        """Write what was handed over and commit, unless something failed."""
        self.check_open()
        if self.error is not None:
            raise self.error
        await self.flush()
        await self.end(committed=True)

    async def abort(self) -> None:
        """Drop what was handed over and abort."""
        self.check_open()
        self.unsent = []
        await self.end(committed=False)

    def check_usable(self) -> None:
        if self.fatal is not None:
            raise self.fatal

    def check_open(self) -> None:
        self.check_usable()
        if not self.is_open:
            raise ProducerStateError("no transaction is open")

    def check_sending(self) -> None:
        """Refuse what would be part of no transaction, or of one that can only be aborted."""
        self.check_open()
        if self.error is not None:
            raise self.error

    async def flush(self) -> None:
        """Deliver what was handed over. Raises BrokerError if a record failed."""
        if self.unsent:
            before, self.unsent = self.unsent, []
            self.keep_error(await self.deliver_all(before))
        if self.error is not None:
            raise self.error

    # ---- errors ----------------------------------------------------------------------------------

    def keep_error(self, found: Sequence[Mapping[str, Any]]) -> None:
        """One record that failed makes the transaction fail."""
        for each in found:
            if "error" in each:
                self.take_error(BrokerError(each["code"], each["message"]))

    def take_error(self, error: BrokerError) -> None:
        if self.is_fatal(error.code):
            self.fatal = self.fatal or error
        else:
            self.error = self.error or error

    def is_fatal(self, code: int) -> bool:
        """Another producer has taken over, or the id may not be used: an abort cannot mend it."""
        return code in (
            _PRODUCER_FENCED,
            _INVALID_TXN_STATE,
            _INVALID_PRODUCER_ID_MAPPING,
            _TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        )

    def begin_epoch(self, refused: Sequence[OutgoingBatch]) -> None:
        """What did not fit fails its transaction; the next one has a new epoch."""
        self.is_doubtful = True
        for batch in refused:
            batch.fail(next(iter(self.refused.values()), -1))

    def look_back(self, sent: Sequence[OutgoingBatch], pending: Sequence[OutgoingBatch]) -> None:
        self.refused = {
            id(each): each.error["code"] for each in sent if not each.done and each.error
        }
        super().look_back(sent, pending)

    # ---- the producer id -------------------------------------------------------------------------

    async def identify(self) -> None:
        """The id comes with ``begin``."""

    async def initialize(self) -> None:
        """Get an id and an epoch, which fences producers with the same transactional id."""
        answer = await self.coordinated(self.init_body)
        code = answer.error_code
        if code:
            error = BrokerError(code)
            if self.is_fatal(code):
                self.fatal = error
            raise error
        self.take_identity(answer.producer_id, answer.producer_epoch)
        self.is_ready, self.is_doubtful = True, False

    def init_body(self, link: Link) -> Any:
        producer_id, epoch = self.identity if self.sends_epoch(link) else (-1, -1)
        return message("InitProducerIdRequest")(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.transaction_timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )

    def sends_epoch(self, link: Link) -> bool:
        """Whether the broker takes the producer's id and epoch, and raises it (KIP-360)."""
        return link.choose_version(22) >= _EPOCH_SINCE

    def take_identity(self, producer_id: int, epoch: int) -> None:
        self.identity = (producer_id, epoch)

    # ---- what is part of the transaction ---------------------------------------------------------

    def has_feature(self) -> bool:
        """Look at the finalized features, not at the versions of requests."""
        links = self.client.links.values()
        return any(each.features.get(_FEATURE, 0) >= 2 for each in links)

    def version_for(self, link: Link, api_key: int) -> int | None:
        """Return the highest version that the feature allows."""
        if self.is_version_2:
            return None
        return min(link.choose_version(api_key), _LAST_OF_VERSION_1[api_key])

    def produce_version(self, link: Link) -> int | None:
        return self.version_for(link, 0)

    async def prepare(self, pending: Sequence[OutgoingBatch]) -> None:
        """Add the partitions of the batches before the first record of each."""
        self.has_begun = True
        if self.is_version_2:
            return
        missing = sorted({each.tp for each in pending} - self.added)
        if missing:
            await self.add_partitions(missing)

    async def add_partitions(self, wanted: Sequence[TopicPartition]) -> None:
        topics: dict[str, list[int]] = {}
        for name, index in wanted:
            topics.setdefault(name, []).append(index)
        topic = message("AddPartitionsToTxnRequest.AddPartitionsToTxnTopic")
        producer_id, epoch = self.identity
        request = message("AddPartitionsToTxnRequest")(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[
                topic(name=name, partitions=indexes) for name, indexes in topics.items()
            ],
        )

        def first(answer: Any) -> int:
            codes = [
                row.partition_error_code
                for each in answer.results_by_topic_v3_and_below
                for row in each.results_by_partition
            ]
            other = (code for code in codes if code not in (0, _OPERATION_NOT_ATTEMPTED))
            return next(other, next((code for code in codes if code), 0))

        def version(link: Link) -> int:
            return min(link.choose_version(request.API_KEY), _LAST_FOR_CLIENTS)

        answer = await self.coordinated(request, first, version)
        code = first(answer)
        if code:
            raise BrokerError(code)
        self.added |= set(wanted)

    async def add_group(self, group: str) -> None:
        if self.is_version_2:
            return
        producer_id, epoch = self.identity
        request = message("AddOffsetsToTxnRequest")(
            transactional_id=self.transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=group,
        )
        answer = await self.coordinated(request)
        if answer.error_code:
            raise BrokerError(answer.error_code)

    async def commit_offsets(
        self, offsets: Mapping[TopicPartition, int], group: GroupMetadata
    ) -> None:
        await self.learn_ids(offsets)
        request = self.offsets_body(offsets, group)

        def first(answer: Any) -> int:
            codes = (row.error_code for topic in answer.topics for row in topic.partitions)
            return next((code for code in codes if code), 0)

        answer = await self.coordinators.ask(
            GROUP, group.group, request, first, lambda link: self.version_for(link, request.API_KEY)
        )
        if first(answer):
            raise BrokerError(first(answer))

    def offsets_body(self, offsets: Mapping[TopicPartition, int], group: GroupMetadata) -> Any:
        topics: dict[str, list[Any]] = {}
        row = message("TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition")
        for (name, index), offset in offsets.items():
            topics.setdefault(name, []).append(row(partition_index=index, committed_offset=offset))
        topic = message("TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic")
        producer_id, epoch = self.identity
        return message("TxnOffsetCommitRequest")(
            transactional_id=self.transactional_id,
            group_id=group.group,
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id_or_member_epoch=group.generation,
            member_id=group.member_id,
            group_instance_id=group.instance_id,
            topics=[
                topic(name=name, topic_id=self.topics.ids[name], partitions=rows)
                for name, rows in topics.items()
            ],
        )

    async def learn_ids(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Newer versions name topics by id."""
        unknown = {name for name, _ in offsets} - set(self.topics.ids)
        if unknown:
            await self.topics.refresh(unknown)

    def is_in_transaction(self) -> bool:
        return True

    def body(self, request: Mapping[TopicPartition, OutgoingBatch]) -> Any:
        body = super().body(request)
        body.transactional_id = self.transactional_id
        return body

    # ---- the end ---------------------------------------------------------------------------------

    async def end(self, *, committed: bool) -> None:
        """End the transaction at the coordinator, which may not know of it if it is empty.

        An answer that is lost is followed by the same request: the coordinator knows what it did.
        """
        if self.has_begun:
            answer = await self.coordinated(
                self.end_body(committed), version=lambda link: self.version_for(link, 26)
            )
            if answer.error_code:
                self.end_failed(answer.error_code)
            if getattr(answer, "producer_id", -1) >= 0:
                self.take_new_epoch(answer)
                self.is_doubtful = False
        self.is_open, self.error = False, None
        if self.is_doubtful:
            self.is_ready = False

    def end_body(self, committed: bool) -> Any:
        producer_id, epoch = self.identity
        return message("EndTxnRequest")(
            transactional_id=self.transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
        )

    def take_new_epoch(self, answer: Any) -> None:
        """The answer has the epoch of the next transaction (KIP-890)."""
        self.take_identity(answer.producer_id, answer.producer_epoch)

    def end_failed(self, code: int) -> None:
        """Raise the error: fatal if the producer was fenced, or else the transaction is aborted."""
        error = BrokerError(code)
        if self.is_fatal(code) or code == _INVALID_PRODUCER_EPOCH:
            self.fatal = error
        else:
            self.error = error
        raise error

    # ---- requests to the coordinator -------------------------------------------------------------

    async def coordinated(
        self,
        body: Any,
        code_of: Any = lambda answer: answer.error_code,
        version: Any = lambda _link: None,
    ) -> Any:
        return await self.coordinators.ask(
            TRANSACTION, self.transactional_id, body, code_of, version
        )
