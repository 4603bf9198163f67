"""A ZooKeeper controller that runs a ``Draft``: which rows are asked when, and what goes to znodes.

Requests are checked and partitions found here; what happens to a partition is the tables'. The
controller answers from what it remembers (``ClusterState.topics``). Znodes are written before it
remembers, and read by a controller that takes over, and at no other time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kproto.error_codes import ErrorCode
from kproto.znodes import MalformedZnodeError
from mockbroker.actions import (
    Change,
    LeaderAndIsrSent,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
    UpdateMetadataSent,
    Warned,
)
from mockbroker.assignments import check_assignment
from mockbroker.controller import Controller
from mockbroker.errors import Refusal
from mockbroker.machines import znode_texts
from mockbroker.machines.engine import run_first, run_until_none, targeted, untargeted, write_znode
from mockbroker.machines.kip_455 import Draft
from mockbroker.model import Partition, TopicPartition
from mockbroker.results import (
    AlterReassignmentsResult,
    ListReassignmentsResult,
    OngoingReassignment,
    OngoingTopic,
    PartitionResult,
    TopicResult,
)

__all__ = ["DraftMachine"]

_log = logging.getLogger("mockbroker")
_CAUSE = "alter_partition_reassignments"


class DraftMachine:
    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    @property
    def name(self) -> str:
        return self._draft.name

    # ---- requests ----------------------------------------------------------------------------

    def alter(
        self,
        controller: Controller,
        topics: Sequence[tuple[str, Sequence[tuple[int, Sequence[int] | None]]]],
        *,
        allow_replication_factor_change: bool,
    ) -> AlterReassignmentsResult:
        """The drafts know no guard of the replication factor: that argument is only echoed.
        Cancelling what is not reassigned is no error."""
        results = tuple(
            TopicResult(
                name,
                tuple(self._alter_one(controller, (name, i), asked) for i, asked in partitions),
            )
            for name, partitions in topics
        )
        return AlterReassignmentsResult(0, None, allow_replication_factor_change, results)

    def _alter_one(
        self, controller: Controller, tp: TopicPartition, asked: Sequence[int] | None
    ) -> PartitionResult:
        try:
            _find(controller, tp)
            if asked is not None:
                check_assignment(controller, asked)
        except Refusal as refusal:
            return PartitionResult(tp[1], refusal.code, refusal.message)
        if asked is None:
            run_first(controller, _CAUSE, tp, self._draft.on_cancel)
        else:
            run_first(controller, _CAUSE, tp, self._draft.on_alter, asked=tuple(asked))
        self.settle(controller, _CAUSE, tp)
        return PartitionResult(tp[1])

    def list_ongoing(
        self, controller: Controller, topics: Sequence[tuple[str, Sequence[int]]] | None
    ) -> ListReassignmentsResult:
        """Replicas as they are now; adding and removing are what T still makes of them."""
        known = controller.state.topics
        wanted = (
            [(name, range(len(known[name].partitions))) for name in sorted(known)]
            if topics is None
            else [(name, indexes) for name, indexes in topics if name in known]
        )
        rows = []
        for name, indexes in wanted:
            found = (known[name].partition(index) for index in indexes)
            ongoing = tuple(_ongoing(each) for each in found if each and each.reassigning)
            if ongoing:
                rows.append(OngoingTopic(name, ongoing))
        return ListReassignmentsResult(0, None, tuple(rows))

    # ---- what goes on around reassignments ---------------------------------------------------

    def store(self, controller: Controller, cause: str, change: Change) -> None:
        """Topics come with their znodes, and go with them."""
        match change:
            case TopicCreated(topic):
                self._store_topic(controller, cause, topic.name, topic.partitions, topic.partitions)
            case PartitionsAdded(name, added):
                before = controller.state.topics[name].partitions
                self._store_topic(controller, cause, name, before + added, added)
            case TopicDeleted(name):
                for partition in controller.state.topics[name].partitions:
                    path = znode_texts.partition_state_path(name, partition.index)
                    write_znode(controller, cause, path, None)
                write_znode(controller, cause, znode_texts.topic_path(name), None)

    def _store_topic(
        self,
        controller: Controller,
        cause: str,
        name: str,
        partitions: Sequence[Partition],
        new: Sequence[Partition],
    ) -> None:
        text = znode_texts.topic_text(partitions)
        write_znode(controller, cause, znode_texts.topic_path(name), text)
        for partition in new:
            self._store_state(controller, cause, name, partition)

    def _store_state(
        self, controller: Controller, cause: str, name: str, partition: Partition
    ) -> None:
        text = znode_texts.state_text(partition, controller.state.controller_epoch)
        write_znode(
            controller, cause, znode_texts.partition_state_path(name, partition.index), text
        )

    def change_partition(
        self, controller: Controller, cause: str, change: PartitionChanged
    ) -> None:
        """A leader writes its ISR itself; a new leader is announced by the controller."""
        name, after = change.topic, change.after
        self._store_state(controller, cause, name, after)
        controller.record(cause, change)
        if after.leader != change.before.leader:
            to = tuple(each for each in after.hosts if controller.is_live(each))
            if to:
                request = LeaderAndIsrSent(
                    to, name, after.index, after.leader, after.leader_epoch, after.isr,
                    after.partition_epoch, after.replicas, after.target,
                )  # fmt: skip
                controller.record(cause, request)
        live = controller.live_ids()
        if live:
            update = UpdateMetadataSent(
                live, name, after.index, after.leader, after.leader_epoch, after.isr, after.replicas
            )
            controller.record(cause, update)

    def settle(self, controller: Controller, cause: str, tp: TopicPartition) -> Partition:
        run_until_none(controller, cause, tp, self._draft.on_step)
        return _find(controller, tp)

    # ---- take-over ---------------------------------------------------------------------------

    def take_over(self, controller: Controller, cause: str) -> None:
        """What the last controller remembered is gone; what the state znodes say holds."""
        for name, partition in controller.partitions():
            tp = (name, partition.index)
            found = self._reloaded(controller, cause, tp, partition)
            if found != partition:
                controller.record(cause, PartitionChanged(name, partition, found))
            if found.reassigning:
                run_first(controller, cause, tp, self._draft.on_take_over)
                self.settle(controller, cause, tp)

    def _reloaded(
        self, controller: Controller, cause: str, tp: TopicPartition, partition: Partition
    ) -> Partition:
        path = znode_texts.partition_state_path(*tp)
        try:
            target = znode_texts.read_target(path, controller.state.znodes.get(path))
        except MalformedZnodeError as error:
            text = f"{error}; taken as no reassignment"
            _log.warning("%s", text)
            controller.record(cause, Warned(text))
            target = None
        if target is None:
            return untargeted(partition)
        return targeted(partition, target, target if self._draft.target_is_whole else None)


def _find(controller: Controller, tp: TopicPartition) -> Partition:
    name, index = tp
    topic = controller.state.topics.get(name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partition(index)
    if partition is None:
        raise Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}."
        )
    return partition


def _ongoing(partition: Partition) -> OngoingReassignment:
    target = partition.target or ()
    return OngoingReassignment(
        partition.index,
        partition.replicas,
        tuple(each for each in target if each not in partition.replicas),
        tuple(each for each in partition.replicas if each not in target),
    )
