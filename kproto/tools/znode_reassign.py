"""``kafka-reassign-partitions --zookeeper``: the tool before KIP-455, with KIP-236's additions.

A plan is submitted as the text of a znode, from which the controller removes finished partitions.
``path`` is ``/admin/reassign_partitions``, or the znode of one draft of KIP-236 for plans submitted
while others are in progress. Throttles are configs, which are written to znodes as well.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from kproto.client import TopicPartition, UnknownTopicOrPartitionError
from kproto.tools.assignment import assign_replicas
from kproto.tools.errors import ToolError
from kproto.tools.plan import Plan, write_proposal, write_rollback
from kproto.tools.texts import joined, show_partition
from kproto.tools.throttles import (
    BROKER_THROTTLES,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    TOPIC_THROTTLES,
)
from kproto.tools.znode_access import BROKER, TOPIC, ZnodeAccess
from kproto.znodes.plan_znodes import (
    CANCEL_REASSIGNMENT_IN_PROGRESS,
    REASSIGN_PARTITIONS,
    PlannedReplicas,
)
from kproto.znodes.request_znodes import REASSIGN_CANCEL

__all__ = [
    "FAILED",
    "cancel_newer",
    "cancel_older",
    "execute",
    "generate",
    "remove_cancel",
    "verify",
]

FAILED: Final = "Partitions reassignment failed due to "
"""Printed by the tool before any error."""

Write = Callable[[str], None]
Replicas = Mapping[TopicPartition, Sequence[int]]

CANCEL_SECONDS: Final = 60.0
"""The time that a controller may take to roll back pending reassignments."""

_RUN_VERIFY: Final = (
    "Warning: You must run Verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed. You can also alter the throttle by rerunning the Execute command passing "
    "a new value."
)


# ---- --generate, --execute -----------------------------------------------------------------------


def generate(
    access: ZnodeAccess,
    write: Write,
    topics: Iterable[str],
    brokers: Iterable[int],
    *,
    rack_aware: bool = True,
) -> None:
    """Print the present assignment of ``topics`` and a proposed one over ``brokers``."""
    requested = set(brokers)
    racks = {
        broker: rack if rack_aware else None
        for broker, rack in access.brokers().items()
        if broker in requested
    }
    listed = list(topics)
    current = access.replicas(listed)
    if missing := sorted(set(listed) - {each.topic for each in current}):
        raise UnknownTopicOrPartitionError(f"Topic {missing[0]} not found.")
    proposed: dict[TopicPartition, Sequence[int]] = {}
    for topic in sorted({each.topic for each in current}):
        mine = [each for each in sorted(current) if each.topic == topic]
        lists = assign_replicas(racks, len(mine), len(current[mine[0]]), random.Random(topic))
        proposed.update(zip(mine, lists, strict=True))
    write_proposal(write, current, proposed)


def execute(
    access: ZnodeAccess,
    write: Write,
    plan: Plan,
    *,
    path: str = REASSIGN_PARTITIONS,
    throttle: int = -1,
) -> None:
    """Submit the plan, throttled to a number of bytes per second unless negative."""
    requested = plan.executable(empty="Partition reassignment data file is empty")
    if access.is_there(REASSIGN_CANCEL):
        # The older draft of KIP-236: no reassignment starts until this znode is deleted.
        raise _failed(f"Reassignments are disabled while {REASSIGN_CANCEL} is there")
    current = _checked(access, requested)
    if access.is_there(path):
        _busy(access, write, path, requested, current, throttle)
        return
    write_rollback(write, current)
    if throttle >= 0:
        write(f"{_RUN_VERIFY}\n")
        _throttle(access, requested, current)
        _limit(access, requested, current, throttle)
        write(f"The inter-broker throttle limit was set to {throttle} B/s\n")
    if not access.submit_plan(path, requested):
        raise _failed(f"Failed to reassign partitions: {path} came up meanwhile")
    write("Successfully started reassignment of partitions.\n")


def _busy(
    access: ZnodeAccess,
    write: Write,
    path: str,
    requested: Replicas,
    current: Replicas,
    throttle: int,
) -> None:
    """Handle a pending plan: only the brokers' rates can be changed, and a queued plan waits."""
    if path != REASSIGN_PARTITIONS:
        raise _failed(f"{path} is there already: what is queued has to be taken up first")
    write("There is an existing assignment running.\n")
    if throttle >= 0:
        _limit(access, requested, current, throttle)


