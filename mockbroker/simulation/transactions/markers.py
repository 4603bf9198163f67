"""The ends of transactions in their partitions: how a leader takes a marker, and how a coordinator
sends them.

A marker that cannot be written now is sent again when its partition or its topic changes, and by
the next coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from kproto.records import end_transaction_marker
from mockbroker.errors import ClusterError
from mockbroker.simulation.coordinators.coordinator_kinds import INTERNAL_TOPIC_OF, CoordinatorKind
from mockbroker.simulation.coordinators.offset_store import OffsetStore
from mockbroker.simulation.coordinators.placement import Coordinators
from mockbroker.simulation.log.batches.batch_header import read_header
from mockbroker.simulation.log.logs import Logs
from mockbroker.simulation.log.producing.appender import Appender, AppendOutcome
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release
from mockbroker.simulation.state.actions import (
    Change,
    ConfigChanged,
    PartitionChanged,
    TopicDeleted,
)
from mockbroker.simulation.state.cluster_parts import NO_LEADER, TopicPartition, find_partition
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.timers import Timer
from mockbroker.simulation.transactions.partition_rules import (
    ON_MARKER,
    ON_MARKER_MADE,
    MarkerArrival,
)
from mockbroker.simulation.transactions.transactional_ids import (
    CodeAnswer,
    Transaction,
    TransactionState,
)

__all__ = ["MarkerSender", "MarkerToWrite", "MarkerWriter"]

_OFFSETS_TOPIC: Final = INTERNAL_TOPIC_OF[CoordinatorKind.GROUP].name
_FINAL_ERRORS: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""After these no marker of the transaction is sent any more."""


class MarkerToWrite(msgspec.Struct, frozen=True):
    """The end of a producer's transaction. ``version`` is the transaction version."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    committed: bool
    version: int = 0


class MarkerWriter:
    """Takes markers at the leaders of partitions. A marker in ``__consumer_offsets`` decides on the
    producer's pending offsets too."""

    def __init__(
        self,
        controller: Controller,
        logs: Logs,
        appender: Appender,
        coordinators: Coordinators,
        offsets: OffsetStore,
    ) -> None:
        self._controller = controller
        self._logs = logs
        self._appender = appender
        self._coordinators = coordinators
        self._offsets = offsets
        logs.release.follow(self._use_release)

    def _use_release(self, release: Release) -> None:
        self._rows = rows_of_release(ON_MARKER, release)
        self._rows_of_making = rows_of_release(ON_MARKER_MADE, release)

    def can_make(self, broker_id: int, tp: TopicPartition, marker: MarkerToWrite) -> bool:
        """Whether Kafka can make the batch of a marker; if it cannot, the whole request fails."""
        arrival = self._arrival(broker_id, tp, marker)
        apply_first(self._rows_of_making, arrival, arrival)
        return not arrival.code

    def write(
        self,
        broker_id: int,
        tp: TopicPartition,
        marker: MarkerToWrite,
        done: Callable[[ErrorCode], None],
    ) -> Callable[[], None]:
        """Append a marker and call ``done`` once the replicas have it, or with its error.

        Returns what ends the wait, without a call of ``done``.
        """
        code = self._refusal(broker_id, tp, marker)
        if code:
            done(code)
            return lambda: None
        outcome = self._append(tp, marker)
        wait = self._appender.wait([outcome])

        def end() -> None:
            wait.end()
            if not outcome.error:
                self._decide_offsets(tp, marker)
            done(outcome.error)

        wait.when_over(end)
        return wait.end

    def write_alone(self, tp: TopicPartition, marker: MarkerToWrite) -> None:
        """Append a marker without the checks of a leader, and wait for nothing."""
        self._append(tp, marker)
        self._decide_offsets(tp, marker)

    def _append(self, tp: TopicPartition, marker: MarkerToWrite) -> AppendOutcome:
        data = end_transaction_marker(
            commit=marker.committed,
            producer_id=marker.producer_id,
            producer_epoch=marker.epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=self._controller.now_ms,
        )
        base_offset = self._logs.append(tp, data, read_header(data))
        return AppendOutcome(tp, base_offset=base_offset, end_offset=base_offset + 1)

    def _decide_offsets(self, tp: TopicPartition, marker: MarkerToWrite) -> None:
        if tp[0] == _OFFSETS_TOPIC:
            self._offsets.end_transaction(marker.producer_id, tp, committed=marker.committed)

    def _refusal(self, broker_id: int, tp: TopicPartition, marker: MarkerToWrite) -> ErrorCode:
        arrival = self._arrival(broker_id, tp, marker)
        apply_first(self._rows, arrival, arrival)
        return arrival.code

    def _arrival(self, broker_id: int, tp: TopicPartition, marker: MarkerToWrite) -> MarkerArrival:
        partition = find_partition(self._controller.state.topics, tp)
        is_hosted = partition is not None and broker_id in partition.hosts
        is_hosted = is_hosted and not self._logs.is_failed(tp, broker_id)
        return MarkerArrival(
            is_hosted=is_hosted,
            leads=partition is not None and partition.leader == broker_id,
            is_loaded=tp not in self._coordinators.loading,
            has_replicas=partition is not None
            and len(partition.isr) >= self._logs.min_isr(tp[0], partition),
            magic=self._logs.settings(tp[0]).magic if partition is not None else 2,
            known=self._logs.log(tp).producers.get(marker.producer_id) if partition else None,
            producer_id=marker.producer_id,
            epoch=marker.epoch,
            coordinator_epoch=marker.coordinator_epoch,
            version=marker.version,
            of_offsets=tp[0] == _OFFSETS_TOPIC,
        )


