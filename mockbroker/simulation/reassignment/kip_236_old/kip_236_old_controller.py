"""The reassignment controller of KIP-236's older revision: which table applies when.

A reassignment in progress is a znode below ``/admin/reassignments``. Kafka's protocol works too: a
request creates a request znode, and a null rolls back to the original replicas if this controller
knows them. ``kip_236_old.watches`` reacts to what users write into znodes.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from kproto.znodes import ConnectionLossError, MalformedZnodeError
from kproto.znodes.kafka_znodes import TopicAssignment
from kproto.znodes.request_znodes import (
    REASSIGN_CANCEL,
    REASSIGNMENT_REQUESTS,
    REASSIGNMENTS,
    ReassignmentRequest,
    decode_reassignment,
    reassignment_path,
)
from mockbroker.errors import Refusal
from mockbroker.simulation.reassignment.identities import ReassignmentIdentity
from mockbroker.simulation.reassignment.kip_236_old.kip_236_old_rules import (
    ON_CANCEL,
    ON_REQUEST,
    ON_RESUME,
    ON_STEP,
    REFUSALS,
)
from mockbroker.simulation.reassignment.kip_236_old.request_watches import (
    WATCHES,
    submit,
    take_requests,
)
from mockbroker.simulation.reassignment.kip_236_old.requested_partitions import (
    RequestedPartition,
    plan_on_record,
    remove,
    remove_if_empty,
    remove_record,
    requested,
)
from mockbroker.simulation.reassignment.reassignment_controller import Dependencies
from mockbroker.simulation.reassignment.reassignment_requests import (
    RequestedTargets,
    alter_each,
    find,
    list_each,
    with_refusal,
)
from mockbroker.simulation.reassignment.transitions import Brokers
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

__all__ = ["Kip236OldController"]

_CAUSE = "alter_partition_reassignments"


class Kip236OldController(ZooKeeperController):
    """``literal``: drop replicas as the page is worded, even those of the new target."""

    watches = WATCHES

    def __init__(self, name: str, dependencies: Dependencies, *, literal: bool = False) -> None:
        super().__init__(dependencies)
        self.name = name
        self._literal = literal

    # ---- requests of clients -----------------------------------------------------------------

    @step(by_controller=True)
    def alter(
        self, topics: RequestedTargets, *, allow_replication_factor_change: bool = True
    ) -> AlterReassignmentsResult:
        """Cancellations come first; then everything else becomes one request znode. A partition
        named twice goes to the last target requested for it. The guard of KIP-860 is only
        echoed."""
        accepted: dict[TopicPartition, Brokers] = {}

        def alter_one(tp: TopicPartition, target: Brokers | None) -> None:
            if target is not None:
                self.check(tp, target, legacy=False)
                accepted[tp] = target
            elif find(self.controller, tp).reassigning:
                self.roll_back(_CAUSE, tp)
            else:
                raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)

        result = alter_each(
            topics, alter_one, allow_replication_factor_change=allow_replication_factor_change
        )
        refusal = self._submit(accepted)
        return result if refusal is None else with_refusal(result, accepted, refusal)

    def _submit(self, accepted: dict[TopicPartition, Brokers]) -> Refusal | None:
        """Create the request znode. Returns the refusal if that failed."""
        if not accepted:
            return None
        try:
            submit(self.controller, _CAUSE, ReassignmentRequest(accepted))
        except ConnectionLossError as error:
            return Refusal(ErrorCode.INVALID_REQUEST, str(error))
        take_requests(self)
        return None

    def list_ongoing(self, topics: PartitionsByTopic | None) -> ListReassignmentsResult:
        with self.turns.reading(by_controller=True):
            return list_each(self.controller.state.topics, topics, _ongoing)

    def identities(self) -> dict[TopicPartition, ReassignmentIdentity]:
        """The identities for KIP-240: data and stat of each reassignment's znode, as they are
        now."""
        found: dict[TopicPartition, ReassignmentIdentity] = {}
        for name, partition in self.controller.partitions():
            path = reassignment_path(name, partition.index)
            text = self.controller.znodes.read(path) if partition.reassigning else None
            if text is None:
                continue
            stat = self.controller.state.znode_stats[path]
            try:
                target = tuple(decode_reassignment(path, text).replicas)
            except MalformedZnodeError:
                target = partition.target or ()
            found[name, partition.index] = ReassignmentIdentity(
                stat.czxid, stat.mzxid, stat.ctime, target
            )
        return found

    # ---- one partition -----------------------------------------------------------------------

    def check(self, tp: TopicPartition, replicas: Brokers, *, legacy: bool) -> None:
        """Raises Refusal if such a request would be ignored."""
        find(self.controller, tp)
        check_assignment(self.controller, replicas)
        facts = self._facts(tp, legacy=legacy)
        self.run_first(_CAUSE, tp, REFUSALS, requested_replicas=replicas, facts=facts)

    def request(
        self,
        cause: str,
        tp: TopicPartition,
        replicas: Brokers,
        *,
        legacy: bool,
        original: Brokers | None,
    ) -> None:
        """Carry out a request for one partition. Raises Refusal if it is ignored."""
        find(self.controller, tp)
        check_assignment(self.controller, replicas)
        facts = self._facts(tp, legacy=legacy) | {"original": original}
        self.run_first(cause, tp, ON_REQUEST, requested_replicas=replicas, facts=facts)
        self.settle(cause, tp)

    def settle(self, cause: str, tp: TopicPartition) -> Partition:
        partition = find(self.controller, tp)
        if partition.reassigning:
            facts = {"disabled": _disabled(self.controller)}
            self.run_first(cause, tp, ON_STEP, facts=facts)
        return find(self.controller, tp)

    def roll_back(self, cause: str, tp: TopicPartition) -> None:
        """Return to the original replicas; those in ``/admin/reassign_partitions`` win over
        remembered ones. Raises Refusal."""
        partition = find(self.controller, tp)
        assert isinstance(partition, RequestedPartition)
        planned = plan_on_record(self.controller).get(tp) if partition.legacy else None
        original = planned and planned.original_replicas
        replicas = tuple(original or partition.original_replicas or ())
        self.run_first(cause, tp, ON_CANCEL, requested_replicas=replicas)

    def roll_all_back(self, cause: str) -> None:
        for name, partition in self.controller.partitions():
            if partition.reassigning:
                try:
                    self.roll_back(cause, (name, partition.index))
                except Refusal as refusal:
                    warn(self.controller, cause, f"{REASSIGN_CANCEL}: {refusal.message}")

    def _facts(self, tp: TopicPartition, *, legacy: bool) -> dict[str, Any]:
        minimum = self.dependencies.configs.topic(tp[0], "min.insync.replicas").value
        return {
            "legacy": legacy,
            "disabled": _disabled(self.controller),
            "min_isr": int(minimum or 1),
            "literal": self._literal,
        }

    # ---- start, take-over, the end of a topic ------------------------------------------------

    def start(self) -> None:
        self.controller.znodes.touch(REASSIGNMENT_REQUESTS)
        self.controller.znodes.touch(REASSIGNMENTS)
        super().start()

    def recovered(
        self, cause: str, tp: TopicPartition, known: Partition, assignment: TopicAssignment
    ) -> Partition:
        """Under reassignment if it has a readable znode that says so."""
        found = super().recovered(cause, tp, known, assignment)
        found = replace(found, adding=(), removing=())
        path = reassignment_path(*tp)
        text = self.controller.znodes.read(path)
        if text is None:
            return found
        try:
            on_record = decode_reassignment(path, text)
            check_assignment(self.controller, on_record.replicas)
        except (MalformedZnodeError, Refusal) as error:
            reason = f"{path}: {error.message}" if isinstance(error, Refusal) else str(error)
            warn(self.controller, cause, f"{reason}; taken as no reassignment, and removed")
            remove_record(self.controller, cause, tp, legacy=False)
            return found
        return requested(
            found,
            tuple(on_record.replicas),
            legacy=on_record.legacy,
            top=on_record.top,
            original=None,
        )

    def resume(self, cause: str) -> None:
        """Begin everything in progress again. The original replicas are those of the plan in
        ``/admin/reassign_partitions``, or unknown."""
        self._sweep(cause)
        plan = plan_on_record(self.controller)
        for name, partition in self.controller.partitions():
            if not isinstance(partition, RequestedPartition):
                continue
            tp = (name, partition.index)
            planned = plan.get(tp) if partition.legacy else None
            original = planned and planned.original_replicas
            facts = self._facts(tp, legacy=partition.legacy) | {
                "original": tuple(original) if original else None,
                "literal": False,
            }
            replicas = partition.target_replicas
            self.run_first(cause, tp, ON_RESUME, requested_replicas=replicas, facts=facts)
            self.settle(cause, tp)

    def _sweep(self, cause: str) -> None:
        """Delete znodes of reassignments whose partition does not exist."""
        for name in self.controller.znodes.children(REASSIGNMENTS):
            topic = self.controller.state.topics.get(name)
            folder = f"{REASSIGNMENTS}/{name}"
            for child in self.controller.znodes.children(folder):
                index = int(child) if child.isascii() and child.isdigit() else -1
                if topic is None or topic.partition(index) is None:
                    path = f"{folder}/{child}"
                    self.controller.znodes.read(path)
                    warn(self.controller, cause, f"{path}: no such partition; removed")
                    remove(self.controller, cause, path)
            remove_if_empty(self.controller, folder)

    def store(self, cause: str, change: Change) -> None:
        """A topic's deletion deletes its reassignments."""
        if isinstance(change, TopicDeleted):
            for each in self.controller.state.topics[change.name].partitions:
                if isinstance(each, RequestedPartition):
                    remove_record(
                        self.controller, cause, (change.name, each.index), legacy=each.legacy
                    )
        super().store(cause, change)


def _disabled(controller: Controller) -> bool:
    """Read each time, as the page's code does."""
    return controller.znodes.read(REASSIGN_CANCEL) is not None


def _ongoing(partition: Partition) -> OngoingReassignment:
    """The lists of a partition; if the original replicas are unknown, the ISR stands in for
    them."""
    assert isinstance(partition, RequestedPartition), "nothing else is being reassigned here"
    target, original = partition.target_replicas, partition.original_replicas
    there = partition.isr if original is None else original
    return OngoingReassignment(
        partition.index,
        partition.replicas,
        tuple(each for each in target if each not in there),
        tuple(replica for replica in partition.replicas if replica not in target),
    )
