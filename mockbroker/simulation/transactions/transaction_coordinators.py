"""The transaction coordinators of a cluster: requests in, answers out, rules between.

The state of a transactional id is kept as an object, whichever broker coordinates it. It changes
once the log of ``__transaction_state`` has the change, so a new coordinator knows what the log
says. Time is the cluster's virtual clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.placement import Coordinators
from mockbroker.simulation.log.logs import Logs
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, apply_first, rows_of_release
from mockbroker.simulation.state.cluster_parts import NO_LEADER, TopicPartition
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.transactions.markers import MarkerSender
from mockbroker.simulation.transactions.transaction_events import (
    AddEvent,
    AgeEvent,
    EndEvent,
    FenceEvent,
    Gate,
    InitEvent,
    InitGate,
    InitRequest,
    LoadEvent,
    VerifyEvent,
)
from mockbroker.simulation.transactions.transaction_operations import TransactionOperations
from mockbroker.simulation.transactions.transaction_rules import (
    FENCING,
    ON_ADD,
    ON_ADD_GATE,
    ON_END,
    ON_END_VERSION_2,
    ON_INIT,
    ON_INIT_GATE,
    ON_LOADED,
    ON_TIME_OUT,
    ON_UNUSED,
    ON_VERIFY,
)
from mockbroker.simulation.transactions.transaction_settings import (
    MOST_TRANSACTIONS,
    NO_TIME_OUT_MS,
    TransactionSettings,
)
from mockbroker.simulation.transactions.transaction_views import TransactionView, view_transaction
from mockbroker.simulation.transactions.transactional_ids import (
    NO_EPOCH,
    CodeAnswer,
    ProducerAnswer,
    ProducerResult,
    Transaction,
    TransactionMetadata,
    TransactionState,
)
from mockbroker.simulation.transactions.transitions import VERSION_2, Transitions

__all__ = ["TransactionCoordinator"]

_KIND: Final = CoordinatorKind.TRANSACTION


class TransactionCoordinator(TransactionOperations):
    """The transactions of one cluster, which runs ``release``."""

    def __init__(
        self,
        controller: Controller,
        coordinators: Coordinators,
        logs: Logs,
        machine: Transitions,
        markers: MarkerSender,
        settings: Callable[[], TransactionSettings],
        release: Release,
    ) -> None:
        super().__init__(machine, markers, self._fence)
        self._controller = controller
        self._coordinators = coordinators
        self._logs = logs
        self._settings = settings
        release.follow(self._use_release)
        self._started_ms = controller.now_ms
        self._time_outs = controller.timers.timer(
            lambda: self._check_ages(self._on_time_out), "time-outs of transactions"
        )
        self._expiry = controller.timers.timer(
            lambda: self._check_ages(self._on_unused), "expiry of transactional ids"
        )
        self._open_until_ms: dict[str, int] = {}
        self._idle_since_ms: dict[str, int] = {}
        machine.on_changed.append(self._changed)
        coordinators.attach(
            _KIND, lambda: self._transactions, on_unload=self._unload, on_load=self._load
        )

    def _use_release(self, release: Release) -> None:
        self._on_init_gate = rows_of_release(ON_INIT_GATE, release)
        self._on_init = rows_of_release(ON_INIT, release)
        self._on_gate = rows_of_release(ON_ADD_GATE, release)
        self._on_add = rows_of_release(ON_ADD, release)
        self._on_verify = rows_of_release(ON_VERIFY, release)
        self._on_end = rows_of_release(ON_END, release)
        self._on_end_version_2 = rows_of_release(ON_END_VERSION_2, release)
        self._on_time_out = rows_of_release(ON_TIME_OUT, release)
        self._on_unused = rows_of_release(ON_UNUSED, release)
        self._fencing = rows_of_release(FENCING, release)
        self._on_loaded = rows_of_release(ON_LOADED, release)

    # ---- reading -------------------------------------------------------------------------------

    @property
    def transactions(self) -> Mapping[str, Transaction]:
        """All transactional ids that the coordinators know."""
        return self._transactions

    def view(self, transaction: Transaction) -> TransactionView:
        """Return a view of a transaction as it is now."""
        held = self.markers.is_held(transaction.transactional_id)
        return view_transaction(transaction, held=held)

    def coordinated_by(self, broker_id: int) -> list[Transaction]:
        """Return the transactions that a broker coordinates."""
        return [
            each
            for name, each in self._transactions.items()
            if self.leader_of(name) == broker_id and self._is_active(name)
        ]

    def is_loading(self, broker_id: int) -> bool:
        """Whether a broker loads a partition of transactional ids."""
        return any(
            tp[0] == self._topic and self._controller.partition(tp).leader == broker_id
            for tp in self._coordinators.loading
        )

    @property
    def _topic(self) -> str:
        return self._coordinators.partition_of(_KIND, "")[0]

    def leader_of(self, transactional_id: str) -> int:
        """The broker that coordinates a transactional id; the controller while none does."""
        tp = self._coordinators.partition_of(_KIND, transactional_id)
        leader = self._coordinators.leader(tp)
        return self._controller.state.controller_id if leader == NO_LEADER else leader

    def _is_active(self, transactional_id: str) -> bool:
        return self._coordinators.is_active(_KIND, transactional_id)

    # ---- requests ------------------------------------------------------------------------------

    def init_producer_id(
        self, broker_id: int, request: InitRequest, answer: ProducerAnswer
    ) -> None:
        """InitProducerId with a transactional id."""
        name = request.transactional_id
        error = self._coordinators.transaction_error(name, broker_id)
        gate = InitGate(request, self._settings(), error)
        if apply_first(self._on_init_gate, gate, gate):
            answer(ProducerResult(gate.code))
            return
        if request.enable_2pc:
            request = replace(request, timeout_ms=NO_TIME_OUT_MS)
        transaction = self._transactions.get(name)
        if transaction is None:
            if len(self._transactions) >= MOST_TRANSACTIONS:
                answer(ProducerResult(ErrorCode.COORDINATOR_NOT_AVAILABLE))
                return
            transaction = self._make(request)
        event = InitEvent(
            machine=self.machine,
            transaction=transaction,
            request=request,
            answer=answer,
            fence=self._fence,
        )
        apply_first(self._on_init, event, event)

    def _make(self, request: InitRequest) -> Transaction:
        name = request.transactional_id
        metadata = TransactionMetadata(
            self.machine.new_producer_id(name), request.timeout_ms, self._controller.now_ms
        )
        made = self._transactions[name] = Transaction(name, metadata)
        return made

    def add_partitions(
        self,
        broker_id: int,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[TopicPartition],
        answer: CodeAnswer,
        *,
        version: int = 0,
    ) -> None:
        """Add partitions to a transaction, which begins if need be. ``version`` is the client's
        transaction version."""
        transaction, code = self._find(broker_id, transactional_id)
        if transaction is None:
            answer(code)
            return
        event = AddEvent(
            machine=self.machine,
            transaction=transaction,
            producer_id=producer_id,
            epoch=epoch,
            partitions=tuple(partitions),
            version=version,
            answer=answer,
        )
        apply_first(self._on_add, event, event)

    def verify_partitions(
        self,
        broker_id: int,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Sequence[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """Return for each partition whether it belongs to the transaction."""
        transaction, code = self._find(broker_id, transactional_id)
        if transaction is None:
            return dict.fromkeys(partitions, code)
        event = VerifyEvent(
            machine=self.machine, transaction=transaction, producer_id=producer_id, epoch=epoch
        )
        apply_first(self._on_verify, event, event)
        known = transaction.metadata.partitions
        return {
            tp: event.code or (ErrorCode.NONE if tp in known else event.absent) for tp in partitions
        }

    def end(
        self,
        broker_id: int,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        answer: ProducerAnswer,
        *,
        committed: bool,
        version: int = 0,
    ) -> None:
        """EndTxn. ``version`` is the client's transaction version."""
        transaction, code = self._find(broker_id, transactional_id)
        if transaction is None:
            answer(ProducerResult(code))
            return
        event = EndEvent(
            machine=self.machine,
            transaction=transaction,
            producer_id=producer_id,
            epoch=epoch,
            committed=committed,
            version=version,
            answer=answer,
        )
        rows = self._on_end_version_2 if version >= VERSION_2 else self._on_end
        apply_first(rows, event, event)

    def _find(self, broker_id: int, transactional_id: str) -> tuple[Transaction | None, ErrorCode]:
        """Return the transaction, or the error of a request that names it."""
        found = self._transactions.get(transactional_id)
        error = self._coordinators.transaction_error(transactional_id, broker_id)
        gate = Gate(transactional_id, found is not None, error)
        apply_first(self._on_gate, gate, gate)
        return (None if gate.code else found), gate.code

    def describe(
        self, broker_id: int, transactional_id: str
    ) -> tuple[Transaction | None, ErrorCode]:
        """Return what DescribeTransactions shows, or its error."""
        if not transactional_id:
            return None, ErrorCode.INVALID_REQUEST
        error = self._coordinators.transaction_error(transactional_id, broker_id)
        if error:
            return None, error
        found = self._transactions.get(transactional_id)
        return found, ErrorCode.NONE if found else ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    # ---- fencing, time -------------------------------------------------------------------------

    def _fence(self, transaction: Transaction, answer: ProducerAnswer) -> None:
        event = FenceEvent(machine=self.machine, transaction=transaction, answer=answer)
        apply_first(self._fencing, event, event)

    def _check_ages(self, rows: tuple[Row[AgeEvent, AgeEvent], ...]) -> None:
        for transaction in tuple(self._transactions.values()):
            if self._is_active(transaction.transactional_id):
                event = AgeEvent(
                    machine=self.machine,
                    transaction=transaction,
                    settings=self._settings(),
                    fence=lambda each: self._fence(each, lambda result: None),
                    forget=self._forget,
                )
                apply_first(rows, event, event)
        self._set_timers()

    def _forget(self, transaction: Transaction) -> None:
        if not self.machine.forget(transaction):
            del self._transactions[transaction.transactional_id]
            self.machine.changed(transaction)

    def _changed(self, transactional_id: str) -> None:
        self._note_times(transactional_id)
        self._set_timers()

    def _note_times(self, transactional_id: str) -> None:
        """Note what the timers need of a transactional id, so that a change reads no other."""
        self._open_until_ms.pop(transactional_id, None)
        self._idle_since_ms.pop(transactional_id, None)
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            return
        metadata = transaction.metadata
        if transaction.state is TransactionState.ONGOING:
            self._open_until_ms[transactional_id] = metadata.start_ms + metadata.timeout_ms + 1
        if metadata.is_idle:
            self._idle_since_ms[transactional_id] = metadata.update_ms

    def _set_timers(self) -> None:
        settings = self._settings()
        due_ms = min(self._open_until_ms.values(), default=None)
        self._time_outs.set(self._next_check(due_ms, settings.timeout_check_ms))
        since_ms = min(self._idle_since_ms.values(), default=None)
        due_ms = None if since_ms is None else since_ms + settings.id_expiration_ms
        self._expiry.set(self._next_check(due_ms, settings.expiration_check_ms))

    def _next_check(self, due_ms: int | None, interval_ms: int) -> int | None:
        """The first periodic check at which something is due; None if nothing ever is."""
        if due_ms is None:
            return None
        after = max(due_ms, self._controller.now_ms + 1) - self._started_ms
        return self._started_ms + -(-after // interval_ms) * interval_ms

    # ---- coordinators that move ----------------------------------------------------------------

    def _unload(self, transactional_ids: Sequence[str]) -> None:
        for name in transactional_ids:
            self.markers.withdraw(name)

    def _load(self, transactional_ids: Sequence[str]) -> None:
        """Know what the log says: changes that it has lost never were, others count."""
        for name in transactional_ids:
            transaction = self._transactions[name]
            self._settle(transaction)
            if not transaction.is_stored:
                del self._transactions[name]
                self._note_times(name)
                continue
            transaction.metadata = replace(transaction.metadata, last_epoch=NO_EPOCH)
            transaction.has_failed_fence = False
            event = LoadEvent(machine=self.machine, transaction=transaction)
            apply_first(self._on_loaded, event, event)
            self.machine.changed(transaction)
        self._set_timers()

    def _settle(self, transaction: Transaction) -> None:
        """Decide on a change that was being written when the coordinator lost its partition."""
        pending, end = transaction.pending, transaction.pending_end
        transaction.pending = transaction.pending_end = None
        log = self._logs.find(self._coordinators.partition_of(_KIND, transaction.transactional_id))
        if pending is not None and end is not None and log is not None and log.end_offset >= end:
            transaction.metadata = pending
            transaction.is_stored = True