class MarkerSender:
    """Sends the markers of transactions whose end is written.

    ``complete`` is called once a transaction lacks none; it calls back with the error of the log.
    ``delay_ms`` is the time from the end of a transaction until its markers are sent.
    """

    def __init__(
        self,
        controller: Controller,
        coordinators: Coordinators,
        writer: MarkerWriter,
        groups_with_pending: Callable[[], Iterable[str]],
        complete: Callable[[Transaction, CodeAnswer], None],
        delay_ms: int = 0,
    ) -> None:
        self._controller = controller
        self._coordinators = coordinators
        self._writer = writer
        self._complete = complete
        self._sending: dict[str, Transaction] = {}
        self._completing: set[str] = set()
        self._waits: dict[tuple[str, TopicPartition], Callable[[], None]] = {}
        self._held: set[str] = set()
        self._holds_all = False
        self._delay_ms = delay_ms
        self._delays: dict[str, Timer] = {}
        controller.add_hooks((PartitionChanged, TopicDeleted, ConfigChanged), after=self._after)
        coordinators.attach(
            CoordinatorKind.GROUP,
            groups_with_pending,
            on_unload=lambda keys: None,
            on_load=lambda keys: self._push_all(),
        )

    def send(self, transaction: Transaction) -> None:
        """Send a marker to each partition of a transaction."""
        self.withdraw(transaction.transactional_id)
        transaction.unmarked = dict.fromkeys(transaction.metadata.partitions)
        self._sending[transaction.transactional_id] = transaction
        if self._delay_ms:
            self._delay(transaction)
        self._push(transaction)

    def _delay(self, transaction: Transaction) -> None:
        name = transaction.transactional_id

        def expire() -> None:
            del self._delays[name]
            self._push(transaction)

        self._delays[name] = timer = self._controller.timers.timer(expire, f"markers of {name}")
        timer.set(self._controller.now_ms + self._delay_ms)

    def withdraw(self, transactional_id: str) -> None:
        """Send nothing more of a transaction, and wait for nothing: its coordinator is gone, or a
        partition knows a newer one."""
        self._sending.pop(transactional_id, None)
        self._completing.discard(transactional_id)
        delay = self._delays.pop(transactional_id, None)
        if delay is not None:
            delay.set(None)
        for key in [wait for wait in self._waits if wait[0] == transactional_id]:
            self._waits.pop(key)()

    # ---- steps of a tester ---------------------------------------------------------------------

    def hold(self, transactional_id: str | None) -> None:
        """Send no markers of a transaction, None: of any. Raises ClusterError if held already."""
        if self.is_held(transactional_id):
            raise ClusterError(f"the markers of {_name(transactional_id)} are held already")
        if transactional_id is None:
            self._holds_all = True
        else:
            self._held.add(transactional_id)

    def release(self, transactional_id: str | None) -> None:
        """Send the markers that were held, None: all. Raises ClusterError if none were."""
        if transactional_id is None:
            if not self._holds_all and not self._held:
                raise ClusterError("no markers are held")
            self._holds_all = False
            self._held.clear()
        elif transactional_id in self._held:
            self._held.remove(transactional_id)
        else:
            raise ClusterError(f"the markers of {_name(transactional_id)} are not held")
        self._push_all()

    def is_held(self, transactional_id: str | None) -> bool:
        """Whether the markers of a transaction, None: all markers, are held."""
        return self._holds_all or transactional_id in self._held

    # ---- sending -------------------------------------------------------------------------------

    def _after(self, cause: str, change: Change) -> None:
        self._push_all()

    def _push_all(self) -> None:
        for transaction in tuple(self._sending.values()):
            self._push(transaction)

    def _push(self, transaction: Transaction) -> None:
        name = transaction.transactional_id
        is_served = self._coordinators.is_active(CoordinatorKind.TRANSACTION, name)
        if self.is_held(name) or name in self._delays or not is_served:
            return
        # All are on their way before the first answer, which may say that there is a newer one.
        for tp in [each for each in transaction.unmarked if (name, each) not in self._waits]:
            self._send(transaction, tp)
        if self._sending.get(name) is transaction:
            self._complete_if_marked(transaction)
        elif name not in self._sending:
            self.withdraw(name)

    def _send(self, transaction: Transaction, tp: TopicPartition) -> None:
        partition = find_partition(self._controller.state.topics, tp)
        if partition is None:
            transaction.unmarked.pop(tp, None)
            return
        if partition.leader == NO_LEADER:
            return
        metadata = transaction.metadata
        marker = MarkerToWrite(
            metadata.producer_id,
            metadata.epoch,
            self._coordinator_epoch(transaction),
            metadata.state is TransactionState.PREPARE_COMMIT,
            metadata.version,
        )
        key = (transaction.transactional_id, tp)
        answered: list[ErrorCode] = []

        def done(code: ErrorCode) -> None:
            answered.append(code)
            waited = self._waits.pop(key, None) is not None
            self._written(transaction, tp, code)
            if waited:
                self._complete_if_marked(transaction)

        end = self._writer.write(partition.leader, tp, marker, done)
        if not answered:
            self._waits[key] = end

    def _written(self, transaction: Transaction, tp: TopicPartition, code: ErrorCode) -> None:
        if code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT):
            transaction.unmarked.pop(tp, None)
        elif code in _FINAL_ERRORS:
            self.withdraw(transaction.transactional_id)

    def _complete_if_marked(self, transaction: Transaction) -> None:
        name = transaction.transactional_id
        if (
            transaction.unmarked
            or self._sending.get(name) is not transaction
            or name in self._completing
        ):
            return
        self._completing.add(name)

        def done(code: ErrorCode) -> None:
            self._completing.discard(name)
            if code != ErrorCode.COORDINATOR_NOT_AVAILABLE:  # it is tried again
                self._sending.pop(name, None)

        self._complete(transaction, done)

    def _coordinator_epoch(self, transaction: Transaction) -> int:
        """The leader epoch of the partition that holds the transactional id."""
        tp = self._coordinators.partition_of(
            CoordinatorKind.TRANSACTION, transaction.transactional_id
        )
        return self._controller.partition(tp).leader_epoch


def _name(transactional_id: str | None) -> str:
    return "all transactions" if transactional_id is None else repr(transactional_id)
