"""A partition being reassigned in KIP-236's older revision, and the effects of that revision alone.

``drop_set`` is the page's, with two ambiguities settled. ``existing[0:top-1]`` includes its end:
otherwise ``top`` 1 would drop the leader, which the page rules out. And a replica that may be
dropped stays if the new target has it; ``literal`` drops it, as the page is worded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from kproto.znodes import MalformedZnodeError, NotEmptyError
from kproto.znodes.plan_znodes import (
    REASSIGN_PARTITIONS,
    PlannedReplicas,
    decode_reassign_partitions,
    encode_reassign_partitions,
)
from kproto.znodes.request_znodes import (
    RequestedReassignment,
    encode_reassignment,
    reassignment_path,
)
from mockbroker.simulation.reassignment.transitions import Brokers, Transition
from mockbroker.simulation.state.actions import Warned
from mockbroker.simulation.state.cluster_parts import Partition, TopicPartition
from mockbroker.simulation.state.controller import Controller

__all__ = [
    "RequestedPartition",
    "delete_request",
    "drop_set",
    "original_of",
    "plan_on_record",
    "remove",
    "remove_if_empty",
    "remove_record",
    "requested",
    "set_request",
    "store_plan",
    "store_request",
    "top_of",
]


class RequestedPartition(Partition, frozen=True, gc=False):
    """``replicas`` holds old and new ones at once; ``target_replicas`` are the new ones.

    ``top`` is the number of replicas before the reassignment. ``original_replicas`` are those
    replicas, or None if the controller does not know them: a new controller finds them only in
    ``/admin/reassign_partitions``.
    """

    target_replicas: Brokers = ()
    legacy: bool = False
    top: int = 0
    original_replicas: Brokers | None = None

    @property
    def reassigning(self) -> bool:
        return True

    @property
    def target(self) -> Brokers | None:
        return self.target_replicas

    @property
    def hosts(self) -> Brokers:
        return tuple(dict.fromkeys(self.replicas + self.target_replicas))


_COMMON = Partition.__struct_fields__


def requested(
    partition: Partition, target: Brokers, *, legacy: bool, top: int, original: Brokers | None
) -> RequestedPartition:
    common = {name: getattr(partition, name) for name in _COMMON}
    return RequestedPartition(
        **common, target_replicas=target, legacy=legacy, top=top, original_replicas=original
    )


def drop_set(
    assigned: Sequence[int],
    isr: Sequence[int],
    leader: int,
    top: int,
    new_target: Sequence[int],
    *,
    literal: bool = False,
) -> Brokers:
    """The replicas that a changed reassignment can drop, in replica order."""
    lagging = sorted(each for each in assigned if each not in isr)
    existing = dict.fromkeys(each for each in (leader, *isr, *lagging) if each in assigned)
    kept = list(existing)[:top]
    expected = () if literal else new_target
    return tuple(each for each in assigned if each not in kept and each not in expected)


def top_of(partition: Partition) -> int:
    """``top`` of the reassignment of this partition that begins or is in progress."""
    if isinstance(partition, RequestedPartition):
        return partition.top
    return len(partition.replicas)


def store_request(transition: Transition) -> None:
    """Write the reassignment's znode; a changed reassignment keeps its znode."""
    context = transition
    text = encode_reassignment(
        RequestedReassignment(
            context.requested_replicas, top_of(context.start), context.facts["legacy"]
        )
    ).decode()
    transition.controller.znodes.put(transition.cause, reassignment_path(*transition.tp), text)


def set_request(transition: Transition) -> None:
    """Put the partition under reassignment, with its original replicas as far as they are known."""
    context = transition
    known = original_of(context.start)
    transition.now = requested(
        transition.now,
        context.requested_replicas,
        legacy=context.facts["legacy"],
        top=top_of(context.start),
        original=context.facts.get("original") or known,
    )


def original_of(partition: Partition) -> Brokers | None:
    """The replicas before the reassignment in progress; None if unknown."""
    if isinstance(partition, RequestedPartition):
        return partition.original_replicas
    return partition.replicas


def delete_request(transition: Transition) -> None:
    """Delete the reassignment's znode, and remove the partition from the plan it came in."""
    partition = cast(RequestedPartition, transition.start)
    remove_record(transition.controller, transition.cause, transition.tp, legacy=partition.legacy)


def remove_record(controller: Controller, cause: str, tp: TopicPartition, *, legacy: bool) -> None:
    path = reassignment_path(*tp)
    remove(controller, cause, path)
    remove_if_empty(controller, path.rpartition("/")[0])
    if legacy:
        plan = plan_on_record(controller)
        if plan.pop(tp, None) is not None:
            store_plan(controller, cause, REASSIGN_PARTITIONS, plan)


def remove_if_empty(controller: Controller, path: str) -> None:
    """Delete a topic's parent znode with the last of its reassignments."""
    try:
        controller.znodes.remove_empty(path)
    except NotEmptyError:
        return


def remove(controller: Controller, cause: str, path: str) -> None:
    """Delete a znode; one that has children stays, with a warning."""
    try:
        controller.znodes.put(cause, path, None)
    except NotEmptyError as error:
        controller.record(cause, Warned(f"{error}; it stays"))


# ---- /admin/reassign_partitions ------------------------------------------------------------------


def plan_on_record(controller: Controller) -> dict[TopicPartition, PlannedReplicas]:
    """The plan on record; empty if there is none or it cannot be read."""
    text = controller.znodes.read(REASSIGN_PARTITIONS)
    if text is None:
        return {}
    try:
        return decode_reassign_partitions(REASSIGN_PARTITIONS, text)
    except MalformedZnodeError:
        return {}


def store_plan(
    controller: Controller, cause: str, path: str, plan: dict[TopicPartition, PlannedReplicas]
) -> None:
    """A plan with nothing in it deletes its znode."""
    if plan:
        controller.znodes.put(cause, path, encode_reassign_partitions(plan).decode())
    else:
        remove(controller, cause, path)
