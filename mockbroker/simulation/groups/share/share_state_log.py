"""What share coordinators write to ``__share_group_state``, as Kafka writes it (KIP-932).

Nothing is read back from the log: the share partitions in memory are the state. The log is there
for consumers of the topic. The first record of a state is a snapshot; the changes that follow are
updates, and after ``share.coordinator.snapshot.update.records.per.snapshot`` of them comes another
snapshot. Kafka's snapshots of idle partitions, and its deletion of redundant records, are left out.

::

    key    type int16 (0: a snapshot, 1: an update), then group, topic id and partition
    value  version int16 (0), then the fields of the message; null deletes the state
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

import msgspec

from kproto.codec.message import Message
from kproto.messages.share_snapshot_key import ShareSnapshotKey
from kproto.messages.share_snapshot_value import ShareSnapshotValue
from kproto.messages.share_snapshot_value import StateBatch as SnapshotBatch
from kproto.messages.share_update_key import ShareUpdateKey
from kproto.messages.share_update_value import ShareUpdateValue
from kproto.messages.share_update_value import StateBatch as UpdateBatch
from kproto.records import Record
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind, share_text
from mockbroker.simulation.coordinators.placement import Coordinators
from mockbroker.simulation.groups.modern.partitions import TopicIdPartition
from mockbroker.simulation.groups.share.share_partition import UNINITIALIZED
from mockbroker.simulation.groups.share.stored_batches import StateBatch, WrittenState, combine
from mockbroker.simulation.log.producing.appender import Appender
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, always, apply_first, rows_of_release
from mockbroker.simulation.state.cluster_parts import NO_LEADER
from mockbroker.simulation.state.controller import Controller

__all__ = ["MERGE_ROWS", "LoggedState", "ShareStateLog", "StateMerge"]

_UPDATES: Final = "share.coordinator.snapshot.update.records.per.snapshot"
_VERSION: Final = b"\0\0"
_NO_COUNT: Final = -1


class LoggedState(msgspec.Struct):
    """What the records of a share partition add up to. ``updates`` counts those since the last
    snapshot."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete: int
    batches: list[StateBatch] = []
    updates: int = 0


class StateMerge(msgspec.Struct, eq=False):
    """A state that a leader stores, and where the former one begins. The rows decide on
    ``start_offset`` and ``complete``."""

    stored_start: int
    stored_complete: int
    written: WrittenState
    start_offset: int = UNINITIALIZED
    complete: int = UNINITIALIZED


def _take(merge: StateMerge) -> None:
    written, kept = merge.written, merge.stored_start
    merge.start_offset = kept if written.start_offset == UNINITIALIZED else written.start_offset
    merge.complete = written.complete


def _take_later(merge: StateMerge) -> None:
    merge.start_offset, merge.complete = max(
        (merge.stored_start, merge.stored_complete),
        (merge.written.start_offset, merge.written.complete),
    )


MERGE_ROWS: Final[Sequence[Row[StateMerge, StateMerge]]] = (
    Row("DP-SHARE-42", always, (_take,), until=(4, 4)),
    Row("DP-SHARE-42", always, (_take_later,)),
)


