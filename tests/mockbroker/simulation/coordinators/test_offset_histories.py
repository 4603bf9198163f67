"""Whatever happens, a committed offset is there until it expires, is deleted or is dropped."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mockbroker.errors import ClusterError
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.coordinators.offset_rules import OffsetToCommit
from mockbroker.simulation.coordinators.offset_store import Commitment
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_parts import TopicPartition
from tests.mockbroker.simulation.coordinators.offset_requests import (
    coordinated,
    coordinator_of,
    end_transaction,
    pend,
)

GROUP = CoordinatorKind.GROUP
RETENTION_MS = 5 * 60_000
INTERVAL_MS = 60_000

group_ids = st.sampled_from(["g", "h"])
partitions = st.sampled_from([("foo", 0), ("foo", 1), ("bar", 0)])
offsets = st.integers(0, 99)


class Offsets(RuleBasedStateMachine):
    """The model is a dictionary: (group, partition) -> (offset, time of the commit)."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = coordinated(
            3,
            topics=["foo:2:3", "bar:1:3"],
            broker_configs={
                "offsets.topic.num.partitions": "4",
                "offsets.retention.minutes": str(RETENTION_MS // 60_000),
                "offsets.retention.check.interval.ms": str(INTERVAL_MS),
            },
        )
        self.store = self.cluster.offsets
        self.committed: dict[tuple[str, TopicPartition], tuple[int, int]] = {}
        self.pending: dict[int, dict[tuple[str, TopicPartition], tuple[int, int]]] = {}
        self.held: dict[str, list[tuple[TopicPartition, int, Commitment]]] = {}

    def _is_pending(self, key: tuple[str, TopicPartition]) -> bool:
        return any(key in each for each in self.pending.values())

    def _is_held(self, group_id: str, tp: TopicPartition) -> bool:
        return any(tp == each for each, _, _ in self.held.get(group_id, ()))

    def _topic_exists(self, tp: TopicPartition) -> bool:
        return tp[0] in self.cluster.topics

    # ---- commits -------------------------------------------------------------------------------

    @rule(group_id=group_ids, tp=partitions, offset=offsets)
    def commit(self, group_id: str, tp: TopicPartition, offset: int) -> None:
        if not self._topic_exists(tp):
            return
        assert self.store.groups.validate_commit(GroupCommit(group_id)) == 0
        commitment = self.store.commit(group_id, [(tp, OffsetToCommit(offset))])
        if group_id in self.held:
            assert commitment.results is None
            self.held[group_id].append((tp, offset, commitment))
        else:
            assert commitment.results == [0]
            self.committed[group_id, tp] = offset, self.cluster.timers.now_ms

    @rule(group_id=group_ids, tp=partitions, offset=offsets)
    def set_offset(self, group_id: str, tp: TopicPartition, offset: int) -> None:
        if self._topic_exists(tp):
            Operations(self.cluster).set_offset(group_id, tp, offset)
            self.committed[group_id, tp] = offset, self.cluster.timers.now_ms

    @rule(group_id=group_ids)
    def hold(self, group_id: str) -> None:
        if group_id not in self.held:
            Operations(self.cluster).hold_commits(group_id)
            self.held[group_id] = []

    @rule(group_id=group_ids)
    def release(self, group_id: str) -> None:
        if group_id in self.held:
            Operations(self.cluster).release_commits(group_id)
            for tp, offset, commitment in self.held.pop(group_id):
                assert commitment.results == [0]
                if tp not in commitment.deleted:
                    self.committed[group_id, tp] = offset, self.cluster.timers.now_ms

    # ---- transactions --------------------------------------------------------------------------

    @rule(producer_id=st.integers(0, 1), group_id=group_ids, tp=partitions, offset=offsets)
    def add_pending(self, producer_id: int, group_id: str, tp: TopicPartition, offset: int) -> None:
        if self._topic_exists(tp) and group_id not in self.held:
            assert self.store.groups.validate_commit(GroupCommit(group_id)) == 0
            pend(self.store, producer_id, group_id, [(tp, OffsetToCommit(offset))])
            mine = self.pending.setdefault(producer_id, {})
            mine.pop((group_id, tp), None)
            mine[group_id, tp] = offset, self.cluster.timers.now_ms

    @rule(producer_id=st.integers(0, 1))
    def abort(self, producer_id: int) -> None:
        end_transaction(self.cluster, producer_id, committed=False)
        self.pending.pop(producer_id, None)

    # ---- the end of offsets --------------------------------------------------------------------

    @rule(group_id=group_ids, tp=partitions)
    def drop(self, group_id: str, tp: TopicPartition) -> None:
        if (group_id, tp) in self.committed:
            Operations(self.cluster).drop_offset(group_id, tp)
            self._forget(lambda key: key == (group_id, tp))
        else:
            with pytest.raises(ClusterError):
                Operations(self.cluster).drop_offset(group_id, tp)

    @rule(group_id=group_ids, tp=partitions)
    def delete(self, group_id: str, tp: TopicPartition) -> None:
        self.store.delete(group_id, [tp])
        self._forget(lambda key: key == (group_id, tp))

    @rule(topic=st.sampled_from(["foo", "bar"]))
    def delete_or_create_topic(self, topic: str) -> None:
        if topic in self.cluster.topics:
            self.cluster.topics.delete([(None, self.cluster.topics[topic].topic_id)])
            self._forget(lambda key: key[1][0] == topic)
        else:
            self.cluster.topics.add(f"{topic}:2:3")

    def _forget(self, matches: Any) -> None:
        for each in (self.committed, *self.pending.values()):
            for key in [key for key in each if matches(key)]:
                del each[key]

    @rule(milliseconds=st.sampled_from([1, 30_000, INTERVAL_MS, RETENTION_MS]))
    def advance(self, milliseconds: int) -> None:
        end_ms = self.cluster.timers.now_ms + milliseconds
        check_ms = (self.cluster.timers.now_ms // INTERVAL_MS + 1) * INTERVAL_MS
        while check_ms <= end_ms:
            for (group_id, tp), (_, commit_ms) in list(self.committed.items()):
                key = group_id, tp
                unstable = self._is_pending(key) or self._is_held(group_id, tp)
                if check_ms - commit_ms >= RETENTION_MS and not unstable:
                    del self.committed[key]
            check_ms += INTERVAL_MS
        self.cluster.turns.advance(milliseconds)

    # ---- coordinators --------------------------------------------------------------------------

    @rule(group_id=group_ids)
    def restart_coordinator(self, group_id: str) -> None:
        leader = coordinator_of(self.cluster, group_id)
        moved = {each for each in ("g", "h") if coordinator_of(self.cluster, each) == leader}
        Operations(self.cluster).stop_broker(leader)
        Operations(self.cluster).start_broker(leader)
        for topic in tuple(self.cluster.topics.values()):
            for partition in topic.partitions:
                if leader not in partition.isr:
                    Operations(self.cluster).join_isr((topic.name, partition.index), leader)
        for each in moved & self.held.keys():
            assert all(commitment.results == [16] for _, _, commitment in self.held[each])
            self.held[each] = []

    # ---- what holds ----------------------------------------------------------------------------

    @invariant()
    def every_offset_is_as_it_was_committed_last(self) -> None:
        for group_id in ("g", "h"):
            expected = {tp: v[0] for (each, tp), v in self.committed.items() if each == group_id}
            found = self.store.fetch(group_id, None)
            assert {row.tp: row.offset for row in found} == expected
            topics = [row.tp[0] for row in found]
            assert len(set(topics)) == sum(
                place == 0 or topics[place - 1] != topic for place, topic in enumerate(topics)
            )

    @invariant()
    def unstable_offsets_are_those_that_are_pending(self) -> None:
        for group_id in ("g", "h"):
            wanted = [("foo", 0), ("foo", 1), ("bar", 0)]
            for row in self.store.fetch(group_id, wanted, require_stable=True):
                pending = self._is_pending((group_id, row.tp)) or self._is_held(group_id, row.tp)
                assert (row.error_code == 88) == pending


OffsetsTest = Offsets.TestCase
OffsetsTest.settings = settings(deadline=None)
OffsetsTest.pytestmark = [pytest.mark.requirement("DP-OFFSET-12", "DP-OFFSET-22")]
