"""How a transactional id changes: each step is written to the log before it counts.

``transaction_rules`` decide which step follows; this file takes it. From the moment at which the
end of a transaction is written until its markers are, the step that completes it is pending, so
nothing else can happen to the transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from kproto.records.model import NO_PRODUCER_ID
from mockbroker.simulation.coordinators.offset_store import Stored
from mockbroker.simulation.log.producing.producer_ids import ProducerIds
from mockbroker.simulation.releases import facts, fixes
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.transactions.transaction_log import TransactionLog
from mockbroker.simulation.transactions.transactional_ids import (
    NO_EPOCH,
    CodeAnswer,
    ProducerAnswer,
    ProducerResult,
    Transaction,
    TransactionMetadata,
    TransactionState,
)

__all__ = ["VERSION_2", "Transitions"]

VERSION_2: Final = 2
"""Since this transaction version (KIP-890) each end of a transaction raises the epoch."""
_MOST_EPOCHS: Final = 2**15 - 1

_NOT_AVAILABLE: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
)
_NOT_LED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR)


class Transitions:
    """The steps of all transactional ids of a cluster.

    ``feature_level`` is that of ``transaction.version``. ``send_markers`` begins to write the
    markers of a transaction whose end is in the log, and calls ``complete`` after the last.
    ``coordinator_of`` returns the broker from whose block of producer ids a new one comes.
    """

    def __init__(
        self,
        controller: Controller,
        log: TransactionLog,
        producer_ids: ProducerIds,
        feature_level: Callable[[], int],
        *,
        send_markers: Callable[[Transaction], None],
        coordinator_of: Callable[[str], int],
        release: Release,
    ) -> None:
        self._controller = controller
        self._log = log
        self._producer_ids = producer_ids
        self._feature_level = feature_level
        release.follow(self._use_release)
        self._send_markers = send_markers
        self._coordinator_of = coordinator_of
        self.on_changed: list[Callable[[str], None]] = []

    def _use_release(self, release: Release) -> None:
        self._keeps_failed_fence = release.has(fixes.KAFKA_9666)
        self._keeps_start = release.has(facts.TRANSACTION_START_KEPT)

    @property
    def feature_level(self) -> int:
        """The level of ``transaction.version``."""
        return self._feature_level()

    @property
    def now_ms(self) -> int:
        return self._controller.now_ms

    def new_producer_id(self, transactional_id: str) -> int:
        """Return an id that no producer has yet."""
        return self._producer_ids.next_id(self._coordinator_of(transactional_id))

    def changed(self, transaction: Transaction) -> None:
        """Call those who wait for a change."""
        for call in tuple(self.on_changed):
            call(transaction.transactional_id)

    # ---- writing -------------------------------------------------------------------------------

    def write(self, transaction: Transaction, new: TransactionMetadata, done: CodeAnswer) -> None:
        """Write the next state of a transactional id; it counts once the replicas have it.

        ``done`` gets 0, or the error of a client: 15 if the log cannot be written, 16 if this
        coordinator lost its partition.
        """
        transaction.pending, transaction.pending_end = new, None
        stored = self._log.store(transaction.transactional_id, new)
        if stored.wait is None:
            self._written(transaction, new, stored.error, done)
        else:
            self._await(transaction, new, stored, done)
        self.changed(transaction)

    def _await(
        self, transaction: Transaction, new: TransactionMetadata, stored: Stored, done: CodeAnswer
    ) -> None:
        """Wait for the replicas, at most as long as the transaction's own time-out."""
        wait, outcome = stored.wait, stored.outcome
        assert wait is not None, "there is something to wait for"
        assert outcome is not None, "a wait decides on an outcome"
        transaction.pending_end = outcome.end_offset

        def end() -> None:
            timer.set(None)
            wait.end()
            self._written(transaction, new, outcome.error, done)
            self.changed(transaction)

        def expire() -> None:
            wait.expire()
            end()

        timer = self._controller.timers.timer(expire, f"write of {transaction.transactional_id}")
        timer.set(self.now_ms + new.timeout_ms)
        wait.when_over(end)

    def _written(
        self, transaction: Transaction, new: TransactionMetadata, error: ErrorCode, done: CodeAnswer
    ) -> None:
        if transaction.pending is not new:  # another coordinator has taken over
            done(ErrorCode.NOT_COORDINATOR)
        elif not error:
            self._apply(transaction, new)
            done(ErrorCode.NONE)
        elif error in _NOT_LED:  # what is pending may still be in the log of the next leader
            done(ErrorCode.NOT_COORDINATOR)
        else:
            transaction.pending = transaction.pending_end = None
            done(_client_error(error))

    @staticmethod
    def _apply(transaction: Transaction, new: TransactionMetadata) -> None:
        transaction.metadata = new
        transaction.is_stored = True
        transaction.pending = transaction.pending_end = None

    def forget(self, transaction: Transaction) -> ErrorCode:
        """Write that a transactional id is gone, and return the error of the log."""
        return self._log.store(transaction.transactional_id, None).error

    # ---- beginning -----------------------------------------------------------------------------

    def initialize(
        self,
        transaction: Transaction,
        timeout_ms: int,
        answer: ProducerAnswer,
        *,
        producer_id: int,
        epoch: int,
        last_epoch: int,
    ) -> None:
        """Give a producer its id and epoch, without a transaction."""
        new = transaction.metadata.becomes(
            TransactionState.EMPTY,
            producer_id=producer_id,
            epoch=epoch,
            last_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=(),
            start_ms=-1,
            update_ms=self.now_ms,
        )

        start_ms = transaction.metadata.start_ms

        def done(code: ErrorCode) -> None:
            if not code and self._keeps_start:
                transaction.metadata = replace(transaction.metadata, start_ms=start_ms)
            answer(ProducerResult(code) if code else ProducerResult(code, producer_id, epoch))

        self.write(transaction, new, done)

    # ---- ending --------------------------------------------------------------------------------

    def prepare(
        self,
        transaction: Transaction,
        answer: ProducerAnswer,
        *,
        committed: bool,
        version: int,
        code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        """Write the end of a transaction, answer, and send the markers. With another ``code`` than
        0 answer that, and send none.

        With version 2 the epoch rises; a producer id whose epochs are used up is replaced when the
        transaction completes.
        """
        metadata = transaction.metadata
        state = TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT
        new = metadata.becomes(
            state, update_ms=self.now_ms, version=version, next_producer_id=NO_PRODUCER_ID
        )
        if version >= VERSION_2:
            new = replace(
                new,
                epoch=min(metadata.epoch + 1, _MOST_EPOCHS),
                last_epoch=metadata.epoch,
                start_ms=self.now_ms if metadata.is_idle else metadata.start_ms,
                next_producer_id=self.new_producer_id(transaction.transactional_id)
                if metadata.is_exhausted
                else NO_PRODUCER_ID,
            )

        def done(error: ErrorCode) -> None:
            if error or code:
                answer(ProducerResult(error or code))
                return
            following = self._completed(new)
            transaction.pending = following
            shown = (following.producer_id, following.epoch) if version >= VERSION_2 else ()
            answer(ProducerResult(ErrorCode.NONE, *shown))
            self._send_markers(transaction)

        self.write(transaction, new, done)

    def resume(self, transaction: Transaction) -> None:
        """Send the markers of a transaction again whose end is in the log."""
        transaction.pending = self._completed(transaction.metadata)
        self._send_markers(transaction)

    def _completed(self, prepared: TransactionMetadata) -> TransactionMetadata:
        is_commit = prepared.state is TransactionState.PREPARE_COMMIT
        new = prepared.becomes(
            TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
            partitions=(),
            next_producer_id=NO_PRODUCER_ID,
            update_ms=self.now_ms,
        )
        if prepared.next_producer_id != NO_PRODUCER_ID:
            new = replace(new, producer_id=prepared.next_producer_id, epoch=0)
        return new

    def complete(self, transaction: Transaction, done: CodeAnswer) -> None:
        """Write that every marker is written. ``done`` gets the error of the log, if any: the step
        stays pending then."""
        following = transaction.pending
        assert following is not None, "a transaction whose markers are written has a next state"
        transaction.has_failed_fence = False

        def written(code: ErrorCode) -> None:
            if code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                transaction.pending = following
            done(code)

        self.write(transaction, following, written)

    # ---- fencing -------------------------------------------------------------------------------

    def fence_version_1(self, transaction: Transaction, answer: ProducerAnswer) -> None:
        """Abort a transaction under the next epoch, so that its producer is fenced."""
        self._fence(transaction, answer, version=0)

    def fence_version_2(
        self, transaction: Transaction, answer: ProducerAnswer, *, twice: bool = False
    ) -> None:
        """Abort a transaction; each end raises the epoch, which fences the producer. ``twice``: the
        fence raises the epoch, too."""
        if twice:
            self._fence(transaction, answer, version=VERSION_2)
        else:
            self.prepare(transaction, answer, committed=False, version=VERSION_2)

    def _fence(self, transaction: Transaction, answer: ProducerAnswer, *, version: int) -> None:
        metadata = transaction.metadata
        has_raised = transaction.has_failed_fence and self._keeps_failed_fence
        raised = metadata.epoch if has_raised else metadata.epoch + 1
        transaction.metadata = replace(
            metadata, epoch=min(raised, _MOST_EPOCHS), last_epoch=NO_EPOCH
        )

        def done(result: ProducerResult) -> None:
            if result.code:
                transaction.has_failed_fence = True
            answer(result)

        self.prepare(transaction, done, committed=False, version=version)


def _client_error(error: ErrorCode) -> ErrorCode:
    if error in _NOT_AVAILABLE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.UNKNOWN_SERVER_ERROR
