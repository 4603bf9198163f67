"""``/admin/reassign_partitions``, through which tools reassigned partitions before KIP-455.

A user creates the znode with a plan. The controller starts the reassignments in it, removes those
that have ended, and deletes the znode when none is left. It watches only for the creation: writing
into the znode later starts nothing, though the controller removes partitions from whatever the text
is by then. A text that is not a plan starts nothing and stays until the controller next removes a
partition, which deletes the znode. A list that names a broker twice starts without the repetition
and is never removed, since the partition never has those replicas.

This is how Kafka 2.4 and later work, and the drafts of KIP-455. Before 2.4 the controller rewrites
the znode from its memory (``write_remembered_plan``).

Stricter than Kafka on purpose: an empty list of replicas is refused. Kafka does not check for it:
2.4.1 removes all replicas of the partition, and 3.9.2 records that all are to be removed, then
fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from kproto.znodes import EventType, MalformedZnodeError, WatchedEvent
from kproto.znodes.plan_znodes import (
    REASSIGN_PARTITIONS,
    PlannedReplicas,
    decode_reassign_partitions,
    encode_reassign_partitions,
)
from mockbroker.simulation.reassignment.znode_watches import ZnodeWatch
from mockbroker.simulation.state.actions import Warned
from mockbroker.simulation.state.cluster_parts import TopicPartition, find_partition
from mockbroker.simulation.state.controller import Controller

__all__ = ["PLAN_WATCH", "Reassigns", "pending", "remove_from_plan", "rewrite_plan", "start_plan"]

_CAUSE: Final = "reassign_partitions"
_DEPRECATED: Final = (
    f"{REASSIGN_PARTITIONS} is deprecated and will be removed; AlterPartitionReassignments "
    "replaces it"
)


class PlanOwner(Protocol):
    @property
    def controller(self) -> Controller: ...

    def plan_removed(self) -> None:
        """Called when the znode was deleted: start a plan that was created since."""
        ...


class Reassigns(PlanOwner, Protocol):
    """A controller that starts plans. ``deprecates_plans``: it logs that the znode is
    deprecated."""

    @property
    def deprecates_plans(self) -> bool: ...

    def reassign_all(
        self, cause: str, targets: Mapping[TopicPartition, tuple[int, ...]]
    ) -> None: ...


def pending(controller: Controller) -> dict[TopicPartition, tuple[int, ...]]:
    """The partitions of the plan on record, as far as it can be read."""
    return _read(controller, controller.znodes.read(REASSIGN_PARTITIONS))


def _read(controller: Controller, text: str | None) -> dict[TopicPartition, tuple[int, ...]]:
    if text is None:
        return {}
    try:
        plan = decode_reassign_partitions(REASSIGN_PARTITIONS, text)
    except MalformedZnodeError as error:
        controller.record(_CAUSE, Warned(f"{error}; no reassignments in it"))
        return {}
    return {tp: tuple(planned.replicas) for tp, planned in plan.items()}


def start_plan(reassigner: Reassigns) -> None:
    """Start every reassignment of the plan. What cannot start is removed, with a warning."""
    controller = reassigner.controller
    plan = _read(controller, controller.znodes.read(REASSIGN_PARTITIONS, watch=True))
    if plan and reassigner.deprecates_plans:
        controller.record(_CAUSE, Warned(_DEPRECATED))
    refused = {}
    for tp, target in plan.items():
        if find_partition(controller.state.topics, tp) is None:
            refused[tp] = "the partition does not exist"
        elif not target:
            refused[tp] = "an empty replica list"
    accepted = {tp: target for tp, target in plan.items() if tp not in refused}
    targets = {tp: tuple(dict.fromkeys(target)) for tp, target in accepted.items()}
    reassigner.reassign_all(_CAUSE, targets)
    for (name, index), reason in refused.items():
        text = f"{REASSIGN_PARTITIONS}: {name}-{index} is not reassigned: {reason}"
        controller.record(_CAUSE, Warned(text))
    if refused:
        remove_from_plan(reassigner, _CAUSE, lambda tp, _: tp in refused)


def remove_from_plan(
    owner: PlanOwner, cause: str, leaves: Callable[[TopicPartition, tuple[int, ...]], bool]
) -> None:
    """Remove the partitions for which ``leaves`` holds. Removing the last deletes the znode."""
    controller = owner.controller
    text = controller.znodes.read(REASSIGN_PARTITIONS)
    if text is None:
        return
    planned = _read(controller, text)
    rewrite_plan(
        owner, cause, {tp: replicas for tp, replicas in planned.items() if not leaves(tp, replicas)}
    )


def rewrite_plan(
    owner: PlanOwner, cause: str, planned: Mapping[TopicPartition, tuple[int, ...]]
) -> None:
    """Write this plan; an empty one deletes the znode."""
    if planned:
        plan = {tp: PlannedReplicas(replicas) for tp, replicas in planned.items()}
        owner.controller.znodes.put(
            cause, REASSIGN_PARTITIONS, encode_reassign_partitions(plan).decode()
        )
        return
    owner.controller.znodes.put(cause, REASSIGN_PARTITIONS, None)
    owner.plan_removed()


def _created(reassigner: Reassigns, event: WatchedEvent | None) -> None:
    """React to the znode's creation. A change or a deletion uses the watch up without effect, as in
    Kafka; after a lost connection it is set again. A controller that takes over has read the znode
    in ``resume`` already."""
    if event is None:
        return
    if event.type is EventType.NODE_CREATED:
        start_plan(reassigner)
    elif not event.path:
        known = REASSIGN_PARTITIONS in reassigner.controller.state.znodes
        if (
            reassigner.controller.znodes.read(REASSIGN_PARTITIONS, watch=True) is not None
            and not known
        ):
            start_plan(reassigner)


PLAN_WATCH: Final = ZnodeWatch(REASSIGN_PARTITIONS, False, _created)
