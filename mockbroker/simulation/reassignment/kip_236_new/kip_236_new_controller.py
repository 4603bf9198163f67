"""The reassignment controller of KIP-236's newer revision: which table applies when.

It watches three znodes that users create. ``/admin/reassign_partitions`` submits a plan,
``/admin/cancel_reassignment_in_progress`` rolls back what is pending of it, and
``/admin/reassign_partitions_queue`` adds to it. AlterPartitionReassignments (45) does the same for
single partitions. Entries that cannot be carried out are left out with a warning. A controller that
takes over reads the znodes in the order of ``watches``: an unfinished cancellation comes first.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.znodes import EventType, MalformedZnodeError, WatchedEvent, ZnodeError
from kproto.znodes.plan_znodes import (
    CANCEL_REASSIGNMENT_IN_PROGRESS,
    REASSIGN_PARTITIONS,
    REASSIGN_PARTITIONS_QUEUE,
    PlannedReplicas,
    decode_reassign_partitions,
)
from mockbroker.errors import Refusal
from mockbroker.simulation.reassignment.kip_236_new import kip_236_new_rules as rules
from mockbroker.simulation.reassignment.kip_236_new.plans import (
    Plan,
    pending,
    remove_from_queue,
    repeated,
    write_plan,
)
from mockbroker.simulation.reassignment.reassignment_requests import (
    RequestedTargets,
    alter_each,
    find,
    list_each,
)
from mockbroker.simulation.reassignment.transitions import Brokers, Table
from mockbroker.simulation.reassignment.znode_watches import COMMON_WATCHES, ZnodeWatch
from mockbroker.simulation.reassignment.zookeeper_controller import ZooKeeperController, warn
from mockbroker.simulation.state.actions import Change, TopicDeleted
from mockbroker.simulation.state.cluster_parts import Partition, PartitionsByTopic, TopicPartition
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.results import (
    AlterReassignmentsResult,
    ListReassignmentsResult,
    OngoingReassignment,
)
from mockbroker.simulation.state.turns import step
from mockbroker.simulation.topics.assignments import check_assignment

__all__ = ["Kip236NewController"]

_SEEN = "zookeeper"
_REQUESTED = "alter_partition_reassignments"


class Kip236NewController(ZooKeeperController):
    name = "kip-236-new"

    # ---- requests ----------------------------------------------------------------------------

    @step(by_controller=True)
    def alter(
        self, topics: RequestedTargets, *, allow_replication_factor_change: bool = True
    ) -> AlterReassignmentsResult:
        """Each partition is submitted or, with None, rolled back by itself. The draft has no guard
        of the replication factor, so that argument is only echoed."""

        def alter_one(tp: TopicPartition, target: Brokers | None) -> None:
            partition = find(self.controller, tp)
            try:
                if target is not None:
                    check_assignment(self.controller, target)
                    self._submit_one(tp, target)
                elif partition.reassigning:
                    self.run_first(_REQUESTED, tp, rules.ON_CANCEL)
                    _check_rolled_back(self.controller, tp)
                else:
                    raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
            except ZnodeError as error:
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None

        return alter_each(
            topics, alter_one, allow_replication_factor_change=allow_replication_factor_change
        )

    def _submit_one(self, tp: TopicPartition, replicas: Brokers) -> None:
        self.run_first(_REQUESTED, tp, rules.ON_CONFLICT, requested_replicas=replicas)
        now = find(self.controller, tp)
        if rules.has_target(now, replicas):
            return
        _check_rolled_back(self.controller, tp)
        facts = {"original": now.replicas}
        self.run_first(_REQUESTED, tp, rules.ON_SUBMIT, requested_replicas=replicas, facts=facts)
        self.run_first(_REQUESTED, tp, rules.ON_TRIGGER)

    def list_ongoing(self, topics: PartitionsByTopic | None) -> ListReassignmentsResult:
        """List AR, and what RAR adds and removes; what it adds is left out if OAR is unknown."""
        with self.turns.reading(by_controller=True):
            return list_each(self.controller.state.topics, topics, _ongoing)

    # ---- submission --------------------------------------------------------------------------

    def on_plan(self, event: WatchedEvent | None) -> None:
        """Submit a plan. Only the znode's creation counts: writing into it later has no effect."""
        known = self.controller.state.znode_stats.get(REASSIGN_PARTITIONS)
        text = self.controller.znodes.read(REASSIGN_PARTITIONS, watch=True)
        stat = self.controller.state.znode_stats.get(REASSIGN_PARTITIONS)
        if text is None or stat is None:
            return
        changed = event is not None and event.type is EventType.NODE_DATA_CHANGED
        if changed and known is not None and known.czxid == stat.czxid:
            return
        plan = self._read(REASSIGN_PARTITIONS, text)
        # The controller has added originals to every plan that it has seen before.
        if event is not None or stat.version == 0:
            plan = _with_originals(self.controller, plan)
        try:
            self._submit(plan, resuming=event is None)
        except ZnodeError as error:
            warn(
                self.controller,
                _SEEN,
                f"{REASSIGN_PARTITIONS}: {error}; the submission is left out",
            )
            write_plan(self.controller, _SEEN)

    def _submit(self, plan: Plan, *, resuming: bool) -> None:
        """Record and remember all partitions before the first begins. Those that have this target
        already continue, but begin again after a take-over."""
        begin = [
            tp
            for tp, planned in plan.items()
            if resuming or not rules.has_target(find(self.controller, tp), tuple(planned.replicas))
        ]
        for tp, planned in plan.items():
            self._run(tp, rules.ON_SUBMIT, planned, plan=plan)
        if not plan:
            write_plan(self.controller, _SEEN)
        for tp in begin:
            self.run_first(_SEEN, tp, rules.ON_TRIGGER)

    def _read(self, path: str, text: str) -> Plan:
        """The entries of a plan that can be carried out; the others are left out with a warning."""
        try:
            plan = decode_reassign_partitions(path, text)
        except MalformedZnodeError as error:
            warn(self.controller, _SEEN, f"{error}; removed")
            return {}
        for name, index in repeated(text):
            warn(
                self.controller,
                _SEEN,
                f"{path}: {name}-{index} is there twice; the last one counts",
            )
        return {
            tp: planned
            for tp, planned in plan.items()
            if _acceptable(self.controller, path, tp, planned)
        }

    # ---- cancellation ------------------------------------------------------------------------

    def on_cancel(self, event: WatchedEvent | None) -> None:
        """Roll back everything pending on record, then delete the znode, whatever the outcome."""
        if self.controller.znodes.read(CANCEL_REASSIGNMENT_IN_PROGRESS, watch=True) is None:
            return
        plan = self._reread()
        for tp in plan:
            self.run_first(_SEEN, tp, rules.ON_CANCEL)
        write_plan(self.controller, _SEEN)  # entries that could not be read stay as remembered
        self.controller.znodes.put(_SEEN, CANCEL_REASSIGNMENT_IN_PROGRESS, None)
        if event is not None:  # after a take-over, skipped partitions are resumed next
            for tp in plan:
                self.settle(_SEEN, tp)

    def _reread(self) -> Plan:
        """Adopt what the znode says is pending; an unreadable text changes nothing."""
        text = self.controller.znodes.read(REASSIGN_PARTITIONS)
        try:
            found = {} if text is None else decode_reassign_partitions(REASSIGN_PARTITIONS, text)
        except MalformedZnodeError as error:
            warn(self.controller, _SEEN, f"{error}; nothing is rolled back")
            return {}
        for tp in pending(self.controller):
            if tp not in found:
                self.run_first(_SEEN, tp, rules.ON_MISSING)
        plan = {
            tp: planned
            for tp, planned in found.items()
            if _acceptable(self.controller, REASSIGN_PARTITIONS, tp, planned)
        }
        for tp, planned in plan.items():
            self._run(tp, rules.ON_REREAD, planned)
        return plan

    # ---- queue -------------------------------------------------------------------------------

    def on_queue(self, _: WatchedEvent | None) -> None:
        """Move the queue into the plan, one partition after the other."""
        text = self.controller.znodes.read(REASSIGN_PARTITIONS_QUEUE, watch=True)
        if text is None:
            return
        plan = self._read(REASSIGN_PARTITIONS_QUEUE, text)
        for tp, planned in plan.items():
            try:
                self._dequeue(tp, planned)
            except ZnodeError as error:
                _left_out(self.controller, tp, str(error))
        # Entries that were left out must not block the queue.
        self.controller.znodes.put(_SEEN, REASSIGN_PARTITIONS_QUEUE, None)

    def _dequeue(self, tp: TopicPartition, planned: PlannedReplicas) -> None:
        replicas = tuple(planned.replicas)
        self.run_first(_SEEN, tp, rules.ON_CONFLICT, requested_replicas=replicas)
        now = find(self.controller, tp)
        under_way = rules.has_target(now, replicas)
        if now.reassigning and not under_way:
            _left_out(self.controller, tp, "what is pending was not rolled back")
            return
        original = planned.original_replicas
        if original is None:
            planned = PlannedReplicas(replicas, now.replicas)
        self._run(tp, rules.ON_DEQUEUE, planned)
        if not under_way:
            self.run_first(_SEEN, tp, rules.ON_TRIGGER)

    watches = (
        *COMMON_WATCHES,
        ZnodeWatch(CANCEL_REASSIGNMENT_IN_PROGRESS, False, on_cancel),
        ZnodeWatch(REASSIGN_PARTITIONS, False, on_plan),
        ZnodeWatch(REASSIGN_PARTITIONS_QUEUE, False, on_queue),
    )

    def _run(
        self, tp: TopicPartition, rows: Table, planned: PlannedReplicas, **facts: Plan
    ) -> None:
        original = planned.original_replicas
        known = {"original": None if original is None else tuple(original), **facts}
        replicas = tuple(planned.replicas)
        self.run_first(_SEEN, tp, rows, requested_replicas=replicas, facts=known)

    # ---- what goes on around reassignments ---------------------------------------------------

    def settle(self, cause: str, tp: TopicPartition) -> Partition:
        if self.controller.is_live(self.controller.state.controller_id):
            self.run_until_none(cause, tp, rules.ON_STEP)
        return find(self.controller, tp)

    def announce(self, cause: str, change: Change) -> None:
        """Remove the partitions of a deleted topic from the record."""
        super().announce(cause, change)
        if isinstance(change, TopicDeleted):
            write_plan(self.controller, cause)


