"""The offsets that groups have committed, and how long they last.

Offsets are kept by group and partition whatever broker coordinates the group, because a new
coordinator reads them from ``__consumer_offsets``. Whether a member may commit is up to the groups
(``group_facts``), which ends last to ``offset_rules``. Time is the cluster's virtual clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.coordinators.coordinator_kinds import INTERNAL_TOPIC_OF, CoordinatorKind
from mockbroker.simulation.coordinators.group_facts import SIMPLE, GroupCommit, GroupFacts
from mockbroker.simulation.coordinators.offset_rules import (
    APPEND_ERRORS,
    COMMIT_TIMES,
    DELETIONS,
    EXPIRY,
    UNKNOWN,
    Age,
    AppendError,
    CommittedOffset,
    CommitTimes,
    OffsetToCommit,
)
from mockbroker.simulation.coordinators.placement import Coordinators
from mockbroker.simulation.log.logs import InternalProducer
from mockbroker.simulation.log.producing.appender import AppendOutcome, ReplicationWait
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release
from mockbroker.simulation.state.actions import Change, TopicDeleted
from mockbroker.simulation.state.cluster_parts import TopicPartition
from mockbroker.simulation.state.controller import Controller

__all__ = ["Commitment", "FetchedOffset", "OffsetStore", "OffsetUpdates", "Stored"]

_OFFSETS_TOPIC: Final = INTERNAL_TOPIC_OF[CoordinatorKind.GROUP].name
_MINUTE_MS: Final = 60_000

OffsetUpdates: TypeAlias = Mapping[TopicPartition, CommittedOffset | None]
"""New offsets of a group by partition; None: the offset is deleted."""


class FetchedOffset(msgspec.Struct, frozen=True):
    """A row of OffsetFetch; the offset is -1 if there is none."""

    tp: TopicPartition
    offset: int = UNKNOWN
    leader_epoch: int = UNKNOWN
    metadata: str = ""
    error_code: ErrorCode = ErrorCode.NONE


class Commitment(msgspec.Struct, eq=False):
    """A commit that was begun. ``results`` has an error code for each of its partitions, in order;
    None while the commit is held back."""

    group_id: str
    offsets: tuple[tuple[TopicPartition, OffsetToCommit], ...]
    retention_ms: int
    producer: InternalProducer | None = None
    """The producer of the transaction to which the commit belongs."""
    results: list[ErrorCode] | None = None
    deleted: set[TopicPartition] = msgspec.field(default_factory=set)
    """Partitions whose topic was deleted while the commit was held back; they are not stored."""
    _waiting: list[Callable[[], None]] = msgspec.field(default_factory=list)

    def when_done(self, call: Callable[[], None]) -> None:
        """Call a function once there are results, at once if there are."""
        if self.results is None:
            self._waiting.append(call)
        else:
            call()

    def finish(self, results: list[ErrorCode]) -> None:
        self.results = results
        for call in self._waiting:
            call()


class Stored(msgspec.Struct, frozen=True):
    """The outcome of writing updates to ``__consumer_offsets``.

    ``wait`` ends once the replicas have them, with the error of ``outcome``; None: they have them.
    """

    error: ErrorCode = ErrorCode.NONE
    wait: ReplicationWait | None = None
    outcome: AppendOutcome | None = None


StoreOffsets: TypeAlias = Callable[[str, OffsetUpdates, InternalProducer | None], Stored]


class OffsetStore:
    """The committed offsets of one cluster, which runs ``release``.

    ``groups`` answers what the offsets depend on. ``store`` writes updates to
    ``__consumer_offsets`` before they count.
    """

    def __init__(
        self,
        controller: Controller,
        configs: EffectiveConfigs,
        coordinators: Coordinators,
        release: Release,
        groups: GroupFacts,
        store: StoreOffsets,
    ) -> None:
        self.groups = groups
        self.store = store
        self.on_changed: list[Callable[[str], None]] = []
        """Called with the id of a group whose committed offsets have changed."""
        self._controller = controller
        self._configs = configs
        self._coordinators = coordinators
        release.follow(self._use_release)
        self._offsets: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._pending: dict[int, dict[str, dict[TopicPartition, CommittedOffset]]] = {}
        self._logged: set[str] = set()
        """Groups with commits in the log, deleted ones included."""
        self._held: dict[str, list[Commitment]] = {}
        self._replicating: dict[str, list[Commitment]] = {}
        self._sequence = 0
        self._started_ms = controller.now_ms
        self._cleanup = controller.timers.timer(self.remove_expired, "expiry of offsets")
        controller.add_hooks((TopicDeleted,), after=self._topic_deleted)
        coordinators.attach(
            CoordinatorKind.GROUP,
            lambda: tuple(self._held),
            on_unload=self._unload,
            on_load=lambda group_ids: None,
        )

    def _use_release(self, release: Release) -> None:
        self._times = rows_of_release(COMMIT_TIMES, release)
        self._expiry = rows_of_release(EXPIRY, release)
        self._errors = rows_of_release(APPEND_ERRORS, release)
        self._deletions = rows_of_release(DELETIONS, release)
        self._reads_deleted = release.has(facts.DELETED_COMMITS_READ)

    # ---- committing ------------------------------------------------------------------------------

    def commit(
        self,
        group_id: str,
        offsets: Iterable[tuple[TopicPartition, OffsetToCommit]],
        *,
        retention_ms: int = UNKNOWN,
        producer: InternalProducer | None = None,
    ) -> Commitment:
        """Commit offsets of partitions that exist, for a group that may commit them.

        ``retention_ms`` is the request's, -1 if it has none. Offsets of a transaction, whose
        ``producer`` this is, are pending until ``end_transaction``.
        """
        commitment = Commitment(group_id, tuple(offsets), retention_ms, producer)
        if group_id in self._held:
            self._held[group_id].append(commitment)
        else:
            self._complete(commitment)
        return commitment

    def metadata_error(self, metadata: str) -> ErrorCode:
        """Return OFFSET_METADATA_TOO_LARGE (12) for metadata that is too long."""
        longest = int(self._configs.controller_value("offset.metadata.max.bytes"))
        too_long = _java_length(metadata) > longest
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if too_long else ErrorCode.NONE

    def accepts_any(self, offsets: Iterable[OffsetToCommit]) -> bool:
        """Return whether one of the offsets has metadata that is not too long."""
        return any(not self.metadata_error(each.metadata) for each in offsets)

    def _complete(self, commitment: Commitment) -> None:
        updates: dict[TopicPartition, CommittedOffset] = {}
        results = []
        for tp, wanted in commitment.offsets:
            results.append(self.metadata_error(wanted.metadata))
            if not results[-1] and tp not in commitment.deleted:
                updates[tp] = self._stamped(wanted, commitment.retention_ms)
        stored = (
            self.store(commitment.group_id, updates, commitment.producer) if updates else Stored()
        )
        if stored.wait is None:
            self._finish(commitment, updates, results, stored.error)
        else:
            self._await(commitment, updates, results, stored.wait, stored.outcome)

    def _await(
        self,
        commitment: Commitment,
        updates: OffsetUpdates,
        results: list[ErrorCode],
        wait: ReplicationWait,
        outcome: AppendOutcome | None,
    ) -> None:
        """Hold a commit until the replicas have it, at most offsets.commit.timeout.ms."""
        waiting = self._replicating.setdefault(commitment.group_id, [])
        waiting.append(commitment)

        def end() -> None:
            timer.set(None)
            wait.end()
            waiting.remove(commitment)
            code = ErrorCode.NONE if outcome is None else outcome.error
            self._finish(commitment, updates, results, code)

        def expire() -> None:
            wait.expire()
            end()

        timer = self._controller.timers.timer(
            expire, f"group {commitment.group_id}: end of OffsetCommit"
        )
        longest_ms = int(self._configs.controller_value("offsets.commit.timeout.ms"))
        timer.set(self._controller.now_ms + longest_ms)
        wait.when_over(end)

    def _finish(
        self,
        commitment: Commitment,
        updates: OffsetUpdates,
        results: list[ErrorCode],
        code: ErrorCode,
    ) -> None:
        if code:
            code = self._error_of(code)
            results = [result or code for result in results]
        else:
            self._logged.add(commitment.group_id)
            present = {tp: u for tp, u in updates.items() if tp not in commitment.deleted}
            if present and commitment.producer is not None:
                self._keep_pending(commitment.producer.producer_id, commitment.group_id, present)
            elif present:
                self._apply(commitment.group_id, present)
        commitment.finish(results)

    def _error_of(self, code: ErrorCode) -> ErrorCode:
        """Return the error that clients get for one of the append."""
        error = AppendError(code)
        apply_first(self._errors, error, error)
        return error.code

    def _stamped(self, wanted: OffsetToCommit, wanted_ms: int) -> CommittedOffset:
        times = CommitTimes(
            self._controller.now_ms, wanted.timestamp_ms, wanted_ms, self._retention_ms
        )
        apply_first(self._times, times, times)
        self._sequence += 1
        return CommittedOffset(
            wanted.offset,
            wanted.leader_epoch,
            wanted.metadata,
            times.commit_ms,
            times.expires_ms,
            self._sequence,
        )

    def _update(self, group_id: str, updates: OffsetUpdates) -> ErrorCode:
        """Store updates, and apply them unless they could not be stored."""
        code = self.store(group_id, updates, None).error
        # A deletion that is not written takes place all the same: Kafka tries it again and again.
        if code and any(update is not None for update in updates.values()):
            return self._error_of(code)
        self._apply(group_id, updates)
        return ErrorCode.NONE

    def _apply(self, group_id: str, updates: OffsetUpdates) -> None:
        offsets = self._offsets.setdefault(group_id, {})
        for tp, update in updates.items():
            if update is not None:
                offsets[tp] = update
                continue
            offsets.pop(tp, None)
            for pending in self._pending.values():
                pending.get(group_id, {}).pop(tp, None)
        if not offsets:
            del self._offsets[group_id]
        self.schedule_cleanup()
        self._changed(group_id)

    def _changed(self, group_id: str) -> None:
        for listener in tuple(self.on_changed):
            listener(group_id)

    # ---- reading ---------------------------------------------------------------------------------

    def __getitem__(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """The committed offsets of a group by partition; empty if it has none."""
        return self._offsets.get(group_id, {})

    def group_ids(self) -> tuple[str, ...]:
        """The groups that have committed offsets."""
        return tuple(self._offsets)

    def fetch(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None,
        *,
        require_stable: bool = False,
    ) -> list[FetchedOffset]:
        """Return a row for each partition; None: for each that has an offset, by topic.

        ``require_stable``: a partition with an offset that is not decided yet has error 88.
        """
        offsets = self[group_id]
        if partitions is None:
            topics = {topic: place for place, (topic, _) in reversed(list(enumerate(offsets)))}
            partitions = sorted(offsets, key=lambda tp: topics[tp[0]])
        rows = []
        for tp in partitions:
            committed = offsets.get(tp)
            if require_stable and self.is_unstable(group_id, tp):
                rows.append(FetchedOffset(tp, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT))
            elif committed is None:
                rows.append(FetchedOffset(tp))
            else:
                rows.append(
                    FetchedOffset(tp, committed.offset, committed.leader_epoch, committed.metadata)
                )
        return rows

    def is_unstable(self, group_id: str, tp: TopicPartition) -> bool:
        """Whether an offset of the partition is pending: of a transaction, held back, or not
        replicated yet."""
        return self.has_pending(group_id, tp) or any(
            tp == each
            for commitment in self._unfinished(group_id)
            for each, _ in commitment.offsets
        )

    def _unfinished(self, group_id: str) -> tuple[Commitment, ...]:
        return (*self._held.get(group_id, ()), *self._replicating.get(group_id, ()))

    # ---- transactions ----------------------------------------------------------------------------

    @property
    def pending(self) -> Mapping[int, Mapping[str, Mapping[TopicPartition, CommittedOffset]]]:
        """The offsets of transactions that have not ended, by producer id and group."""
        return self._pending

    def _keep_pending(self, producer_id: int, group_id: str, updates: OffsetUpdates) -> None:
        """Keep offsets until the producer's transaction ends."""
        pending = self._pending.setdefault(producer_id, {}).setdefault(group_id, {})
        pending.update((tp, offset) for tp, offset in updates.items() if offset is not None)

    def groups_with_pending(self) -> tuple[str, ...]:
        """The groups that have offsets of transactions that have not ended."""
        return tuple(dict.fromkeys(name for groups in self._pending.values() for name in groups))

    def end_transaction(self, producer_id: int, tp: TopicPartition, *, committed: bool) -> None:
        """Commit or forget the pending offsets of a producer, in the groups of one partition of
        ``__consumer_offsets``. A plain commit that came later than a pending one is kept."""
        groups = self._pending.get(producer_id, {})
        for group_id in tuple(groups):
            if self._coordinators.partition_of(CoordinatorKind.GROUP, group_id) != tp:
                continue
            offsets = groups.pop(group_id)
            present = self[group_id]
            if committed and offsets:
                self._offsets.setdefault(group_id, {}).update(
                    (tp, offset)
                    for tp, offset in offsets.items()
                    if tp not in present or offset.sequence > present[tp].sequence
                )
                self._changed(group_id)
        if not groups:
            self._pending.pop(producer_id, None)
        self.schedule_cleanup()

    def has_pending(self, group_id: str, tp: TopicPartition | None = None) -> bool:
        """Whether a transaction that has not ended has offsets of the group, or of a partition."""
        return any(
            tp in offsets if tp is not None else bool(offsets)
            for groups in self._pending.values()
            for offsets in (groups.get(group_id, {}),)
        )

    def keeps(self, group_id: str) -> bool:
        """Whether there are offsets of the group, pending ones included."""
        return bool(self[group_id]) or self.has_pending(group_id)

    def makes_group(self, group_id: str) -> bool:
        """Whether a coordinator that reads the log makes a group for its offsets."""
        return self.keeps(group_id) or (self._reads_deleted and group_id in self._logged)

    # ---- deleting --------------------------------------------------------------------------------

    def delete(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete the offsets of partitions, pending ones included."""
        gone = [tp for tp in partitions if tp in self[group_id] or self.has_pending(group_id, tp)]
        if gone:
            self._update(group_id, dict.fromkeys(gone))

    def delete_at_request(self, group_id: str, partitions: Sequence[TopicPartition]) -> None:
        """OffsetDelete of partitions that may be deleted."""
        self.delete(group_id, partitions)
        if partitions:
            apply_first(self._deletions, None, lambda: self._let_go([group_id]))

    def _let_go(self, group_ids: Iterable[str]) -> None:
        """A transaction that has not ended keeps a group even if its offsets are deleted."""
        pending = self.groups_with_pending()
        for group_id in group_ids:
            if not (self[group_id] or group_id in pending or self._unfinished(group_id)):
                self.groups.offsets_gone(group_id)

    def delete_group(self, group_id: str) -> None:
        """Delete every offset of a group that is deleted."""
        self._logged.discard(group_id)
        pending = [groups.get(group_id, {}) for groups in self._pending.values()]
        self.delete(
            group_id, dict.fromkeys(tp for each in (self[group_id], *pending) for tp in each)
        )

    def _topic_deleted(self, cause: str, change: Change) -> None:
        assert isinstance(change, TopicDeleted)
        if change.name == _OFFSETS_TOPIC:
            self._offsets.clear()
            self._pending.clear()
            self._logged.clear()
            return
        unfinished = (*self._held.values(), *self._replicating.values())
        for commitment in (each for waiting in unfinished for each in waiting):
            gone = {tp for tp, _ in commitment.offsets if tp[0] == change.name}
            commitment.deleted |= gone
        pending = [group_id for groups in self._pending.values() for group_id in groups]
        for group_id in dict.fromkeys((*self._offsets, *pending)):
            known = [self[group_id], *(each.get(group_id, {}) for each in self._pending.values())]
            self.delete(group_id, [tp for each in known for tp in each if tp[0] == change.name])
        apply_first(self._deletions, None, lambda: self._let_go(tuple(self.groups.group_ids())))

    # ---- expiry ----------------------------------------------------------------------------------

    @property
    def _retention_ms(self) -> int:
        return int(self._configs.controller_value("offsets.retention.minutes")) * _MINUTE_MS

    def schedule_cleanup(self) -> None:
        """Set the timer of the next check, or none while there is nothing to check. To be called
        when a group appears or goes, too: an empty group without offsets goes at a check."""
        if not self._offsets and not any(True for _ in self.groups.group_ids()):
            self._cleanup.set(None)
        elif self._cleanup.due_ms is None:
            value = self._configs.controller_value("offsets.retention.check.interval.ms")
            interval_ms = max(int(value), 1)
            checks = (self._controller.now_ms - self._started_ms) // interval_ms + 1
            self._cleanup.set(self._started_ms + checks * interval_ms)

    def remove_expired(self) -> None:
        """Delete the offsets whose time has passed, as the coordinators' periodic check does. Where
        a group has no offsets left, ``groups`` learns of it."""
        for group_id in tuple(dict.fromkeys((*self._offsets, *self.groups.group_ids()))):
            if not self._coordinators.is_active(CoordinatorKind.GROUP, group_id):
                continue
            expired = [tp for tp in self[group_id] if self._is_expired(group_id, tp)]
            if expired:
                self._update(group_id, dict.fromkeys(expired))
            self._let_go([group_id])
        self.schedule_cleanup()

    def _is_expired(self, group_id: str, tp: TopicPartition) -> bool:
        if self.is_unstable(group_id, tp):
            return False
        age = Age(
            self[group_id][tp],
            self.groups.standing(group_id) or SIMPLE,
            self.groups.is_subscribed(group_id, tp[0]),
            self._controller.now_ms,
            self._retention_ms,
        )
        apply_first(self._expiry, age, age)
        return age.expired

    # ---- steps of a tester -----------------------------------------------------------------------

    def set_offset(self, group_id: str, tp: TopicPartition, offset: int) -> None:
        """Commit an offset for a group, whatever its members. Raises ClusterError."""
        self._controller.partition(tp)
        if offset < 0:
            raise ClusterError(f"an offset is 0 or more, not {offset}")
        if self.groups.standing(group_id) is None:
            self.groups.validate_commit(GroupCommit(group_id))
        code = self._update(group_id, {tp: self._stamped(OffsetToCommit(offset), UNKNOWN)})
        if code:
            raise ClusterError(f"{_OFFSETS_TOPIC} cannot be written: error {code.name} ({code})")

    def drop_offset(self, group_id: str, tp: TopicPartition) -> None:
        """Delete a committed offset, as if it had expired. Raises ClusterError."""
        if tp not in self[group_id]:
            raise ClusterError(f"group {group_id!r} has no offset for {tp[0]}-{tp[1]}")
        self._update(group_id, {tp: None})

    def waiting_commits(self) -> dict[str, int]:
        """How many commits of each group wait: held back, or for the replicas."""
        counts = {each: len(self._unfinished(each)) for each in {*self._held, *self._replicating}}
        return {group_id: counts[group_id] for group_id in sorted(counts) if counts[group_id]}

    def hold_commits(self, group_id: str) -> None:
        """Hold the commits of a group: they are neither answered nor visible, and fetches of
        stable offsets get error 88. Raises ClusterError."""
        if group_id in self._held:
            raise ClusterError(f"commits of group {group_id!r} are already held")
        self._held[group_id] = []

    def release_commits(self, group_id: str) -> None:
        """Complete the commits that wait, in order, and let later ones pass. Raises
        ClusterError."""
        if group_id not in self._held:
            raise ClusterError(f"commits of group {group_id!r} are not held")
        for commitment in self._held.pop(group_id):
            self._complete(commitment)

    def _unload(self, group_ids: Sequence[str]) -> None:
        """The coordinator is gone before its commits were replicated: they are lost."""
        for group_id in group_ids:
            waiting, self._held[group_id] = self._held[group_id], []
            for commitment in waiting:
                commitment.finish([ErrorCode.NOT_COORDINATOR] * len(commitment.offsets))


def _java_length(text: str) -> int:
    """Java's ``String.length``, in UTF-16 code units."""
    return len(text) + sum(character > "\uffff" for character in text)