def _checked(access: ZnodeAccess, requested: Replicas) -> dict[TopicPartition, Sequence[int]]:
    """Return the present replicas of every partition of the plan's topics. Raises ToolError if the
    plan names anything that does not exist."""
    found = access.replicas({each.topic for each in requested})
    if missing := sorted(each for each in requested if each not in found):
        listed = ", ".join(map(show_partition, missing))
        raise _failed(f"The proposed assignment contains non-existent partitions: {listed}")
    known = access.brokers()
    unknown = sorted({b for replicas in requested.values() for b in replicas} - known.keys())
    if unknown:
        raise _failed(f"The proposed assignment contains non-existent brokerIDs: {joined(unknown)}")
    return found


def _throttle(access: ZnodeAccess, requested: Replicas, current: Replicas) -> None:
    """Set the throttled replicas. For partitions that get replicas these are all previous replicas,
    since any of them may lead, and the new ones."""
    for topic in sorted({each.topic for each in requested}):
        mine = sorted(each for each in requested if each.topic == topic)
        coming = {each: [b for b in requested[each] if b not in current[each]] for each in mine}
        replicas = {
            LEADER_REPLICAS: _listed({each: current[each] for each in mine if coming[each]}),
            FOLLOWER_REPLICAS: _listed(coming),
        }
        access.change_configs(TOPIC, topic, partial(_with, replicas))


def _listed(replicas: Replicas) -> str:
    return ",".join(f"{each.partition}:{b}" for each in replicas for b in replicas[each])


def _limit(access: ZnodeAccess, requested: Replicas, current: Replicas, rate: int) -> None:
    """Set the rate of brokers of the plan, and of the other partitions of its topics."""
    rates = {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}
    for broker in sorted(
        {b for each in (requested, current) for row in each.values() for b in row}
    ):
        access.change_configs(BROKER, str(broker), partial(_with, rates))


# ---- --verify ------------------------------------------------------------------------------------


def verify(
    access: ZnodeAccess,
    write: Write,
    plan: Plan,
    *,
    path: str = REASSIGN_PARTITIONS,
    cancellable: bool = False,
) -> None:
    """Print the state of each partition of the plan. Once all are done, remove the throttle.

    ``cancellable`` is for KIP-236's newer draft, whose ``--cancel`` leaves the throttles of
    finished partitions to this command. A partition that is neither pending nor at its target was
    cancelled, and does not keep the throttle of the plan's other partitions.
    """
    pending = {**(access.plan(REASSIGN_PARTITIONS) or {}), **(access.plan(path) or {})}
    targets = dict(plan.partitions)
    present = access.replicas(plan.topics)
    write("Status of partition reassignment: \n")
    left = 0
    for partition in sorted(targets):
        name = show_partition(partition)
        if partition in pending:
            write(f"Reassignment of partition {name} is still in progress\n")
            left += 1
        elif list(present.get(partition, ())) == list(targets[partition]):
            write(f"Reassignment of partition {name} completed successfully\n")
        elif cancellable and partition in present:
            write(f"Reassignment of partition {name} was cancelled or failed\n")
        else:
            write(f"Reassignment of partition {name} failed\n")
            left += 1
    # Of all brokers, since it is not known which took part.
    if not left and _remove_throttles(access, plan.topics, access.brokers()):
        write("Throttle was removed.\n")


def _remove_throttles(access: ZnodeAccess, topics: Iterable[str], brokers: Iterable[int]) -> bool:
    """Remove the throttles. Returns whether there were any."""
    changed = [
        access.change_configs(TOPIC, topic, partial(_without, TOPIC_THROTTLES))
        for topic in sorted(set(topics))
    ]
    changed += [
        access.change_configs(BROKER, str(each), partial(_without, BROKER_THROTTLES))
        for each in sorted(set(brokers))
    ]
    return any(changed)


