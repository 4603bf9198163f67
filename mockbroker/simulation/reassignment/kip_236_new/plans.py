"""Plans of KIP-236's newer revision: the pending partitions and the queue, in znodes and in memory.

For each partition being reassigned, ``/admin/reassign_partitions`` holds the target and, written by
the controller before it acts, the original replicas. In memory the partition holds the same two
lists (the page's ``ReassignedPartitionsContext``). This module reads and writes both and has the
effects that use them; ``kip_236_new_rules`` decides when.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from kproto.znodes import MalformedZnodeError
from kproto.znodes.plan_znodes import (
    REASSIGN_PARTITIONS,
    REASSIGN_PARTITIONS_QUEUE,
    PlannedReplicas,
    decode_reassign_partitions,
    encode_reassign_partitions,
)
from mockbroker.simulation.reassignment.transitions import Brokers, Transition
from mockbroker.simulation.state.cluster_parts import Partition, TopicPartition
from mockbroker.simulation.state.controller import Controller

__all__ = [
    "PendingPartition",
    "Plan",
    "add_to_plan",
    "drop_from_plan",
    "drop_from_queue",
    "pending",
    "remove_from_queue",
    "repeated",
    "set_pending",
    "write_plan",
]

Plan = dict[TopicPartition, PlannedReplicas]


class PendingPartition(Partition, frozen=True, gc=False):
    """A partition being reassigned in KIP-236's newer revision; ``replicas`` holds old and new ones
    once the controller has begun.

    ``new_replicas`` is the page's RAR. ``original_replicas`` is its OAR, to which a rollback
    returns, or None if unknown: the znode was tampered with, or written by an old tool.
    """

    new_replicas: Brokers = ()
    original_replicas: Brokers | None = None

    @property
    def reassigning(self) -> bool:
        return True

    @property
    def target(self) -> Brokers | None:
        return self.new_replicas


# ---- reading -------------------------------------------------------------------------------------


def repeated(text: str) -> list[TopicPartition]:
    """The partitions that a well-formed plan names more than once; their last entry counts."""
    entries: Any = msgspec.json.decode(text)["partitions"]
    named = Counter((entry["topic"], entry["partition"]) for entry in entries)
    return [tp for tp, times in named.items() if times > 1]


def pending(controller: Controller) -> Plan:
    """The plan that the controller remembers, by topic name and partition ascending."""
    return {
        (name, partition.index): _planned(partition)
        for name, partition in controller.partitions()
        if isinstance(partition, PendingPartition)
    }


def _planned(partition: PendingPartition) -> PlannedReplicas:
    return PlannedReplicas(partition.new_replicas, partition.original_replicas)


# ---- writing -------------------------------------------------------------------------------------


def write_plan(controller: Controller, cause: str, plan: Plan | None = None) -> None:
    """Write a plan, or the remembered one; an empty plan deletes the znode."""
    _put(controller, cause, REASSIGN_PARTITIONS, pending(controller) if plan is None else plan)


def remove_from_queue(controller: Controller, cause: str, tp: TopicPartition) -> None:
    """Remove a partition from the queue; an empty queue deletes the znode."""
    path = REASSIGN_PARTITIONS_QUEUE
    queued = decode_reassign_partitions(path, controller.state.znodes[path])
    _put(controller, cause, path, {each: queued[each] for each in queued if each != tp})


def _put(controller: Controller, cause: str, path: str, plan: Plan) -> None:
    if not plan:
        controller.znodes.put(cause, path, None)
        return
    text = encode_reassign_partitions(_in_known_order(controller.state.znodes.get(path), plan))
    controller.znodes.put(cause, path, text.decode())


def _in_known_order(text: str | None, plan: Mapping[TopicPartition, PlannedReplicas]) -> Plan:
    """The entries in the order of the text on record, so that its author recognises it, then the
    others."""
    try:
        known = {} if text is None else decode_reassign_partitions("", text)
    except MalformedZnodeError:
        known = {}
    return {tp: plan[tp] for tp in (*known, *plan) if tp in plan}


# ---- effects -------------------------------------------------------------------------------------


def set_pending(transition: Transition) -> None:
    """Make the partition pending, with the requested target and the fact ``original``."""
    transition.now = PendingPartition(
        **{name: getattr(transition.now, name) for name in Partition.__struct_fields__},
        new_replicas=transition.requested_replicas,
        original_replicas=transition.facts["original"],
    )


def add_to_plan(transition: Transition) -> None:
    """Write the draft into the plan, beside what is pending and what was submitted together with it
    (the fact ``plan``)."""
    assert isinstance(transition.now, PendingPartition), "after set_pending"
    # Partitions submitted together are recorded at once, but remembered one by one.
    submitted: Plan = transition.facts.get("plan", {})
    plan = pending(transition.controller) | {transition.tp: _planned(transition.now)} | submitted
    write_plan(transition.controller, transition.cause, plan)


def drop_from_plan(transition: Transition) -> None:
    """Remove the partition from the plan; an empty plan deletes the znode."""
    plan = pending(transition.controller)
    plan.pop(transition.tp, None)
    write_plan(transition.controller, transition.cause, plan)


def drop_from_queue(transition: Transition) -> None:
    """Remove the partition from the queue."""
    remove_from_queue(transition.controller, transition.cause, transition.tp)
