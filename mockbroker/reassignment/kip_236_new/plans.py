"""Plans in znodes, as KIP-236's newer draft has them: what is pending, and what waits in the queue.

``/admin/reassign_partitions`` says of each partition under reassignment where it goes and, written
by the controller before it acts, where it was. In memory the same two lists hang on the partition
(the page's ``ReassignedPartitionsContext``). Here are both, the way from one to the other, and the
effects that rows use for it. When any of this happens is for ``kip_236_new`` to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
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
from mockbroker.reassignment.transitions import Brokers, Transition
from mockbroker.state.controller import Controller
from mockbroker.state.controller_znodes import bytes_of
from mockbroker.state.model import Partition, TopicPartition

__all__ = [
    "PendingPartition",
    "Plan",
    "RemoveFromPlan",
    "RemoveFromQueue",
    "SetPending",
    "WritePlan",
    "pending",
    "read_plan",
    "remove_from_queue",
    "repeated",
    "write_plan",
]

Plan = dict[TopicPartition, PlannedReplicas]


@dataclass(frozen=True, slots=True)
class PendingPartition(Partition):
    """A partition under reassignment in KIP-236's newer draft; ``replicas`` holds old and new ones
    once the controller has begun.

    ``new_replicas`` (the page's RAR) is where it goes, ``original_replicas`` (OAR) where a rollback
    would take it; None where nobody knows: the znode was tampered with, or written by an old tool.
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


def read_plan(path: str, text: str) -> Plan:
    """In the order of the text. Raises MalformedZnodeError."""
    return decode_reassign_partitions(path, bytes_of(text))


def repeated(text: str) -> list[TopicPartition]:
    """What a plan, known to be well-formed, names more than once: the last one counts."""
    entries: Any = msgspec.json.decode(text)["partitions"]
    named = Counter((entry["topic"], entry["partition"]) for entry in entries)
    return [tp for tp, times in named.items() if times > 1]


def pending(controller: Controller) -> Plan:
    """What the controller remembers, by topic name and partition ascending."""
    return {
        (name, partition.index): _planned(partition)
        for name, partition in controller.partitions()
        if isinstance(partition, PendingPartition)
    }


def _planned(partition: PendingPartition) -> PlannedReplicas:
    return PlannedReplicas(partition.new_replicas, partition.original_replicas)


# ---- writing -------------------------------------------------------------------------------------


def write_plan(controller: Controller, cause: str, plan: Plan | None = None) -> None:
    """Make ``/admin/reassign_partitions`` say this, or what is remembered; nothing is no znode."""
    _put(controller, cause, REASSIGN_PARTITIONS, pending(controller) if plan is None else plan)


def remove_from_queue(controller: Controller, cause: str, tp: TopicPartition) -> None:
    """Take a partition out of the queue; an empty queue is no znode."""
    path = REASSIGN_PARTITIONS_QUEUE
    queued = read_plan(path, controller.state.znodes[path])
    _put(controller, cause, path, {each: queued[each] for each in queued if each != tp})


def _put(controller: Controller, cause: str, path: str, plan: Plan) -> None:
    if not plan:
        controller.znodes.put(cause, path, None)
        return
    text = encode_reassign_partitions(_in_known_order(controller.state.znodes.get(path), plan))
    controller.znodes.put(cause, path, text.decode())


def _in_known_order(text: str | None, plan: Mapping[TopicPartition, PlannedReplicas]) -> Plan:
    """As it was submitted, so that whoever submitted it knows it again; then the rest."""
    try:
        known = {} if text is None else read_plan("", text)
    except MalformedZnodeError:
        known = {}
    return {tp: plan[tp] for tp in (*known, *plan) if tp in plan}


# ---- effects -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetPending:
    """The partition is pending: it goes to what was asked for, and would go back to the fact
    ``original``."""

    def perform(self, transition: Transition) -> None:
        transition.now = PendingPartition(
            **{each.name: getattr(transition.now, each.name) for each in fields(Partition)},
            new_replicas=transition.context.requested_replicas,
            original_replicas=transition.context.facts["original"],
        )


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The draft goes on record, beside what is remembered, and what the fact ``plan`` says was
    submitted together with it."""

    def perform(self, transition: Transition) -> None:
        assert isinstance(transition.now, PendingPartition), "after SetPending"
        # Partitions submitted together are remembered one by one, and are on record all at once.
        submitted: Plan = transition.context.facts.get("plan", {})
        plan = (
            pending(transition.controller) | {transition.tp: _planned(transition.now)} | submitted
        )
        write_plan(transition.controller, transition.cause, plan)


@dataclass(frozen=True, slots=True)
class RemoveFromPlan:
    """The partition is taken off the record; with the last one goes the znode."""

    def perform(self, transition: Transition) -> None:
        plan = pending(transition.controller)
        plan.pop(transition.tp, None)
        write_plan(transition.controller, transition.cause, plan)


@dataclass(frozen=True, slots=True)
class RemoveFromQueue:
    """The partition has left the queue."""

    def perform(self, transition: Transition) -> None:
        remove_from_queue(transition.controller, transition.cause, transition.tp)