def _with(more: Mapping[str, str], known: dict[str, str]) -> dict[str, str]:
    return {**known, **more}


def _without(names: Sequence[str], known: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in known.items() if name not in names}


# ---- --cancel ------------------------------------------------------------------------------------


def cancel_newer(access: ZnodeAccess, write: Write, *, seconds: float = CANCEL_SECONDS) -> None:
    """KIP-236, newer draft: roll back pending reassignments, wait for that, and remove their
    throttle."""
    pending = _submit_cancellation(access, write, CANCEL_REASSIGNMENT_IN_PROGRESS)
    access.wait_until_gone(CANCEL_REASSIGNMENT_IN_PROGRESS, seconds)
    still = access.plan(REASSIGN_PARTITIONS) or {}
    cancelled = {each: planned for each, planned in pending.items() if each not in still}
    _remove_throttles_of(access, cancelled)
    write("The cancelled pending reassignments throttle was removed.\n")
    write(
        "Please run --verify to have the previous reassignments (not just the cancelled "
        "reassignments in progress) throttle removed.\n"
    )


def cancel_older(access: ZnodeAccess, write: Write) -> None:
    """KIP-236, older draft: create the znode that cancels. It stays and disables reassignments
    until ``remove_cancel``."""
    _submit_cancellation(access, write, REASSIGN_CANCEL)


def remove_cancel(access: ZnodeAccess, write: Write) -> None:
    if not access.delete(REASSIGN_CANCEL):
        raise _failed(f"There is no {REASSIGN_CANCEL} to remove")
    write(f"Successfully remove the znode {REASSIGN_CANCEL}\n")


def _submit_cancellation(
    access: ZnodeAccess, write: Write, path: str
) -> dict[TopicPartition, PlannedReplicas]:
    pending = access.plan(REASSIGN_PARTITIONS) or {}
    write(f"Rolling back the current pending reassignments {_as_scala_map(pending)}\n")
    if not access.create(path):
        raise _failed(f"{path} is there already: a cancellation is under way")
    write("Successfully submitted cancellation of reassignments.\n")
    return pending


def _as_scala_map(pending: Mapping[TopicPartition, PlannedReplicas]) -> str:
    """Return Scala's notation of maps and buffers, as the KIP prints it."""
    return f"Map({', '.join(_entry(each, pending[each]) for each in pending)})"


def _entry(partition: TopicPartition, planned: PlannedReplicas) -> str:
    parts = [f"replicas -> {_buffer(planned.replicas)}"]
    if planned.original_replicas is not None:
        parts.append(f"original_replicas -> {_buffer(planned.original_replicas)}")
    return f"{show_partition(partition)} -> Map({', '.join(parts)})"


def _buffer(brokers: Sequence[int]) -> str:
    return f"Buffer({', '.join(map(str, brokers))})"


def _remove_throttles_of(
    access: ZnodeAccess, cancelled: Mapping[TopicPartition, PlannedReplicas]
) -> None:
    """Remove the throttles of these partitions only, and of brokers without other throttles."""
    for topic in sorted({each.topic for each in cancelled}):
        gone = {each.partition for each in cancelled if each.topic == topic}
        access.change_configs(TOPIC, topic, partial(_without_partitions, gone))
    brokers = {
        broker
        for planned in cancelled.values()
        for broker in (*planned.replicas, *(planned.original_replicas or ()))
    }
    still = access.plan(REASSIGN_PARTITIONS) or {}
    brokers -= {
        broker
        for planned in still.values()
        for broker in (*planned.replicas, *(planned.original_replicas or ()))
    }
    _remove_throttles(access, (), brokers)


def _without_partitions(gone: set[int], known: dict[str, str]) -> dict[str, str]:
    """Return the throttled replicas ("partition:broker,...") without those of some partitions."""
    left = dict(known)
    for name in TOPIC_THROTTLES:
        entries = [each for each in left.pop(name, "").split(",") if each]
        kept = [each for each in entries if each.split(":")[0] not in map(str, gone)]
        if kept:
            left[name] = ",".join(kept)
    return left


def _failed(message: str) -> ToolError:
    return ToolError(message, printed=FAILED + message)
