"""How a partition's leader makes sure that its partition belongs to a transaction (KIP-890)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.placement import Coordinators
from mockbroker.simulation.log.logs import Logs
from mockbroker.simulation.log.producing.producer_states import Guard
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release
from mockbroker.simulation.state.cluster_parts import NO_LEADER, TopicPartition
from mockbroker.simulation.transactions.partition_rules import (
    ON_FIRST_BATCH,
    ON_PRODUCE_REPLY,
    ON_REPLY,
    Question,
    Reply,
)
from mockbroker.simulation.transactions.transaction_coordinators import TransactionCoordinator
from mockbroker.simulation.transactions.transaction_settings import TransactionSettings

__all__ = ["Verification", "VerificationRequest", "Verified", "Verifier"]

Verified: TypeAlias = Callable[["Verification"], None]


class VerificationRequest(msgspec.Struct, frozen=True):
    """A request with transactional records. ``adds``: partitions join the transaction if need be;
    ``knows_abortable``: the client's version has TRANSACTION_ABORTABLE(120)."""

    transactional_id: str
    producer_id: int
    epoch: int
    adds: bool
    knows_abortable: bool


class Verification(msgspec.Struct):
    """What became of a request: the errors of partitions with their texts, and the guards of those
    that were verified. ``is_concurrent``: the coordinator still ends the transaction before."""

    errors: dict[TopicPartition, tuple[ErrorCode, str | None]] = msgspec.field(default_factory=dict)
    guards: dict[TopicPartition, Guard] = msgspec.field(default_factory=dict)
    is_concurrent: bool = False


class Verifier:
    """Asks the coordinators of one cluster, which runs ``release``."""

    def __init__(
        self,
        logs: Logs,
        coordinators: Coordinators,
        transactions: TransactionCoordinator,
        settings: Callable[[], TransactionSettings],
        release: Release,
    ) -> None:
        self._logs = logs
        self._coordinators = coordinators
        self._transactions = transactions
        self._settings = settings
        release.follow(self._use_release)

    def _use_release(self, release: Release) -> None:
        self._verifies_offsets = release.has(facts.TRANSACTIONAL_OFFSETS_VERIFIED)
        self._on_first_batch = rows_of_release(ON_FIRST_BATCH, release)
        self._on_reply = rows_of_release(ON_REPLY, release)
        self._on_produce_reply = rows_of_release(ON_PRODUCE_REPLY, release)

    def guards(self, request: VerificationRequest, *, produces: bool = True) -> bool:
        """Whether a batch is refused that was not verified."""
        return request.adds or self._verifies(produces=produces)

    def _verifies(self, *, produces: bool) -> bool:
        return self._settings().verifies and (produces or self._verifies_offsets)

    def verify(
        self,
        request: VerificationRequest,
        sequences: Mapping[TopicPartition, int],
        done: Verified,
        *,
        produces: bool = True,
    ) -> None:
        """Verify partitions that this cluster's brokers lead, and call ``done``, at once unless the
        coordinator has to wait. ``sequences`` are those of each partition's first record, or
        NO_SEQUENCE. ``produces``: the errors are those of Produce."""
        verification = Verification()
        unverified: list[TopicPartition] = []
        verifies = self._verifies(produces=produces)
        for tp, sequence in sequences.items():
            known = self._logs.log(tp).producers.get(request.producer_id)
            question = Question(known, request.epoch, request.adds, verifies)
            apply_first(self._on_first_batch, question, question)
            if question.code:
                verification.errors[tp] = (question.code, None)
            elif question.asks:
                unverified.append(tp)
                verification.guards[tp] = self._logs.ask_about_producer(
                    tp, request.producer_id, sequence, request.epoch, implicit=request.adds
                )
        if not unverified:
            done(verification)
            return

        def replied(codes: Mapping[TopicPartition, ErrorCode]) -> None:
            for tp, code in codes.items():
                if code:
                    verification.is_concurrent |= code == ErrorCode.CONCURRENT_TRANSACTIONS
                    verification.errors[tp] = self._error(request, code, produces=produces)
                    del verification.guards[tp]
            done(verification)

        self._ask(request, unverified, replied)

    def _error(
        self, request: VerificationRequest, code: ErrorCode, *, produces: bool
    ) -> tuple[ErrorCode, str | None]:
        reply = Reply(code, request.knows_abortable, request.adds)
        apply_first(self._on_reply, reply, reply)
        if produces:
            apply_first(self._on_produce_reply, reply, reply)
        return reply.code, reply.text

    def _ask(
        self,
        request: VerificationRequest,
        partitions: list[TopicPartition],
        replied: Callable[[Mapping[TopicPartition, ErrorCode]], None],
    ) -> None:
        """Ask the coordinator as a broker does that knows where it is."""
        coordinators = self._coordinators
        tp = coordinators.partition_of(CoordinatorKind.TRANSACTION, request.transactional_id)
        broker_id = coordinators.leader(tp)
        if broker_id == NO_LEADER:
            replied(dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        if not request.adds:
            replied(
                self._transactions.verify_partitions(
                    broker_id,
                    request.transactional_id,
                    request.producer_id,
                    request.epoch,
                    partitions,
                )
            )
            return
        self._transactions.add_partitions(
            broker_id,
            request.transactional_id,
            request.producer_id,
            request.epoch,
            partitions,
            lambda code: replied(dict.fromkeys(partitions, code)),
            version=2,
        )
