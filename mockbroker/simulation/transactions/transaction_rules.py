"""What happens to a transactional id, as rows: InitProducerId, the partitions of a transaction, its
end, time, and a coordinator that takes over.

``Transitions`` takes the steps. A step that is being written, or whose markers are, is pending:
every request gets CONCURRENT_TRANSACTIONS(51) meanwhile, also one that would end the transaction
the other way. The rules of partitions are in ``partition_rules``.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from kproto.error_codes import ErrorCode
from mockbroker.simulation.releases import facts, fixes
from mockbroker.simulation.releases.rows import Row, always, refuse, with_arguments
from mockbroker.simulation.transactions.transaction_events import (
    AddEvent,
    AgeEvent,
    EndEvent,
    FenceEvent,
    Gate,
    InitEvent,
    InitGate,
    LoadEvent,
    ProducerEvent,
    TransactionEvent,
    VerifyEvent,
)
from mockbroker.simulation.transactions.transaction_settings import NO_TIME_OUT_MS
from mockbroker.simulation.transactions.transactional_ids import (
    COMPLETE,
    LAST_EPOCH,
    NO_EPOCH,
    PREPARED,
    ProducerResult,
    TransactionState,
)
from mockbroker.simulation.transactions.transitions import VERSION_2

__all__ = [
    "FENCING",
    "ON_ADD",
    "ON_ADD_GATE",
    "ON_END",
    "ON_END_VERSION_2",
    "ON_INIT",
    "ON_INIT_GATE",
    "ON_LOADED",
    "ON_TIME_OUT",
    "ON_UNUSED",
    "ON_VERIFY",
]

_TRANSACTION_VERSIONS: Final = (4, 0)
"""The first release with the feature ``transaction.version`` (KIP-890)."""
_ABORTABLE: Final = (3, 8)
"""The first release with TRANSACTION_ABORTABLE(120)."""

_CONCURRENT: Final = refuse(ErrorCode.CONCURRENT_TRANSACTIONS)
_FENCED: Final = refuse(ErrorCode.PRODUCER_FENCED)
_OTHER_PRODUCER: Final = refuse(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
_INVALID_STATE: Final = refuse(ErrorCode.INVALID_TXN_STATE)
_INVALID_REQUEST: Final = refuse(ErrorCode.INVALID_REQUEST)

# ---- conditions ----------------------------------------------------------------------------------


def is_pending(event: TransactionEvent) -> bool:
    return event.is_pending


def is_ongoing(event: TransactionEvent) -> bool:
    return event.state is TransactionState.ONGOING


def is_prepared(event: TransactionEvent) -> bool:
    return event.state in PREPARED


def other_producer(event: ProducerEvent) -> bool:
    return event.is_other_producer


def other_epoch(event: ProducerEvent) -> bool:
    return event.is_other_epoch


def _has_error(gate: InitGate | Gate) -> bool:
    return bool(gate.coordinator_error)


def _pass_error(gate: InitGate | Gate) -> None:
    gate.refuse(gate.coordinator_error)


# ---- InitProducerId ------------------------------------------------------------------------------


def _has_invalid_timeout(gate: InitGate) -> bool:
    in_bounds = 0 < gate.request.timeout_ms <= gate.settings.max_timeout_ms
    return not gate.request.enable_2pc and not in_bounds


ON_INIT_GATE: Final[tuple[Row[InitGate, InitGate], ...]] = (
    Row("DP-INIT-04", lambda gate: not gate.request.transactional_id, (_INVALID_REQUEST,)),
    Row(
        "DP-INIT-02",
        lambda gate: gate.request.enable_2pc and not gate.settings.two_phase_commit,
        (refuse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),),
    ),
    Row(
        "DP-INIT-02",
        lambda gate: gate.request.keep_prepared,
        (refuse(ErrorCode.UNSUPPORTED_VERSION),),
    ),
    Row("DP-INIT-06", _has_invalid_timeout, (refuse(ErrorCode.INVALID_TRANSACTION_TIMEOUT),)),
    Row("DP-INIT-05", _has_error, (_pass_error,)),
)


def _is_foreign(event: InitEvent) -> bool:
    """Whether the producer id is neither the present one nor the one before a rotation."""
    request, metadata = event.request, event.metadata
    if not request.names_producer or metadata.epoch == NO_EPOCH:
        return False
    before = request.producer_id == metadata.previous_producer_id and request.epoch >= LAST_EPOCH
    return request.producer_id != metadata.producer_id and not before


def _names_current(event: InitEvent) -> bool:
    request, metadata = event.request, event.metadata
    return not request.names_producer or request.epoch == metadata.epoch


def _rotates(event: InitEvent) -> bool:
    return event.metadata.is_exhausted and _names_current(event)


def _continues(event: InitEvent) -> bool:
    return event.metadata.epoch in (NO_EPOCH, event.request.epoch)


def _repeats(event: InitEvent) -> bool:
    return event.request.epoch == event.metadata.last_epoch


def _is_exhausted(event: InitEvent) -> bool:
    return event.metadata.is_exhausted


@with_arguments
def _raise_epoch(event: InitEvent, by: int = 1, *, keeps_last: bool = False) -> None:
    """Give the producer the next epoch. ``by`` 0: the present one again. ``keeps_last``: the
    request may be repeated."""
    metadata = event.metadata
    last = metadata.epoch if keeps_last else NO_EPOCH
    event.machine.initialize(
        event.transaction,
        event.request.timeout_ms,
        event.answer,
        producer_id=metadata.producer_id,
        epoch=metadata.epoch + by,
        last_epoch=last if by else metadata.last_epoch,
    )


def _rotate(event: InitEvent) -> None:
    named = event.request.names_producer
    event.machine.initialize(
        event.transaction,
        event.request.timeout_ms,
        event.answer,
        producer_id=event.machine.new_producer_id(event.transaction.transactional_id),
        epoch=0,
        last_epoch=event.metadata.epoch if named else NO_EPOCH,
    )


def _fence_and_refuse(event: InitEvent) -> None:
    """Abort the open transaction; the client asks again until that is done."""

    def done(result: ProducerResult) -> None:
        event.refuse(result.code or ErrorCode.CONCURRENT_TRANSACTIONS)

    event.fence(event.transaction, done)


ON_INIT: Final[tuple[Row[InitEvent, InitEvent], ...]] = (
    Row("DP-TXN-06 DP-TXN-20", is_pending, (_CONCURRENT,)),
    Row("DP-END-05", is_prepared, (_CONCURRENT,)),
    Row("DP-INIT-07", _is_foreign, (_FENCED,)),
    Row("DP-TXN-05", is_ongoing, (_fence_and_refuse,)),
    Row("DP-TXN-04", _rotates, (_rotate,)),
    Row("DP-TXN-04", _is_exhausted, (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),)),
    Row("DP-TXN-01 DP-TXN-02", lambda event: not event.request.names_producer, (_raise_epoch(),)),
    Row("DP-TXN-03", _continues, (_raise_epoch(keeps_last=True),)),
    Row("DP-TXN-03", _repeats, (_raise_epoch(by=0),)),
    Row("DP-TXN-03", always, (_FENCED,)),
)

# ---- AddPartitionsToTxn, AddOffsetsToTxn, verification -------------------------------------------


ON_ADD_GATE: Final[tuple[Row[Gate, Gate], ...]] = (
    Row("DP-ADD-03 DP-END-01", lambda gate: not gate.transactional_id, (_INVALID_REQUEST,)),
    Row("DP-INIT-05", _has_error, (_pass_error,)),
    Row("DP-ADD-03 DP-END-01", lambda gate: not gate.exists, (_OTHER_PRODUCER,)),
)
"""Of every request but InitProducerId."""


def _adds_nothing(event: AddEvent) -> bool:
    return is_ongoing(event) and not event.missing


def _add(event: AddEvent, start_ms: int) -> None:
    metadata = event.metadata
    new = metadata.becomes(
        TransactionState.ONGOING,
        partitions=metadata.partitions + event.missing,
        start_ms=start_ms,
        update_ms=event.machine.now_ms,
        version=event.version,
    )
    event.machine.write(event.transaction, new, event.answer)


def _begin(event: AddEvent) -> None:
    _add(event, event.machine.now_ms)


def _join(event: AddEvent) -> None:
    _add(event, event.metadata.start_ms)


ON_ADD: Final[tuple[Row[AddEvent, AddEvent], ...]] = (
    Row("DP-TXN-09 DP-TXN-20", is_pending, (_CONCURRENT,), since=_TRANSACTION_VERSIONS),
    Row("DP-ADD-03", other_producer, (_OTHER_PRODUCER,)),
    Row("DP-ADD-03", other_epoch, (_FENCED,)),
    Row("DP-TXN-09 DP-TXN-20", is_pending, (_CONCURRENT,), until=_TRANSACTION_VERSIONS),
    Row("DP-END-05", is_prepared, (_CONCURRENT,)),
    Row("DP-TXN-08", _adds_nothing, (refuse(ErrorCode.NONE),)),
    Row("DP-TXN-08", is_ongoing, (_join,)),
    Row("DP-TXN-07", always, (_begin,)),
)


@with_arguments
def _refuse_absent(event: VerifyEvent, code: ErrorCode) -> None:
    """Partitions that do not belong to the transaction get this error."""
    event.absent = code


ON_VERIFY: Final[tuple[Row[VerifyEvent, VerifyEvent], ...]] = (
    Row("DP-ADD-03", other_producer, (_OTHER_PRODUCER,)),
    Row("DP-ADD-03", other_epoch, (_FENCED,)),
    Row("DP-TXN-09", is_prepared, (_CONCURRENT,)),
    Row("DP-ADD-04", always, (_refuse_absent(ErrorCode.INVALID_TXN_STATE),), until=_ABORTABLE),
    Row("DP-ADD-04", always, (_refuse_absent(ErrorCode.TRANSACTION_ABORTABLE),), since=_ABORTABLE),
)

# ---- EndTxn --------------------------------------------------------------------------------------


def _prepare(event: EndEvent) -> None:
    event.machine.prepare(
        event.transaction, event.answer, committed=event.committed, version=event.version
    )


def _prepare_in_vain(event: EndEvent) -> None:
    """Write the end of the transaction, but refuse the client and send no markers."""
    event.machine.prepare(
        event.transaction,
        event.answer,
        committed=event.committed,
        version=event.version,
        code=ErrorCode.PRODUCER_FENCED,
    )


def _is_ongoing_with_newer_epoch(event: EndEvent) -> bool:
    return is_ongoing(event) and event.is_other_epoch


def _repeats_prepared(event: EndEvent) -> bool:
    """Whether such an end is in the log already, and the request wants the same."""
    committed = event.state is TransactionState.PREPARE_COMMIT
    return is_prepared(event) and event.committed == committed


def _has_older_epoch(event: EndEvent) -> bool:
    return event.epoch < event.metadata.epoch


ON_END: Final[tuple[Row[EndEvent, EndEvent], ...]] = (
    Row("DP-END-01", other_producer, (_OTHER_PRODUCER,)),
    Row("DP-END-01", other_epoch, (_FENCED,), since=fixes.KAFKA_9600),
    Row("DP-END-01", _has_older_epoch, (_FENCED,), until=fixes.KAFKA_9600),
    Row("DP-TXN-13 DP-TXN-20", is_pending, (_CONCURRENT,)),
    Row("DP-END-05", _is_ongoing_with_newer_epoch, (_prepare_in_vain,)),
    Row("DP-TXN-10", is_ongoing, (_prepare,)),
    Row("DP-END-05", _repeats_prepared, (_CONCURRENT,)),
    Row("DP-TXN-11 DP-TXN-12", lambda event: event.completed_as_wanted, (refuse(ErrorCode.NONE),)),
    Row("DP-TXN-11 DP-TXN-12 DP-TXN-14", always, (_INVALID_STATE,)),
)
"""EndTxn of clients without transaction version 2."""


def _is_other_and_no_retry(event: EndEvent) -> bool:
    return event.is_other_producer and not event.retries_rotation


def _has_wrong_epoch(event: EndEvent) -> bool:
    """Only a request whose transaction is complete may be a retry, which names an older epoch."""
    is_retry = event.state in COMPLETE and event.is_retry
    return event.is_other_epoch and not is_retry


def _repeats_end(event: EndEvent) -> bool:
    return event.is_retry and event.completed_as_wanted


def _answer_present(event: EndEvent) -> None:
    metadata = event.metadata
    event.answer(ProducerResult(ErrorCode.NONE, metadata.producer_id, metadata.epoch))


ON_END_VERSION_2: Final[tuple[Row[EndEvent, EndEvent], ...]] = (
    Row("DP-TXN-13 DP-TXN-20", is_pending, (_CONCURRENT,)),
    Row("DP-END-01", _is_other_and_no_retry, (_OTHER_PRODUCER,)),
    Row("DP-END-01", _has_wrong_epoch, (_FENCED,)),
    Row("DP-TXN-15", is_ongoing, (_prepare,)),
    Row("DP-TXN-16", _repeats_end, (_answer_present,)),
    Row("DP-TXN-16", lambda event: event.is_retry, (_INVALID_STATE,)),
    Row("DP-TXN-17", lambda event: not event.committed, (_prepare,)),
    Row("DP-TXN-17", always, (_INVALID_STATE,)),
)
"""EndTxn of clients with transaction version 2."""

# ---- fencing, time, a coordinator that takes over ------------------------------------------------

AgeRow: TypeAlias = Row[AgeEvent, AgeEvent]


def _has_version_2(event: FenceEvent) -> bool:
    return event.machine.feature_level >= VERSION_2


def _fence_twice(event: FenceEvent) -> None:
    event.machine.fence_version_2(event.transaction, event.answer, twice=True)


FENCING: Final[tuple[Row[FenceEvent, FenceEvent], ...]] = (
    Row("DP-TXN-05 DP-TXN-18", _has_version_2, (_fence_twice,), until=fixes.KAFKA_19367),
    Row(
        "DP-TXN-05 DP-TXN-18",
        _has_version_2,
        (lambda event: event.machine.fence_version_2(event.transaction, event.answer),),
    ),
    Row(
        "DP-TXN-05 DP-TXN-18",
        always,
        (lambda event: event.machine.fence_version_1(event.transaction, event.answer),),
    ),
)


def _has_no_time_out(event: AgeEvent) -> bool:
    return event.metadata.timeout_ms == NO_TIME_OUT_MS


def _is_overdue(event: AgeEvent) -> bool:
    metadata = event.metadata
    end_ms = metadata.start_ms + metadata.timeout_ms
    return is_ongoing(event) and not event.is_pending and end_ms < event.now_ms


def _is_unused(event: AgeEvent) -> bool:
    idle_ms = event.now_ms - event.metadata.update_ms
    idle = event.metadata.is_idle and not event.is_pending
    return idle and idle_ms >= event.settings.id_expiration_ms


ON_TIME_OUT: Final[tuple[AgeRow, ...]] = (
    Row("DP-INIT-09", _has_no_time_out, (), since=facts.TWO_PHASE_COMMIT),
    Row("DP-TXN-18", _is_overdue, (lambda event: event.fence(event.transaction),)),
)

ON_UNUSED: Final[tuple[AgeRow, ...]] = (
    Row("DP-TXN-19", _is_unused, (lambda event: event.forget(event.transaction),)),
)

ON_LOADED: Final[tuple[Row[LoadEvent, LoadEvent], ...]] = (
    Row("DP-TXN-21", is_prepared, (lambda event: event.machine.resume(event.transaction),)),
)
