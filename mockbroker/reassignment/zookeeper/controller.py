"""Kafka's own controller of ZooKeeper mode: which rows are asked when, and what it answers.

Requests are checked here; what happens to a partition is the tables' (``zookeeper_rows``), what
users write to ``/admin/reassign_partitions`` is ``zookeeper_plan``'s. A reassignment is on record
in ``/brokers/topics/T``: where the controller dies, the next one finds it there and takes its last
phase up from the start.

The deletion of a topic does not wait for its reassignments (Kafka 1.1 to 3.9; A-54).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kproto.error_codes import ErrorCode, message
from kproto.znodes.kafka_znodes import PartitionState
from mockbroker.errors import Refusal
from mockbroker.reassignment.plan_znode import PLAN_WATCHED, leave_plan, pending, take_plan
from mockbroker.reassignment.transitions import Brokers, Table, run_first
from mockbroker.reassignment.znode_watches import WATCHED
from mockbroker.reassignment.zookeeper import refusal_texts as texts
from mockbroker.reassignment.zookeeper import tables as rows
from mockbroker.reassignment.zookeeper.effects import heading_for
from mockbroker.reassignment.zookeeper.eras import ERAS, Era
from mockbroker.reassignment.zookeeper_controller import ZooKeeperController
from mockbroker.rows import rows_of_release
from mockbroker.state.actions import PartitionChanged
from mockbroker.state.controller import Controller
from mockbroker.state.model import NO_LEADER, Partition, TopicPartition
from mockbroker.state.results import (
    AlterReassignmentsResult,
    ListReassignmentsResult,
    OngoingReassignment,
    OngoingTopic,
    PartitionResult,
    TopicResult,
)

__all__ = ["KafkaZooKeeperController"]

_CAUSE: Final = "alter_partition_reassignments"


class KafkaZooKeeperController(ZooKeeperController):
    unreadable_state = "it stays as it was known"
    watched = (*WATCHED, PLAN_WATCHED)
    deprecates_plans = False

    def __init__(self, era: Era = ERAS[-1]) -> None:
        self.name = era.name
        self.topic_version = era.topic_version
        self.broker_version = era.broker_version
        self.controller_version = era.controller_version
        self._era = era
        self._on_update = rows_of_release(rows.ON_UPDATE, era.since)
        self._on_plan = rows_of_release(rows.ON_PLAN, era.since)
        self._on_phase = rows_of_release(rows.ON_PHASE, era.since)
        self._on_step = rows_of_release(rows.ON_STEP, era.since)
        self._on_replica_start = rows_of_release(rows.ON_REPLICA_START, era.since)
        self._on_partition_start = rows_of_release(rows.ON_PARTITION_START, era.since)
        self._on_leader = rows_of_release(rows.ON_LEADER, era.since)
        self._on_change = rows_of_release(rows.ON_CHANGE, era.since)

    # ---- requests ----------------------------------------------------------------------------

    def alter(
        self,
        controller: Controller,
        topics: Sequence[tuple[str, Sequence[tuple[int, Sequence[int] | None]]]],
        *,
        allow_replication_factor_change: bool,
    ) -> AlterReassignmentsResult:
        """All are checked before any is started. A partition named twice is asked for once, as the
        last has it, and a topic without partitions is not mentioned again. The guard of the
        replication factor (Kafka 4.1) is only echoed."""
        asked = {(name, index): replicas for name, parts in topics for index, replicas in parts}
        outcome: dict[TopicPartition, PartitionResult] = {}
        targets: dict[TopicPartition, Brokers] = {}
        for tp, replicas in asked.items():
            try:
                targets[tp] = self._target(controller, tp, replicas)
            except Refusal as refusal:
                outcome[tp] = PartitionResult(tp[1], refusal.code, refusal.message)
        leave_plan(controller, _CAUSE, lambda tp, _: tp in targets)
        for tp, target in targets.items():
            if _find(controller, tp) is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                outcome[tp] = PartitionResult(tp[1], code, texts.NO_SUCH_PARTITION)
            else:
                self.reassign(controller, _CAUSE, tp, target)
                outcome[tp] = PartitionResult(tp[1])
        by_topic: dict[str, list[PartitionResult]] = {}
        for tp in asked:
            by_topic.setdefault(tp[0], []).append(outcome[tp])
        results = tuple(TopicResult(name, tuple(parts)) for name, parts in by_topic.items())
        return AlterReassignmentsResult(0, "", allow_replication_factor_change, results)

    def list_ongoing(
        self, controller: Controller, topics: Sequence[tuple[str, Sequence[int]]] | None
    ) -> ListReassignmentsResult:
        """Kafka lists in the order of a hash; here by name where all are asked for."""
        known = controller.state.topics
        wanted: Mapping[str, Sequence[int]]
        if topics is None:
            wanted = {name: range(len(known[name].partitions)) for name in sorted(known)}
        else:
            named: dict[str, dict[int, None]] = {}
            for name, indexes in topics:
                named.setdefault(name, {}).update(dict.fromkeys(indexes))
            wanted = {name: tuple(indexes) for name, indexes in named.items()}
        listed = []
        for name, indexes in wanted.items():
            found = (_find(controller, (name, index)) for index in indexes)
            ongoing = tuple(
                OngoingReassignment(each.index, each.replicas, each.adding, each.removing)
                for each in found
                if each is not None and each.reassigning
            )
            if ongoing:
                listed.append(OngoingTopic(name, ongoing))
        return ListReassignmentsResult(0, "", tuple(listed))

    def _target(
        self, controller: Controller, tp: TopicPartition, asked: Sequence[int] | None
    ) -> Brokers:
        """Where a request wants a partition, which may not exist; None wants it back to its origin.

        Raises Refusal, since 2.5 with texts: unlike KRaft it looks at the list alone first, and
        says in words that nothing is under way.
        """
        partition = _find(controller, tp) or _find_deleted(controller, tp)
        if asked is None:
            if not partition.reassigning:
                code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
                raise Refusal(code, message(code))
            return tuple(each for each in partition.replicas if each not in partition.adding)
        target = tuple(asked)
        adding, live = heading_for(partition, target).adding, controller.live_ids()
        wrong = None
        if not target:
            wrong = texts.EMPTY
        elif len(set(target)) != len(target):
            wrong = texts.duplicates(target)
        elif min(target) < 0:
            wrong = texts.not_ids(target)
        elif not set(adding) <= set(live):
            wrong = texts.not_alive(adding, live)
        if wrong is not None:
            code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
            raise Refusal(code, wrong if self._era.refusals_say_why else message(code))
        return target

    # ---- reassignments -----------------------------------------------------------------------

    def reassign(
        self, controller: Controller, cause: str, tp: TopicPartition, target: Brokers
    ) -> None:
        """``KafkaController.onPartitionReassignment``: put it on record, then as far as it goes."""
        held = controller.state.topics[tp[0]].partitions[tp[1]].replicas
        run_first(controller, cause, tp, self._on_update, requested_replicas=target)
        self._run(controller, cause, tp, self._on_phase, facts={"held": held})

    def reassign_all(
        self, controller: Controller, cause: str, targets: Mapping[TopicPartition, Brokers]
    ) -> None:
        """A plan. Where it is remembered as one, all of it is before any of it is started."""
        if not self._on_plan:
            for tp, target in targets.items():
                self.reassign(controller, cause, tp, target)
            return
        for tp, target in targets.items():
            run_first(controller, cause, tp, self._on_update, requested_replicas=target)
        for tp in targets:
            if not run_first(controller, cause, tp, self._on_plan):
                self._run(controller, cause, tp, self._on_phase)

    def settle(self, controller: Controller, cause: str, tp: TopicPartition) -> Partition:
        self._run(controller, cause, tp, self._on_step)
        return controller.state.topics[tp[0]].partitions[tp[1]]

    def change_partition(
        self, controller: Controller, cause: str, change: PartitionChanged
    ) -> None:
        # Here the epoch counts writes of the state znode, and each write counts itself.
        draft = replace(change.after, partition_epoch=change.before.partition_epoch)
        tp = (change.topic, draft.index)
        self._run(controller, cause, tp, self._on_change, draft=draft)

    def _run(
        self,
        controller: Controller,
        cause: str,
        tp: TopicPartition,
        table: Table,
        *,
        facts: dict[str, Any] | None = None,
        draft: Partition | None = None,
    ) -> None:
        """Apply the first row that matches; then a leader that was told of an epoch above its own
        does its part."""
        before = controller.state.topics[tp[0]].partitions[tp[1]].leader_epoch
        run_first(controller, cause, tp, table, facts=facts, draft=draft)
        if controller.state.topics[tp[0]].partitions[tp[1]].leader_epoch > before:
            run_first(controller, cause, tp, self._on_leader)

    def broker_started(self, controller: Controller, cause: str, broker_id: int) -> None:
        """Reassignments to a broker that is live again are taken up from where they are."""
        for name, partition in controller.partitions():
            if broker_id in (partition.target or ()):
                self.reassign(controller, cause, (name, partition.index), partition.target or ())

    # ---- take-over ---------------------------------------------------------------------------

    def resume(self, controller: Controller, cause: str) -> None:
        """Replicas that are gone first, then leaders; then what users have written to
        ``/admin/reassign_partitions``, which supplants what came by request; then the rest."""
        for name, partition in controller.partitions():
            self._run(controller, cause, (name, partition.index), self._on_replica_start)
        for name, partition in controller.partitions():
            self._run(controller, cause, (name, partition.index), self._on_partition_start)
        take_plan(self, controller)
        planned = pending(controller)
        for name, partition in controller.partitions():
            tp = (name, partition.index)
            if partition.reassigning and tp not in planned:
                self.reassign(controller, cause, tp, partition.target or ())

    def with_state(self, path: str, partition: Partition, state: PartitionState) -> Partition:
        """No leader on record is none, whoever led in the meantime."""
        if state.leader == NO_LEADER:
            return replace(partition, leader=NO_LEADER)
        return partition


def _find(controller: Controller, tp: TopicPartition) -> Partition | None:
    topic = controller.state.topics.get(tp[0])
    return None if topic is None else topic.partition(tp[1])


def _find_deleted(controller: Controller, tp: TopicPartition) -> Partition:
    """As it was, of a topic that a stopped broker keeps from being gone; else one that has
    nothing."""
    topic = controller.state.deleting.get(tp[0])
    found = None if topic is None else topic.partition(tp[1])
    return found or Partition(tp[1], (), (), NO_LEADER)
