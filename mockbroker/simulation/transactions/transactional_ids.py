"""What a transaction coordinator knows of a transactional id."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from kproto.records.model import NO_PRODUCER_ID
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = [
    "COMPLETE",
    "LAST_EPOCH",
    "NO_EPOCH",
    "NO_TIME",
    "PREPARED",
    "CodeAnswer",
    "ProducerAnswer",
    "ProducerResult",
    "Transaction",
    "TransactionMetadata",
    "TransactionState",
]

NO_EPOCH: Final = -1
NO_TIME: Final = -1
LAST_EPOCH: Final = 2**15 - 2
"""The last epoch that a producer uses. One more is left so that it can be fenced."""


class TransactionState(enum.StrEnum):
    """The names that clients see. ``number`` is the state's in ``__transaction_state``."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"

    @property
    def number(self) -> int:
        return _STATES.index(self)


_STATES: Final = list(TransactionState)

PREPARED: Final = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
COMPLETE: Final = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


class TransactionMetadata(msgspec.Struct, frozen=True):
    """The state of a transactional id, as one record of ``__transaction_state`` holds it.

    ``version`` is the transaction version (KIP-890) of the client that changed it last.
    ``next_producer_id`` follows once the transaction is complete, where the epochs of the present
    producer id are used up. ``last_epoch`` is the epoch before, as long as its owner may repeat a
    request. Times are milliseconds.
    """

    producer_id: int
    timeout_ms: int
    update_ms: int
    epoch: int = NO_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    start_ms: int = NO_TIME
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    last_epoch: int = NO_EPOCH
    version: int = 0

    def becomes(self, state: TransactionState, **changes: Any) -> TransactionMetadata:
        """Return what the next record says."""
        return replace(self, state=state, previous_producer_id=self.producer_id, **changes)

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no epoch left for a client."""
        return self.epoch >= LAST_EPOCH

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open or about to end."""
        return self.state is TransactionState.EMPTY or self.state in COMPLETE


class Transaction(msgspec.Struct):
    """A transactional id at its coordinator.

    ``pending`` is the state that is being written, or that follows once the markers are written;
    ``pending_end`` the end of its record in the log. ``unmarked`` are the partitions that lack
    their marker.
    """

    transactional_id: str
    metadata: TransactionMetadata
    pending: TransactionMetadata | None = None
    pending_end: int | None = None
    unmarked: dict[TopicPartition, None] = msgspec.field(default_factory=dict)
    is_stored: bool = False
    has_failed_fence: bool = False
    """An epoch was raised that could not be written; no producer has seen it."""

    @property
    def state(self) -> TransactionState:
        return self.metadata.state


class ProducerResult(msgspec.Struct, frozen=True):
    """The answer to InitProducerId or EndTxn."""

    code: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH


ProducerAnswer: TypeAlias = Callable[[ProducerResult], None]
CodeAnswer: TypeAlias = Callable[[ErrorCode], None]