class ShareStateLog:
    """Writes to the partition of ``__share_group_state`` that a share partition belongs to.

    Releases before 4.1 write nothing: the records of the early access have another layout. The
    topic is created with the first state, as Kafka creates it for the group coordinator's request.
    """

    def __init__(
        self,
        controller: Controller,
        configs: EffectiveConfigs,
        coordinators: Coordinators,
        appender: Appender,
        release: Release,
    ) -> None:
        self._controller = controller
        self._configs = configs
        self._coordinators = coordinators
        self._appender = appender
        release.follow(self._use_release)
        self._states: dict[tuple[str, TopicIdPartition], LoggedState] = {}
        self._leaders: dict[tuple[str, TopicIdPartition], int] = {}
        """The newest epoch of a leader, which a new state does not end."""

    def _use_release(self, release: Release) -> None:
        self._writes = release.has(facts.SHARE_STATES_LOGGED)
        self._counts = release.has(facts.SHARE_STATES_COUNTED)
        self._merge_rows = rows_of_release(MERGE_ROWS, release)

    def state(self, group_id: str, key: TopicIdPartition) -> LoggedState | None:
        """Return what the records of a share partition add up to; None if it has no state."""
        return self._states.get((group_id, key))

    # ---- changes -------------------------------------------------------------------------------

    def begin(
        self, group_id: str, key: TopicIdPartition, state_epoch: int, start_offset: int
    ) -> None:
        """Record a new state, which may take the place of another."""
        former = self._states.get((group_id, key))
        state = self._states[group_id, key] = LoggedState(
            snapshot_epoch=0 if former is None else former.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            complete=UNINITIALIZED if start_offset == UNINITIALIZED else 0,
        )
        self._leaders.setdefault((group_id, key), 0)
        self._snapshot(group_id, key, state)

    def lead(self, group_id: str, key: TopicIdPartition, leader_epoch: int) -> None:
        """Record that a leader has read a state, if it is another one than before."""
        state = self._states.get((group_id, key))
        if state is not None and self._leaders.get((group_id, key)) != leader_epoch:
            self._leaders[group_id, key] = state.leader_epoch = leader_epoch
            self._change(group_id, key, state, [])

    def write(self, group_id: str, key: TopicIdPartition, written: WrittenState) -> None:
        """Record what a leader stores."""
        state = self._states.get((group_id, key))
        if state is not None:
            merge = self.merge(state.start_offset, state.complete, written)
            state.start_offset, state.complete = merge.start_offset, merge.complete
            self._change(group_id, key, state, written.batches)

    def delete(self, group_id: str, key: TopicIdPartition) -> None:
        """Record the end of a state, if there is one."""
        self._leaders.pop((group_id, key), None)
        if self._states.pop((group_id, key), None) is not None:
            self._append(group_id, key, _snapshot_key(group_id, key), None)

    def merge(self, start_offset: int, complete: int, written: WrittenState) -> StateMerge:
        """Return where a state begins after a write."""
        merge = StateMerge(start_offset, complete, written)
        apply_first(self._merge_rows, merge, merge)
        return merge

    # ---- records -------------------------------------------------------------------------------

    def _change(
        self,
        group_id: str,
        key: TopicIdPartition,
        state: LoggedState,
        batches: Sequence[StateBatch],
    ) -> None:
        """Append an update, or a snapshot when it is due."""
        state.batches = combine([*state.batches, *batches], state.start_offset)
        if state.updates >= int(self._configs.controller_value(_UPDATES)):
            state.snapshot_epoch += 1
            self._snapshot(group_id, key, state)
            return
        state.updates += 1
        value = ShareUpdateValue(
            snapshot_epoch=state.snapshot_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=self._count(state),
            state_batches=[
                UpdateBatch(
                    first_offset=each.first, last_offset=each.last,
                    delivery_state=each.state, delivery_count=each.deliveries,
                )
                for each in combine(batches, state.start_offset)
            ],
        )  # fmt: skip
        name = ShareUpdateKey(group_id=group_id, topic_id=key[0], partition=key[1])
        self._append(group_id, key, name, value)

    def _snapshot(self, group_id: str, key: TopicIdPartition, state: LoggedState) -> None:
        state.updates = 0
        now_ms = self._controller.now_ms
        value = ShareSnapshotValue(
            snapshot_epoch=state.snapshot_epoch,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=self._count(state),
            create_timestamp=now_ms,
            write_timestamp=now_ms,
            state_batches=[
                SnapshotBatch(
                    first_offset=each.first, last_offset=each.last,
                    delivery_state=each.state, delivery_count=each.deliveries,
                )
                for each in state.batches
            ],
        )  # fmt: skip
        self._append(group_id, key, _snapshot_key(group_id, key), value)

    def _count(self, state: LoggedState) -> int:
        return state.complete if self._counts else _NO_COUNT

    def _append(
        self, group_id: str, key: TopicIdPartition, name: Message, value: Message | None
    ) -> None:
        if not self._writes:
            return
        kind, text = CoordinatorKind.SHARE, share_text(group_id, *key)
        tp = self._coordinators.partition_of(kind, text)
        if tp[0] not in self._controller.state.topics:
            self._coordinators.find(kind, text, self._controller.state.controller_id)
        leader = self._coordinators.leader(tp)
        if leader == NO_LEADER:
            return
        assert name.API_KEY is not None
        record = Record(
            key=name.API_KEY.to_bytes(2, "big") + name.encode(0),
            value=None if value is None else _VERSION + value.encode(0),
        )
        self._appender.append_internal(leader, tp, [record])


def _snapshot_key(group_id: str, key: tuple[uuid.UUID, int]) -> ShareSnapshotKey:
    return ShareSnapshotKey(group_id=group_id, topic_id=key[0], partition=key[1])
