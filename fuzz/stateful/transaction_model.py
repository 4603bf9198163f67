"""What transactional producers may expect of a cluster, derived from their requests and answers.

A transaction is visible to consumers with ``read_committed`` only if its producer has asked for its
commit. Once a coordinator has answered that without an error, it is committed for good.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from fuzz.stateful.data_model import OFFSETS_TOPIC, Batch
from mockbroker.simulation.state.actions import Action, RecordsLost, TopicDeleted
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["STATE_TOPIC", "Course", "Transaction", "TransactionModel", "TransactionalProducer"]

STATE_TOPIC: Final = "__transaction_state"
_FIRST_OFFSET: Final = 1_000_000
"""Offsets that transactions commit are of no other commit, and each is used once."""


class Course(enum.Enum):
    """OPEN: nobody has asked for its end. OVER: it was aborted or fenced, and nobody has asked for
    its commit. ASKED: its commit was asked for, and whether it is committed is unknown."""

    OPEN = "open"
    OVER = "over"
    ASKED = "asked"
    COMMITTED = "committed"


@dataclass(slots=True, eq=False)
class Transaction:
    """``offsets`` are the commits of offsets that were sent, ``taken`` those that were answered
    without an error. ``due_ms``: it times out then, or later."""

    transactional_id: str
    producer_id: int
    epoch: int
    due_ms: int
    newer: bool
    course: Course = Course.OPEN
    added: set[TopicPartition] = field(default_factory=set)
    has_group: bool = False
    batches: list[Batch] = field(default_factory=list)
    offsets: dict[int, TopicPartition] = field(default_factory=dict)
    taken: dict[TopicPartition, int] = field(default_factory=dict)

    def accepts(self, producer: TransactionalProducer, tp: TopicPartition) -> bool:
        """Whether the producer may send batches to a partition now."""
        return tp in self.added and producer.is_free

    def accepts_offsets(self, producer: TransactionalProducer) -> bool:
        return self.has_group and producer.is_free

    def end(self) -> None:
        """It ends without a commit, unless one was asked for."""
        if self.course is Course.OPEN:
            self.course = Course.OVER


@dataclass(slots=True, eq=False)
class TransactionalProducer:
    """One process. It needs another epoch when ``broken``: a request of its own was not answered,
    or with an error. ``waiting`` counts its requests on the way."""

    transactional_id: str
    timeout_ms: int
    producer_id: int = -1
    epoch: int = -1
    broken: bool = True
    waiting: int = 0
    transaction: Transaction | None = None
    replaced: list[TransactionalProducer] = field(default_factory=list)
    """The processes that it fences once it has an epoch."""
    sequences: dict[TopicPartition, int] = field(default_factory=dict)

    @property
    def is_free(self) -> bool:
        return not self.broken and not self.waiting

    def takes(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch


@dataclass(slots=True)
class TransactionModel:
    """``producers`` has the newest process of each transactional id, ``fenced`` those before.
    ``of_batch`` and ``of_offset`` say whose a batch and an offset are. ``stable`` are the last
    stable offsets of the last look, ``epochs`` the newest epoch of each producer id that a client
    was given, ``stored_epochs`` that of the coordinators."""

    producers: dict[str, TransactionalProducer] = field(default_factory=dict)
    fenced: list[TransactionalProducer] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    of_batch: dict[int, Transaction] = field(default_factory=dict)
    of_offset: dict[int, Transaction] = field(default_factory=dict)
    stable: dict[TopicPartition, int] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    stored_epochs: dict[int, int] = field(default_factory=dict)
    cut: set[TopicPartition] = field(default_factory=set)
    """Logs that were cut since the last look."""
    unmarked: set[int] = field(default_factory=set)
    """The numbers of batches whose marker may be gone."""
    deleted: set[str] = field(default_factory=set)
    offsets_lost: bool = False
    next_offset: int = _FIRST_OFFSET

    def begin(self, producer: TransactionalProducer, now_ms: int, *, newer: bool) -> Transaction:
        found = Transaction(
            producer.transactional_id,
            producer.producer_id,
            producer.epoch,
            now_ms + producer.timeout_ms,
            newer,
        )
        producer.transaction = found
        self.transactions.append(found)
        return found

    def follow(self, actions: Sequence[Action]) -> None:
        """Take in what the action log says about logs."""
        for action in actions:
            change = action.change
            if isinstance(change, RecordsLost):
                tp = (change.topic, change.index)
                self.cut.add(tp)
                self._lose_markers(tp)
                if change.topic == STATE_TOPIC:
                    self.forget()
                self.offsets_lost |= change.topic == OFFSETS_TOPIC
            elif isinstance(change, TopicDeleted):
                self.deleted.add(change.name)
                self.stable = {tp: each for tp, each in self.stable.items() if tp[0] != change.name}
                if change.name == STATE_TOPIC:
                    self.forget()
                self.offsets_lost |= change.name == OFFSETS_TOPIC

    def _lose_markers(self, tp: TopicPartition) -> None:
        """Markers may be gone with what a log loses: the next one of the producer decides then."""
        ended = (each for each in self.transactions if each.course is not Course.OPEN)
        self.unmarked.update(
            batch.number for each in ended for batch in each.batches if batch.tp == tp
        )

    def forget(self) -> None:
        """Coordinators lost their records: nothing is known of any transaction but that those whose
        commit nobody asked for are not committed."""
        self.epochs.clear()
        self.stored_epochs.clear()
        self.fenced.clear()
        for each in self.transactions:
            each.end()
            if each.course is Course.COMMITTED:
                each.course = Course.ASKED
        for producer in self.producers.values():
            producer.broken = True
