"""What transaction coordinators write to ``__transaction_state``, as Kafka writes it.

::

    key    type int16 (0), then the fields of TransactionLogKey
    value  version int16 (1 with the feature transaction.version), then those of
           TransactionLogValue; null deletes the transactional id
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kproto.messages.transaction_log_key import TransactionLogKey
from kproto.messages.transaction_log_value import PartitionsSchema, TransactionLogValue
from kproto.records import Record
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.offset_store import Stored
from mockbroker.simulation.coordinators.placement import Coordinators
from mockbroker.simulation.log.producing.appender import Appender
from mockbroker.simulation.state.cluster_parts import NO_LEADER
from mockbroker.simulation.transactions.transactional_ids import (
    TransactionMetadata,
    TransactionState,
)

__all__ = ["TransactionLog", "transaction_record"]

_KEY_TYPE: Final = b"\0\0"


def transaction_record(
    transactional_id: str, metadata: TransactionMetadata | None, feature_level: int
) -> Record:
    """Return the record of a transactional id; None: of its deletion. ``feature_level`` is that of
    ``transaction.version``."""
    key = _KEY_TYPE + TransactionLogKey(transactional_id=transactional_id).encode(0)
    if metadata is None:
        return Record(key=key, value=None)
    version = 1 if feature_level else 0
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state.number,
        transaction_partitions=_partitions(metadata),
        transaction_last_update_timestamp_ms=metadata.update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
    )
    if version:
        value.previous_producer_id = metadata.previous_producer_id
        value.next_producer_id = metadata.next_producer_id
        value.client_transaction_version = metadata.version
    return Record(key=key, value=version.to_bytes(2, "big") + value.encode(version))


def _partitions(metadata: TransactionMetadata) -> list[PartitionsSchema] | None:
    if metadata.state is TransactionState.EMPTY:
        return None
    topics: dict[str, list[int]] = {}
    for name, index in metadata.partitions:
        topics.setdefault(name, []).append(index)
    return [PartitionsSchema(topic=name, partition_ids=ids) for name, ids in topics.items()]


class TransactionLog:
    """Writes to the partition of ``__transaction_state`` that a transactional id belongs to."""

    def __init__(
        self, coordinators: Coordinators, appender: Appender, feature_level: Callable[[], int]
    ) -> None:
        self._coordinators = coordinators
        self._appender = appender
        self._feature_level = feature_level

    def store(self, transactional_id: str, metadata: TransactionMetadata | None) -> Stored:
        """Append the state of a transactional id, or None: its deletion."""
        tp = self._coordinators.partition_of(CoordinatorKind.TRANSACTION, transactional_id)
        leader = self._coordinators.leader(tp)
        if leader == NO_LEADER:
            # Only testers act on transactions that have no coordinator.
            return Stored()
        record = transaction_record(transactional_id, metadata, self._feature_level())
        outcome = self._appender.append_internal(leader, tp, [record])
        if outcome.error:
            return Stored(outcome.error)
        wait = self._appender.wait([outcome])
        if wait.is_over:
            return Stored(outcome.error)
        return Stored(wait=wait, outcome=outcome)
