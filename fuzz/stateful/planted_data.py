"""Deliberate defects of the data plane, one at a time, as ``planted`` has those of the cluster.

Each breaks one of the promises that ``data_invariants`` and the rules' own checks state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final
from unittest.mock import patch

from msgspec.structs import force_setattr, replace

from mockbroker.simulation.coordinators.offset_store import OffsetStore, OffsetUpdates
from mockbroker.simulation.fetching import reading
from mockbroker.simulation.groups.classic.classic_group import Group, GroupState, SyncRequest
from mockbroker.simulation.groups.classic.classic_groups import ClassicGroups
from mockbroker.simulation.groups.classic.rebalancing import Rebalancing
from mockbroker.simulation.log.logs import Logs
from mockbroker.simulation.log.partition_log import AbortedTransaction, PartitionLog
from mockbroker.simulation.log.producing.appender import Appender
from mockbroker.simulation.log.replicas.answer_holds import AnswerHolds
from mockbroker.simulation.log.replicas.replication import Replication
from mockbroker.simulation.state.actions import RecordsLost
from mockbroker.simulation.state.cluster_parts import Partition, TopicPartition
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.transactions.transaction_rules import ON_END, ON_END_VERSION_2
from mockbroker.simulation.transactions.transactional_ids import (
    Transaction,
    TransactionMetadata,
    TransactionState,
)
from mockbroker.simulation.transactions.transitions import Transitions

__all__ = ["DATA_DEFECTS"]

Plant = Callable[[], AbstractContextManager[object]]


def _watermark_falls() -> AbstractContextManager[object]:
    advance = Replication.advance_watermark

    def wrong(self: Replication, partition: Partition, min_isr: int | None) -> bool:
        log = self._log
        reached = log.end_offset - self.watermark_lag
        if reached < log.high_watermark:
            log.high_watermark = max(reached, log.start_offset)
        return advance(self, partition, min_isr)

    return patch.object(Replication, "advance_watermark", wrong)


def _duplicates_are_appended() -> AbstractContextManager[object]:
    def wrong(self: Appender, *arguments: Any) -> None:
        return None

    return patch.object(Appender, "_check_producer", wrong)


def _loss_is_not_told() -> AbstractContextManager[object]:
    note = Controller.note

    def wrong(self: Controller, cause: str, change: Any) -> None:
        if not isinstance(change, RecordsLost):
            note(self, cause, change)

    return patch.object(Controller, "note", wrong)


def _joiner_has_nothing() -> AbstractContextManager[object]:
    changed = Logs._partition_changed

    def wrong(
        self: Logs, cause: str, tp: TopicPartition, before: Partition, after: Partition
    ) -> None:
        if after.leader >= 0 and after.leader not in before.isr:
            self.truncate(cause, tp, self.data(tp).log.start_offset)
        changed(self, cause, tp, before, after)

    return patch.object(Logs, "_partition_changed", wrong)


def _stable_is_the_end() -> AbstractContextManager[object]:
    def end(self: PartitionLog) -> int:
        return self.end_offset

    return patch.object(PartitionLog, "last_stable_offset", property(end))


def _reads_what_is_not_replicated() -> AbstractContextManager[object]:
    def end(self: Any) -> int:
        return int(self.end_offset)

    return patch.object(reading._Access, "isolation_end", property(end))


def _commits_are_lost() -> AbstractContextManager[object]:
    apply = OffsetStore._apply

    def wrong(self: OffsetStore, group_id: str, updates: OffsetUpdates) -> None:
        kept = {tp: each for tp, each in updates.items() if each is None or each.offset % 4 != 3}
        if kept:
            apply(self, group_id, kept)

    return patch.object(OffsetStore, "_apply", wrong)


def _generation_falls() -> AbstractContextManager[object]:
    following = Rebalancing.next_generation

    def wrong(self: Rebalancing, group: Group) -> None:
        following(self, group)
        if group.generation == 3:
            group.generation = 1

    return patch.object(Rebalancing, "next_generation", wrong)


def _assigned_twice() -> AbstractContextManager[object]:
    sync = ClassicGroups.sync

    def wrong(self: ClassicGroups, request: SyncRequest, *arguments: Any) -> None:
        group = self.group(request.group_id)
        if group is not None and group.is_in(GroupState.STABLE) and request.assignments:
            self.machine.assign(group, dict(request.assignments))
        sync(self, request, *arguments)

    return patch.object(ClassicGroups, "sync", wrong)


def _held_answers_stay() -> AbstractContextManager[object]:
    def wrong(self: AnswerHolds, tp: TopicPartition | None) -> None:
        self._all = False
        self._held.clear()

    return patch.object(AnswerHolds, "release", wrong)


def _nobody_looks() -> AbstractContextManager[object]:
    return patch.object(PartitionLog, "changed", lambda self: None)


def _bytes_stay() -> AbstractContextManager[object]:
    truncate = Logs.truncate

    def wrong(self: Logs, cause: str, tp: TopicPartition, end_offset: int) -> None:
        size = self.bytes
        truncate(self, cause, tp, end_offset)
        self._bytes = size

    return patch.object(Logs, "truncate", wrong)


def _commit_is_listed_as_aborted() -> AbstractContextManager[object]:
    end = PartitionLog._end_transaction

    def wrong(self: PartitionLog, batch: Any, header: Any) -> None:
        known, listed = self.producers.get(header.producer_id), len(self.aborted)
        start = None if known is None else known.transaction_start
        end(self, batch, header)
        if start is not None and len(self.aborted) == listed:
            offset = header.base_offset
            self.aborted.append(AbortedTransaction(header.producer_id, start, offset, offset + 1))

    return patch.object(PartitionLog, "_end_transaction", wrong)


def _aborts_are_not_listed() -> AbstractContextManager[object]:
    return patch.object(reading, "_aborted", lambda *arguments: [])


def _stable_passes_open() -> AbstractContextManager[object]:
    def end(self: PartitionLog) -> int:
        return self.high_watermark

    return patch.object(PartitionLog, "last_stable_offset", property(end))


def _stable_returns() -> AbstractContextManager[object]:
    stable: Any = PartitionLog.__dict__["last_stable_offset"]

    def end(self: PartitionLog) -> int:
        found = int(stable.fget(self))
        if self.aborted and self.producers.first_open is None:
            return max(min(found, self.aborted[-1].first_offset), self.start_offset)
        return found

    return patch.object(PartitionLog, "last_stable_offset", property(end))


def _epoch_stays_at_init() -> AbstractContextManager[object]:
    initialize = Transitions.initialize

    def wrong(self: Transitions, transaction: Transaction, *arguments: Any, **named: Any) -> None:
        named["epoch"] = max(transaction.metadata.epoch, 0)
        initialize(self, transaction, *arguments, **named)

    return patch.object(Transitions, "initialize", wrong)


def _epoch_falls() -> AbstractContextManager[object]:
    write = Transitions.write

    def wrong(
        self: Transitions, transaction: Transaction, new: TransactionMetadata, done: Any
    ) -> None:
        if new.state is TransactionState.COMPLETE_COMMIT:
            new = replace(new, epoch=0)
        write(self, transaction, new, done)

    return patch.object(Transitions, "write", wrong)


def _offsets_before_the_commit() -> AbstractContextManager[object]:
    keep = OffsetStore._keep_pending

    def wrong(self: OffsetStore, producer_id: int, group_id: str, updates: OffsetUpdates) -> None:
        keep(self, producer_id, group_id, updates)
        found = {tp: each for tp, each in updates.items() if each is not None}
        self._offsets.setdefault(group_id, {}).update(found)

    return patch.object(OffsetStore, "_keep_pending", wrong)


def _offsets_without_the_commit() -> AbstractContextManager[object]:
    end = OffsetStore.end_transaction

    def wrong(self: OffsetStore, producer_id: int, tp: TopicPartition, *, committed: bool) -> None:
        end(self, producer_id, tp, committed=False)

    return patch.object(OffsetStore, "end_transaction", wrong)


@contextmanager
def _zombies_may_end() -> Iterator[None]:
    rows = [row for row in (*ON_END, *ON_END_VERSION_2) if "DP-END-01" in row.requirement]
    conditions = [row.when for row in rows]
    for row in rows:
        force_setattr(row, "when", lambda _: False)
    try:
        yield
    finally:
        for row, when in zip(rows, conditions, strict=True):
            force_setattr(row, "when", when)


DATA_DEFECTS: Final[Sequence[tuple[str, str, str, Plant]]] = (
    ("watermark-falls", "the high watermark falls when it is to lag", "kafka-4.4",
     _watermark_falls),
    ("duplicates-appended", "a duplicate is not recognised", "kafka-4.4", _duplicates_are_appended),
    ("loss-not-told", "a truncation leaves no action", "kafka-3.9", _loss_is_not_told),
    ("joiner-has-nothing", "a replica that joins and leads at once has no record", "kafka-4.4",
     _joiner_has_nothing),
    ("stable-is-the-end", "the last stable offset is the end of the log", "kafka-4.1",
     _stable_is_the_end),
    ("reads-too-far", "consumers read what is not replicated", "kafka-4.4",
     _reads_what_is_not_replicated),
    ("commits-lost", "some commits are acknowledged and dropped", "kafka-4.4", _commits_are_lost),
    ("generation-falls", "a group counts its generations anew", "kafka-4.4", _generation_falls),
    ("assigned-twice", "a leader assigns again in a stable group", "kafka-4.4", _assigned_twice),
    ("held-answers-stay", "held answers are not sent when they are released", "kafka-3.9",
     _held_answers_stay),
    ("nobody-looks", "requests that wait do not see that a log has changed", "kafka-4.4",
     _nobody_looks),
    ("bytes-stay", "the bytes of a log that is cut are still counted", "kafka-4.4", _bytes_stay),
    ("commit-listed-as-aborted", "a committed transaction is listed as an aborted one",
     "kafka-4.4", _commit_is_listed_as_aborted),
    ("aborts-not-listed", "a fetch does not list aborted transactions", "kafka-3.9",
     _aborts_are_not_listed),
    ("stable-passes-open", "the last stable offset passes open transactions", "kafka-4.4",
     _stable_passes_open),
    ("stable-returns", "the last stable offset returns to an aborted transaction", "kafka-3.9",
     _stable_returns),
    ("epoch-stays-at-init", "InitProducerId gives the same epoch again", "kafka-3.9",
     _epoch_stays_at_init),
    ("epoch-falls", "a coordinator forgets the epoch with a commit", "kafka-4.4", _epoch_falls),
    ("offsets-before-commit", "offsets of open transactions are the group's", "kafka-4.4",
     _offsets_before_the_commit),
    ("offsets-without-commit", "offsets of committed transactions are dropped", "kafka-4.4",
     _offsets_without_the_commit),
    ("zombies-may-end", "a fenced producer may end the transaction of its successor",
     "kafka-3.9", _zombies_may_end),
)  # fmt: skip
"""Name, what is wrong, profile, and how to plant it."""
