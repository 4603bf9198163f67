"""The reassignment controller of KIP-455's drafts: which table of a ``Draft`` applies when.

It answers requests from memory (``ClusterState.topics``). It writes znodes before it changes its
memory, and reads them only when it takes over.
"""

from __future__ import annotations

from collections.abc import Mapping

from kproto.znodes import MalformedZnodeError
from kproto.znodes.kafka_znodes import PartitionState, encode_partition_state
from kproto.znodes.plan_znodes import REASSIGN_PARTITIONS
from mockbroker.simulation.reassignment.kip_455.kip_455_rules import Draft
from mockbroker.simulation.reassignment.plan_znode import PLAN_WATCH, remove_from_plan, start_plan
from mockbroker.simulation.reassignment.reassignment_controller import Dependencies
from mockbroker.simulation.reassignment.reassignment_requests import (
    RequestedTargets,
    alter_each,
    find,
    list_each,
)
from mockbroker.simulation.reassignment.transitions import Brokers, targeted
from mockbroker.simulation.reassignment.znode_watches import COMMON_WATCHES
from mockbroker.simulation.reassignment.zookeeper_controller import ZooKeeperController
from mockbroker.simulation.state.cluster_parts import (
    Partition,
    PartitionsByTopic,
    TargetedPartition,
    TopicPartition,
)
from mockbroker.simulation.state.results import (
    AlterReassignmentsResult,
    ListReassignmentsResult,
    OngoingReassignment,
)
from mockbroker.simulation.state.turns import step
from mockbroker.simulation.topics.assignments import check_assignment

__all__ = ["Kip455Controller"]

_CAUSE = "alter_partition_reassignments"


class Kip455Controller(ZooKeeperController):
    watches = (*COMMON_WATCHES, PLAN_WATCH)
    deprecates_plans = True

    def __init__(self, draft: Draft, dependencies: Dependencies) -> None:
        super().__init__(dependencies)
        self._draft = draft

    @property
    def name(self) -> str:
        return self._draft.name

    # ---- requests ----------------------------------------------------------------------------

    @step(by_controller=True)
    def alter(
        self, topics: RequestedTargets, *, allow_replication_factor_change: bool = True
    ) -> AlterReassignmentsResult:
        """The drafts have no guard of the replication factor, so that argument is only echoed.
        Cancelling where there is no reassignment is not an error."""

        def alter_one(tp: TopicPartition, target: Brokers | None) -> None:
            find(self.controller, tp)
            if target is None:
                self.run_first(_CAUSE, tp, self._draft.on_cancel)
                self.settle(_CAUSE, tp)
            else:
                check_assignment(self.controller, target)
                self.reassign(_CAUSE, tp, target)

        return alter_each(
            topics, alter_one, allow_replication_factor_change=allow_replication_factor_change
        )

    def reassign(self, cause: str, tp: TopicPartition, target: Brokers) -> None:
        """Reassign a partition by a request or by ``/admin/reassign_partitions``. A request leaves
        that znode as it is."""
        self.run_first(cause, tp, self._draft.on_alter, requested_replicas=target)
        self.settle(cause, tp)

    def reassign_all(self, cause: str, targets: Mapping[TopicPartition, Brokers]) -> None:
        for tp, target in targets.items():
            self.reassign(cause, tp, target)

    def plan_removed(self) -> None:
        start_plan(self)

    def list_ongoing(self, topics: PartitionsByTopic | None) -> ListReassignmentsResult:
        """List the present replicas, and what the target still adds and removes."""
        with self.turns.reading(by_controller=True):
            return list_each(self.controller.state.topics, topics, _ongoing)

    # ---- what goes on around reassignments ---------------------------------------------------

    def state_text(self, partition: Partition, controller_epoch: int) -> str:
        """``targetReplicas`` is absent without a reassignment, and ``[]`` once the older draft's
        target has shrunk to nothing."""
        targeted = isinstance(partition, TargetedPartition)
        return encode_partition_state(
            PartitionState(
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                controller_epoch=controller_epoch,
                isr=partition.isr,
                target_replicas=partition.target if targeted else None,
            )
        ).decode()

    def settle(self, cause: str, tp: TopicPartition) -> Partition:
        self.run_until_none(cause, tp, self._draft.on_step)
        partition = find(self.controller, tp)
        if not partition.reassigning and REASSIGN_PARTITIONS in self.controller.state.znodes:
            remove_from_plan(self, cause, lambda each, _: each == tp)
        return partition

    # ---- take-over ---------------------------------------------------------------------------

    def resume(self, cause: str) -> None:
        """Resume the reassignments of the state znodes, except where ``/admin/reassign_partitions``
        says otherwise."""
        start_plan(self)
        for name, partition in self.controller.partitions():
            tp = (name, partition.index)
            if self.run_first(cause, tp, self._draft.on_take_over):
                self.settle(cause, tp)

    def with_state(self, path: str, partition: Partition, state: PartitionState) -> Partition:
        """Read the target. A target that is absent, null or empty means no reassignment."""
        target = tuple(state.target_replicas or ())
        if len(set(target)) != len(target):
            raise MalformedZnodeError(path, "targetReplicas names a broker twice")
        if not target:
            return partition
        return targeted(partition, target, target if self._draft.target_is_whole else None)


def _ongoing(partition: Partition) -> OngoingReassignment:
    target = partition.target or ()
    return OngoingReassignment(
        partition.index,
        partition.replicas,
        tuple(each for each in target if each not in partition.replicas),
        tuple(replica for replica in partition.replicas if replica not in target),
    )
