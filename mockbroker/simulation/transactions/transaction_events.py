"""What requests and time do to a transactional id: the contexts of the rows."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kproto.error_codes import ErrorCode
from kproto.records.model import NO_PRODUCER_ID
from mockbroker.simulation.releases.rows import Refusable
from mockbroker.simulation.state.cluster_parts import TopicPartition
from mockbroker.simulation.transactions.transaction_settings import TransactionSettings
from mockbroker.simulation.transactions.transactional_ids import (
    LAST_EPOCH,
    NO_EPOCH,
    CodeAnswer,
    ProducerAnswer,
    ProducerResult,
    Transaction,
    TransactionMetadata,
    TransactionState,
)
from mockbroker.simulation.transactions.transitions import Transitions

__all__ = [
    "AddEvent",
    "AgeEvent",
    "EndEvent",
    "FenceEvent",
    "Gate",
    "InitEvent",
    "InitGate",
    "InitRequest",
    "LoadEvent",
    "VerifyEvent",
]


class InitRequest(msgspec.Struct, frozen=True):
    """InitProducerId. ``producer_id`` and ``epoch`` are those that the producer has, or -1."""

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH
    enable_2pc: bool = False
    keep_prepared: bool = False

    @property
    def names_producer(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID


class InitGate(Refusable, msgspec.Struct):
    """InitProducerId, before the transactional id is looked up."""

    request: InitRequest
    settings: TransactionSettings
    coordinator_error: ErrorCode
    code: ErrorCode = ErrorCode.NONE


class Gate(Refusable, msgspec.Struct):
    """Another request, before the transactional id is looked up."""

    transactional_id: str
    exists: bool
    coordinator_error: ErrorCode
    code: ErrorCode = ErrorCode.NONE


class TransactionEvent(msgspec.Struct, kw_only=True):
    """Something happens to a transactional id."""

    machine: Transitions
    transaction: Transaction

    @property
    def metadata(self) -> TransactionMetadata:
        return self.transaction.metadata

    @property
    def state(self) -> TransactionState:
        return self.transaction.metadata.state

    @property
    def is_pending(self) -> bool:
        return self.transaction.pending is not None


class InitEvent(TransactionEvent, kw_only=True):
    """A producer asks for its id and epoch. ``fence`` aborts the open transaction."""

    request: InitRequest
    answer: ProducerAnswer
    fence: Callable[[Transaction, ProducerAnswer], None]

    def refuse(self, code: ErrorCode) -> None:
        self.answer(ProducerResult(code))


class ProducerEvent(TransactionEvent, kw_only=True):
    """A request that names the producer."""

    producer_id: int
    epoch: int

    @property
    def is_other_producer(self) -> bool:
        return self.producer_id != self.metadata.producer_id

    @property
    def is_other_epoch(self) -> bool:
        return self.epoch != self.metadata.epoch


class AddEvent(ProducerEvent, kw_only=True):
    """Partitions are to join the transaction. ``version`` is the client's transaction version."""

    partitions: tuple[TopicPartition, ...]
    version: int
    answer: CodeAnswer

    @property
    def missing(self) -> tuple[TopicPartition, ...]:
        known = self.metadata.partitions
        return tuple(tp for tp in dict.fromkeys(self.partitions) if tp not in known)

    def refuse(self, code: ErrorCode) -> None:
        self.answer(code)


class VerifyEvent(Refusable, ProducerEvent, kw_only=True):
    """A partition's leader asks whether partitions belong to the transaction. ``code`` holds for
    all of them; without one, ``absent`` is the error of those that do not belong to it."""

    code: ErrorCode = ErrorCode.NONE
    absent: ErrorCode = ErrorCode.NONE


class EndEvent(ProducerEvent, kw_only=True):
    """EndTxn. ``version`` is the client's transaction version."""

    committed: bool
    version: int
    answer: ProducerAnswer

    @property
    def retries_epoch(self) -> bool:
        """Whether the request was carried out already, which raised the epoch."""
        return self.metadata.epoch == self.epoch + 1

    @property
    def retries_rotation(self) -> bool:
        """Whether the request was carried out already, which replaced the producer id."""
        metadata = self.metadata
        return (
            metadata.previous_producer_id == self.producer_id
            and self.epoch == LAST_EPOCH
            and metadata.epoch == 0
        )

    @property
    def is_retry(self) -> bool:
        return self.retries_epoch or self.retries_rotation

    @property
    def completed_as_wanted(self) -> bool:
        """Whether the last transaction ended as the request says."""
        return self.state is (
            TransactionState.COMPLETE_COMMIT if self.committed else TransactionState.COMPLETE_ABORT
        )

    def refuse(self, code: ErrorCode) -> None:
        self.answer(ProducerResult(code))


class FenceEvent(TransactionEvent, kw_only=True):
    """An open transaction is aborted, and its producer fenced."""

    answer: ProducerAnswer


class AgeEvent(TransactionEvent, kw_only=True):
    """Time has passed. ``fence`` aborts the transaction, ``forget`` drops the transactional id."""

    settings: TransactionSettings
    fence: Callable[[Transaction], None] = lambda transaction: None
    forget: Callable[[Transaction], None] = lambda transaction: None

    @property
    def now_ms(self) -> int:
        return self.machine.now_ms


class LoadEvent(TransactionEvent, kw_only=True):
    """A coordinator has loaded the transactional id."""