# ---- one partition -------------------------------------------------------------------------------


def _acceptable(
    controller: Controller, path: str, tp: TopicPartition, planned: PlannedReplicas
) -> bool:
    try:
        find(controller, tp)
        check_assignment(controller, planned.replicas)
        if planned.original_replicas is not None:
            check_assignment(controller, planned.original_replicas)
    except Refusal as refusal:
        warn(controller, _SEEN, f"{path}: {tp[0]}-{tp[1]}: {refusal.message} It is left out.")
        return False
    return True


def _check_rolled_back(controller: Controller, tp: TopicPartition) -> None:
    """Raises Refusal if a rollback was skipped."""
    partition = find(controller, tp)
    if not partition.reassigning:
        return
    reason = "it would require an unclean leader election"
    if rules.original_of(partition) is None:
        reason = "its original replicas are unknown"
    raise Refusal(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"Unable to revert partition assignment for {tp[0]}:{tp[1]} because {reason}.",
    )


def _left_out(controller: Controller, tp: TopicPartition, reason: str) -> None:
    path = REASSIGN_PARTITIONS_QUEUE
    warn(controller, _SEEN, f"{path}: {tp[0]}-{tp[1]}: {reason}; it is left out")
    remove_from_queue(controller, _SEEN, tp)


def _with_originals(controller: Controller, plan: Plan) -> Plan:
    """Add the present replicas as originals, or those before the reassignment in progress, to
    entries that were submitted without."""
    return {
        tp: PlannedReplicas(
            planned.replicas, planned.original_replicas or _original_now(find(controller, tp))
        )
        for tp, planned in plan.items()
    }


def _original_now(partition: Partition) -> Brokers | None:
    return rules.original_of(partition) if partition.reassigning else partition.replicas


def _ongoing(partition: Partition) -> OngoingReassignment:
    target, original = partition.target or (), rules.original_of(partition)
    return OngoingReassignment(
        partition.index,
        partition.replicas,
        tuple(each for each in target if original is not None and each not in original),
        tuple(replica for replica in partition.replicas if replica not in target),
    )
