"""Transactions as values for testers and for DescribeTransactions, held things included."""

from __future__ import annotations

from typing import Any

import msgspec

from mockbroker.simulation.state.cluster_parts import TopicPartition
from mockbroker.simulation.transactions.transactional_ids import PREPARED, Transaction

__all__ = ["TransactionView", "transaction_json", "view_transaction"]


class TransactionView(msgspec.Struct, frozen=True):
    """A transactional id. ``state`` is Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit
    or CompleteAbort; ``pending`` is the state that follows as soon as it is written, or the markers
    are. ``partitions`` are those of the open transaction, or those that lack their marker.
    ``start_ms`` is on the simulated clock, -1 if no transaction was ever begun; ``held`` says
    whether ``hold-markers`` keeps markers from being written."""

    transactional_id: str
    state: str
    pending: str | None
    producer_id: int
    epoch: int
    partitions: tuple[TopicPartition, ...]
    start_ms: int
    timeout_ms: int
    held: bool


def view_transaction(transaction: Transaction, *, held: bool = False) -> TransactionView:
    """Return a view of a transaction as it is now."""
    metadata, pending = transaction.metadata, transaction.pending
    is_prepared = metadata.state in PREPARED
    return TransactionView(
        transaction.transactional_id,
        str(metadata.state),
        None if pending is None else str(pending.state),
        metadata.producer_id,
        metadata.epoch,
        tuple(transaction.unmarked) if is_prepared else metadata.partitions,
        metadata.start_ms,
        metadata.timeout_ms,
        held,
    )


def transaction_json(view: TransactionView) -> dict[str, Any]:
    """Return a transaction as JSON values; partitions are written ``foo-0``."""
    found = msgspec.structs.asdict(view)
    found["partitions"] = [f"{topic}-{index}" for topic, index in view.partitions]
    return found
