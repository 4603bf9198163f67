"""The reassignment controller of Kafka's ZooKeeper mode: which table applies when.

A reassignment is on record in ``/brokers/topics/T``. If the controller dies, the next one finds it
there and repeats its last phase from the start. ``plan_znode`` handles what users write to
``/admin/reassign_partitions``.

Deleting a topic does not wait for its reassignments (Kafka 1.1 to 3.9; A-54).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from kproto.znodes.kafka_znodes import PartitionState
from mockbroker.errors import Refusal
from mockbroker.simulation.reassignment.plan_znode import (
    PLAN_WATCH,
    pending,
    remove_from_plan,
    start_plan,
)
from mockbroker.simulation.reassignment.reassignment_controller import Dependencies
from mockbroker.simulation.reassignment.reassignment_requests import (
    RequestedTargets,
    alter_each,
    list_each,
    merged,
    shipped_lists,
)
from mockbroker.simulation.reassignment.transitions import Brokers, Table
from mockbroker.simulation.reassignment.unclean_elections import ON_UNCLEAN_ALLOWED
from mockbroker.simulation.reassignment.znode_watches import COMMON_WATCHES
from mockbroker.simulation.reassignment.zookeeper import refusal_texts as texts
from mockbroker.simulation.reassignment.zookeeper import zookeeper_rules as rules
from mockbroker.simulation.reassignment.zookeeper_controller import ZooKeeperController
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import rows_of_release
from mockbroker.simulation.state.actions import PartitionChanged
from mockbroker.simulation.state.cluster_parts import (
    NO_LEADER,
    Partition,
    PartitionsByTopic,
    TopicPartition,
    find_partition,
)
from mockbroker.simulation.state.results import AlterReassignmentsResult, ListReassignmentsResult
from mockbroker.simulation.state.turns import step

__all__ = ["KafkaZooKeeperController"]

_CAUSE: Final = "alter_partition_reassignments"


class KafkaZooKeeperController(ZooKeeperController):
    unreadable_state = "it stays as it was known"
    watches = (*COMMON_WATCHES, PLAN_WATCH)
    deprecates_plans = False

    def __init__(self, name: str, release: Release, dependencies: Dependencies) -> None:
        super().__init__(dependencies)
        self.name = name
        self.topic_version = release.value_of(facts.TOPIC_ZNODE_VERSION)
        self.broker_version = release.value_of(facts.BROKER_ZNODE_VERSION)
        self.controller_version = release.value_of(facts.CONTROLLER_ZNODE_VERSION)
        self.leaders_write_isr = release.has(facts.LEADERS_WRITE_ISR)
        self.recovery_recorded = release.has(facts.UNCLEAN_ELECTION_RECORDED)
        self.on_unclean_allowed = rows_of_release(ON_UNCLEAN_ALLOWED, release)
        self._refusals = rows_of_release(rules.REFUSALS, release)
        self._on_submit = rows_of_release(rules.ON_SUBMIT, release)
        self._on_update = rows_of_release(rules.ON_UPDATE, release)
        self._on_plan = rows_of_release(rules.ON_PLAN, release)
        self._on_phase = rows_of_release(rules.ON_PHASE, release)
        self._on_step = rows_of_release(rules.ON_STEP, release)
        self._on_election = rows_of_release(rules.ON_ELECTION, release)
        self._on_replica_start = rows_of_release(rules.ON_REPLICA_START, release)
        self._on_partition_start = rows_of_release(rules.ON_PARTITION_START, release)
        self._on_leader = rows_of_release(rules.ON_LEADER, release)
        self._on_change = rows_of_release(rules.ON_CHANGE, release)

    # ---- requests ----------------------------------------------------------------------------

    @step(by_controller=True)
    def alter(
        self, topics: RequestedTargets, *, allow_replication_factor_change: bool = True
    ) -> AlterReassignmentsResult:
        """Every partition is checked before any is started. A partition named twice counts once,
        with its last target. The guard of the replication factor (Kafka 4.1) is only echoed."""
        distinct = merged(topics)
        refusals: dict[TopicPartition, Refusal] = {}
        targets: dict[TopicPartition, Brokers] = {}
        for name, partitions in distinct:
            for index, replicas in partitions:
                try:
                    targets[name, index] = self._target((name, index), replicas)
                except Refusal as refusal:
                    refusals[name, index] = refusal
        remove_from_plan(self, _CAUSE, lambda tp, _: tp in targets)

        def alter_one(tp: TopicPartition, _: Brokers | None) -> None:
            if tp in refusals:
                raise refusals[tp]
            if find_partition(self.controller.state.topics, tp) is None:
                raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, texts.NO_SUCH_PARTITION)
            self.reassign(_CAUSE, tp, targets[tp])

        return alter_each(
            distinct,
            alter_one,
            allow_replication_factor_change=allow_replication_factor_change,
            message="",
        )

    def list_ongoing(self, topics: PartitionsByTopic | None) -> ListReassignmentsResult:
        """Kafka lists topics in the order of a hash; here they are sorted by name if all are
        requested."""
        distinct = None
        if topics is not None:
            indexes: dict[str, dict[int, None]] = {}
            for name, partitions in topics:
                indexes.setdefault(name, {}).update(dict.fromkeys(partitions))
            distinct = [(name, tuple(each)) for name, each in indexes.items()]
        with self.turns.reading(by_controller=True):
            return list_each(self.controller.state.topics, distinct, shipped_lists, message="")

    def _target(self, tp: TopicPartition, replicas: Sequence[int] | None) -> Brokers:
        """The target of a request for a partition, which may not exist; None means the replicas
        before its reassignment. Raises Refusal."""
        state = self.controller.state
        partition = (
            find_partition(state.topics, tp)
            # Its topic waits for a stopped broker to be deleted.
            or find_partition(state.deleting, tp)
            or Partition(tp[1], (), (), NO_LEADER)
        )
        if replicas is None:
            self.run_first(_CAUSE, tp, rules.ON_CANCEL, before=partition)
            return tuple(each for each in partition.replicas if each not in partition.adding)
        target = tuple(replicas)
        self.run_first(_CAUSE, tp, self._refusals, before=partition, requested_replicas=target)
        return target

    # ---- reassignments -----------------------------------------------------------------------

    def reassign(self, cause: str, tp: TopicPartition, target: Brokers) -> None:
        """``KafkaController.onPartitionReassignment``: record the target, then go as far as
        possible."""
        held = self.controller.partition(tp).replicas
        self.run_first(cause, tp, self._on_update, requested_replicas=target)
        self._run(cause, tp, self._on_phase, facts={"held": held})

    def reassign_all(self, cause: str, targets: Mapping[TopicPartition, Brokers]) -> None:
        """A plan. Where the controller remembers it (before 2.4), it remembers all of it before it
        starts any of it."""
        for tp, target in targets.items():
            self.run_first(cause, tp, self._on_submit, requested_replicas=target)
        for tp, target in targets.items():
            if not self.run_first(cause, tp, self._on_plan):
                self.reassign(cause, tp, target)

    def plan_removed(self) -> None:
        start_plan(self)

    def settle(self, cause: str, tp: TopicPartition) -> Partition:
        self._run(cause, tp, self._on_step)
        return self.controller.partition(tp)

    def after_election(self, cause: str, tp: TopicPartition) -> None:
        if self.run_first(cause, tp, self._on_election):
            self.settle(cause, tp)

    def change_partition(self, cause: str, change: PartitionChanged) -> None:
        # Here the partition epoch counts writes of the state znode: effects raise it.
        draft = replace(change.after, partition_epoch=change.before.partition_epoch)
        tp = (change.topic, draft.index)
        self._run(cause, tp, self._on_change, draft=draft)

    def _run(
        self,
        cause: str,
        tp: TopicPartition,
        table: Table,
        *,
        facts: dict[str, Any] | None = None,
        draft: Partition | None = None,
    ) -> None:
        """Apply the first row that matches. If that raised the leader epoch, the leader then acts
        too."""
        before = self.controller.partition(tp).leader_epoch
        self.run_first(cause, tp, table, facts=facts, draft=draft)
        if self.controller.partition(tp).leader_epoch > before:
            self.run_first(cause, tp, self._on_leader)

    def broker_started(self, cause: str, broker_id: int) -> None:
        """Resume the reassignments that have this broker in their target."""
        for name, partition in self.controller.partitions():
            if broker_id in (partition.target or ()):
                self.reassign(cause, (name, partition.index), partition.target or ())

    # ---- take-over ---------------------------------------------------------------------------

    def resume(self, cause: str) -> None:
        """Handle dead replicas first, then leaders, then the plan in
        ``/admin/reassign_partitions``, which wins over requests, then all other reassignments."""
        for name, partition in self.controller.partitions():
            self._run(cause, (name, partition.index), self._on_replica_start)
        for name, partition in self.controller.partitions():
            self._run(cause, (name, partition.index), self._on_partition_start)
        start_plan(self)
        planned = pending(self.controller)
        for name, partition in self.controller.partitions():
            tp = (name, partition.index)
            if partition.reassigning and tp not in planned:
                self.reassign(cause, tp, partition.target or ())

    def with_state(self, path: str, partition: Partition, state: PartitionState) -> Partition:
        """A leader of -1 on record counts, even if a replica has led since."""
        if state.leader == NO_LEADER:
            partition = replace(partition, leader=NO_LEADER)
        return super().with_state(path, partition, state)
