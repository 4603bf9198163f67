"""Operations on transactions that no client has.

Every operation raises ClusterError for a transactional id that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.transactions.markers import MarkerSender
from mockbroker.simulation.transactions.transactional_ids import (
    LAST_EPOCH,
    ProducerAnswer,
    ProducerResult,
    Transaction,
    TransactionState,
)
from mockbroker.simulation.transactions.transitions import Transitions

__all__ = ["TransactionOperations"]

_ANSWERED: Final = (ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS)


class TransactionOperations:
    """The operations that ``TransactionCoordinator`` inherits."""

    def __init__(
        self,
        machine: Transitions,
        markers: MarkerSender,
        fence: Callable[[Transaction, ProducerAnswer], None],
    ) -> None:
        self.machine = machine
        self.markers = markers
        self._fence_transaction = fence
        self._transactions: dict[str, Transaction] = {}

    def expire(self, transactional_id: str) -> None:
        """Abort the open transaction as if its time-out had passed: its producer is fenced."""
        self._fence_transaction(self._ongoing(transactional_id), _raise_for(transactional_id))

    def abort(self, transactional_id: str) -> None:
        """Abort the open transaction without a fence: the epoch stays, whatever the version."""
        self.machine.prepare(
            self._ongoing(transactional_id), _raise_for(transactional_id),
            committed=False, version=0,
        )  # fmt: skip

    def fence_producer(self, transactional_id: str) -> None:
        """Fence the producer: another one initializes its id, the epoch is bumped, and an open
        transaction is aborted."""
        transaction = self._existing(transactional_id)
        if transaction.state is TransactionState.ONGOING:
            self._fence_transaction(self._unhurried(transaction), _raise_for(transactional_id))
            if transaction.pending is not None:
                return  # the markers wait; the producer is fenced already
        metadata = self._unhurried(transaction).metadata
        if metadata.is_exhausted:
            producer_id, epoch = self.machine.new_producer_id(transactional_id), 0
        else:
            producer_id, epoch = metadata.producer_id, metadata.epoch + 1
        self.machine.initialize(
            transaction, metadata.timeout_ms, _raise_for(transactional_id),
            producer_id=producer_id, epoch=epoch, last_epoch=-1,
        )  # fmt: skip

    def set_epoch(self, transactional_id: str, epoch: int) -> None:
        """Change the producer's epoch, for example to one that is soon exhausted."""
        transaction = self._unhurried(self._existing(transactional_id))
        if not 0 <= epoch <= LAST_EPOCH:
            raise ClusterError(f"an epoch is a number from 0 to {LAST_EPOCH}, not {epoch}")
        if transaction.state is TransactionState.ONGOING:
            raise ClusterError(f"{transactional_id!r} has an open transaction")
        transaction.metadata = replace(transaction.metadata, epoch=epoch, last_epoch=-1)
        self.machine.changed(transaction)

    def _existing(self, transactional_id: str) -> Transaction:
        found = self._transactions.get(transactional_id)
        if found is None:
            known = ", ".join(sorted(self._transactions)) or "none"
            raise ClusterError(
                f"there is no transactional id {transactional_id!r:.80}; known: {known:.200}"
            )
        return found

    def _ongoing(self, transactional_id: str) -> Transaction:
        found = self._unhurried(self._existing(transactional_id))
        if found.state is not TransactionState.ONGOING:
            raise ClusterError(
                f"transactional id {transactional_id!r} is {found.state}: it has no open "
                "transaction"
            )
        return found

    @staticmethod
    def _unhurried(transaction: Transaction) -> Transaction:
        if transaction.pending is not None:
            raise ClusterError(
                f"transactional id {transaction.transactional_id!r} is {transaction.state} and "
                f"becomes {transaction.pending.state}; wait until then"
            )
        return transaction


def _raise_for(transactional_id: str) -> ProducerAnswer:
    def answer(result: ProducerResult) -> None:
        if result.code not in _ANSWERED:
            raise ClusterError(
                f"transactional id {transactional_id!r} cannot be changed: error "
                f"{result.code.name} ({result.code})"
            )

    return answer
