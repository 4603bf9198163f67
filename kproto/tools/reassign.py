"""``kafka-reassign-partitions``: generate, execute, verify, cancel and list reassignments.

Requests, their order and the output follow Kafka's ``ReassignPartitionsCommand`` (KIP-455, KIP-73,
KIP-860). Other modules read files and options. ``write`` takes text for standard output. A failure
raises ToolError, or an error of the admin client.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from kproto.client import (
    AlterConfigOp,
    ConfigOperation,
    ConfigResource,
    PartitionReassignment,
    TopicPartition,
    UnknownTopicOrPartitionError,
)
from kproto.tools import log_dirs
from kproto.tools.access import Access
from kproto.tools.assignment import assign_replicas
from kproto.tools.errors import ToolError
from kproto.tools.plan import Plan, write_proposal, write_rollback
from kproto.tools.texts import joined, plural, show_partition, show_partitions
from kproto.tools.throttles import (
    ALTER_LOG_DIRS_RATE,
    BROKER_THROTTLES,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    TOPIC_THROTTLES,
    follower_throttles,
    leader_throttles,
    moving_brokers,
    proposed_moves,
)

__all__ = [
    "cancel",
    "check_brokers",
    "execute",
    "generate",
    "list_reassignments",
    "partitions_failed",
    "replicas_of",
    "start_throttle",
    "verify",
]

Write = Callable[[str], None]
Replicas = Mapping[TopicPartition, Sequence[int]]

_EXISTING: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to "
    "override this and create a new partition assignment in addition to the existing one. The "
    "--additional flag can also be used to change the throttle by resubmitting the current "
    "reassignment."
)
_RUN_VERIFY: Final = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed."
)


# ---- --list ------------------------------------------------------------------------------------


async def list_reassignments(access: Access, write: Write) -> None:
    """List every reassignment in progress."""
    ongoing = await access.reassignments()
    if not ongoing:
        write("No partition reassignments found.\n")
        return
    write("Current partition reassignments:\n")
    for partition in sorted(ongoing):
        write(f"{_ongoing_line(partition, ongoing[partition])}\n")


def _ongoing_line(partition: TopicPartition, ongoing: PartitionReassignment) -> str:
    parts = [f"{show_partition(partition)}: replicas: {joined(ongoing.replicas)}."]
    if ongoing.adding_replicas:
        parts.append(f"adding: {joined(ongoing.adding_replicas)}.")
    if ongoing.removing_replicas:
        parts.append(f"removing: {joined(ongoing.removing_replicas)}.")
    return " ".join(parts)


# ---- --generate --------------------------------------------------------------------------------


async def generate(
    access: Access,
    write: Write,
    topics: Iterable[str],
    brokers: Iterable[int],
    *,
    rack_aware: bool = True,
) -> None:
    """Print the present assignment of ``topics`` and a proposed one over ``brokers``.

    Kafka's placement begins at random. Here the topic's name decides, so that the same input gives
    the same proposal.
    """
    described = await _replicas(access, topics)
    racks = await _racks(access, brokers, rack_aware=rack_aware)
    proposed: dict[TopicPartition, Sequence[int]] = {}
    for topic in sorted({partition.topic for partition in described}):
        mine = [partition for partition in sorted(described) if partition.topic == topic]
        factor = len(described[mine[0]])
        lists = assign_replicas(racks, len(mine), factor, random.Random(topic))
        proposed.update(zip(mine, lists, strict=True))
    write_proposal(write, described, proposed)


async def _racks(
    access: Access, brokers: Iterable[int], *, rack_aware: bool
) -> dict[int, str | None]:
    requested = set(brokers)
    nodes = [node for node in (await access.cluster()).nodes if node.id in requested]
    racks = {node.id: node.rack if rack_aware else None for node in nodes}
    rackless = sum(rack is None for rack in racks.values())
    if rack_aware and rackless not in (0, len(racks)):
        raise _failed(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to "
            "make replica assignment without rack information."
        )
    return racks


# ---- --execute ---------------------------------------------------------------------------------


async def execute(
    access: Access,
    write: Write,
    plan: Plan,
    *,
    additional: bool = False,
    throttle: int = -1,
    log_dir_throttle: int = -1,
    timeout_ms: int = 10000,
    allow_replication_factor_change: bool = True,
) -> None:
    """Execute the plan, throttled to a number of bytes per second unless negative.

    ``timeout_ms`` bounds the wait until replicas can be moved to their log directories.
    """
    proposed = plan.executable()
    ongoing = await access.reassignments()
    if ongoing and not additional:
        raise ToolError(_EXISTING, printed=_EXISTING)
    await check_brokers(access, {broker for replicas in proposed.values() for broker in replicas})
    current = await replicas_of(access, proposed)
    write_rollback(write, current)
    if throttle >= 0 or log_dir_throttle >= 0:
        write(f"{_RUN_VERIFY}\n")
    if throttle >= 0:
        await start_throttle(access, write, proposed, current, throttle, ongoing)
    if log_dir_throttle >= 0:
        await _throttle_log_dirs(access, write, plan, log_dir_throttle)
    errors = await access.alter_reassignments(
        proposed, allow_replication_factor_change=allow_replication_factor_change
    )
    if errors:
        raise partitions_failed("Error reassigning partition(s):", errors)
    write(
        f"Successfully started partition reassignment{plural(len(proposed))} for "
        f"{show_partitions(proposed)}\n"
    )
    await log_dirs.move(access, write, plan.log_dirs, timeout_ms)


async def check_brokers(access: Access, requested: set[int]) -> None:
    """Raise ToolError for a broker that the cluster does not have."""
    known = {node.id for node in (await access.cluster()).nodes}
    if unknown := sorted(requested - known):
        raise _failed(f"Unknown broker id {unknown[0]}")


async def start_throttle(
    access: Access,
    write: Write,
    proposed: Replicas,
    current: Replicas,
    rate: int,
    ongoing: Mapping[TopicPartition, PartitionReassignment] = MappingProxyType({}),
) -> None:
    """Limit ongoing and planned moves to ``rate`` bytes per second."""
    moves = proposed_moves(ongoing, proposed, current)
    leaders, followers = leader_throttles(moves), follower_throttles(moves)
    await access.alter_configs(
        {
            ConfigResource.topic(topic): [
                AlterConfigOp(LEADER_REPLICAS, leaders[topic]),
                AlterConfigOp(FOLLOWER_REPLICAS, followers[topic]),
            ]
            for topic in leaders
        }
    )
    await _set_on_brokers(access, moving_brokers(moves), (LEADER_RATE, FOLLOWER_RATE), rate)
    write(f"The inter-broker throttle limit was set to {rate} B/s\n")


async def _throttle_log_dirs(access: Access, write: Write, plan: Plan, rate: int) -> None:
    brokers = sorted({broker_id for _, _, broker_id in plan.log_dirs})
    await _set_on_brokers(access, brokers, (ALTER_LOG_DIRS_RATE,), rate)
    write(f"The replica-alter-dir throttle limit was set to {rate} B/s\n")


async def _set_on_brokers(
    access: Access, brokers: Iterable[int], names: Sequence[str], rate: int
) -> None:
    await access.alter_configs(
        {
            ConfigResource.broker(broker): [AlterConfigOp(name, str(rate)) for name in names]
            for broker in brokers
        }
    )


async def verify(
    access: Access, write: Write, plan: Plan, *, preserve_throttles: bool = False
) -> None:
    """Print the state of each partition of the plan. Once nothing moves any more, remove the
    throttles."""
    ongoing = await access.reassignments()
    targets = dict(plan.partitions)
    idle = {partition for partition in targets if partition not in ongoing}
    present = await _present_replicas(access, idle)
    write("Status of partition reassignment:\n")
    for partition in sorted(targets):
        write(f"{_status_line(partition, targets[partition], present.get(partition))}\n")
    directories = await log_dirs.states(access, plan.log_dirs)
    # An empty line if no directory was requested: Kafka prints the empty list of them.
    for line in directories.lines or [""]:
        write(f"{line}\n")
    if not ongoing and not directories.moving and not preserve_throttles:
        await _clear_throttles(access, write, plan)


def _status_line(
    partition: TopicPartition, target: Sequence[int], present: Sequence[int] | None
) -> str:
    name = show_partition(partition)
    if present is None:
        return f"Reassignment of partition {name} is still in progress."
    if list(present) == list(target):
        return f"Reassignment of partition {name} is completed."
    return (
        f"There is no active reassignment of partition {name}, but replica set is "
        f"{joined(present)} rather than {joined(target)}."
    )


async def _present_replicas(access: Access, partitions: set[TopicPartition]) -> Replicas:
    """Return the replicas of each partition; none for a topic or partition that does not exist."""
    present: dict[TopicPartition, Sequence[int]] = dict.fromkeys(partitions, ())
    described = await access.topics_or_errors({partition.topic for partition in partitions})
    for topic, description in described.items():
        if isinstance(description, UnknownTopicOrPartitionError):
            continue
        if isinstance(description, Exception):
            raise description
        for each in description.partitions:
            if (found := TopicPartition(topic, each.index)) in present:
                present[found] = each.replicas
    return present


async def _clear_throttles(access: Access, write: Write, plan: Plan) -> None:
    """Remove the throttles of all brokers, since it is not known which ones took part."""
    named = {broker for _, replicas in plan.partitions for broker in replicas}
    brokers = sorted(named | {node.id for node in (await access.cluster()).nodes})
    write(f"Clearing broker-level throttles on broker{plural(len(brokers))} {joined(brokers)}\n")
    await access.alter_configs(
        {ConfigResource.broker(broker): _deletions(BROKER_THROTTLES) for broker in brokers}
    )
    topics = sorted(plan.topics)
    write(f"Clearing topic-level throttles on topic{plural(len(topics))} {joined(topics)}\n")
    await access.alter_configs(
        {ConfigResource.topic(topic): _deletions(TOPIC_THROTTLES) for topic in topics}
    )


def _deletions(names: Iterable[str]) -> list[AlterConfigOp]:
    return [AlterConfigOp(name, None, ConfigOperation.DELETE) for name in names]


# ---- --cancel ----------------------------------------------------------------------------------


async def cancel(
    access: Access,
    write: Write,
    plan: Plan,
    *,
    preserve_throttles: bool = False,
    timeout_ms: int = 10000,
) -> None:
    """Cancel reassignments in progress of the plan's partitions.

    This includes one that only adds replicas, which Kafka's tool of 3.9 ignores.
    """
    in_plan = {partition for partition, _ in plan.partitions}
    # An empty plan names no partition, and a request without partitions would mean all.
    ongoing = await access.reassignments(in_plan) if in_plan else {}
    if ongoing:
        errors = await access.alter_reassignments(dict.fromkeys(ongoing, None))
        if errors:
            what = f"Error cancelling partition reassignment{plural(len(errors))} for:"
            raise partitions_failed(what, errors)
        write(
            f"Successfully cancelled partition reassignment{plural(len(ongoing))} for: "
            f"{show_partitions(ongoing)}\n"
        )
    else:
        write("None of the specified partition reassignments are active.\n")
    moving = (await log_dirs.states(access, plan.log_dirs)).moving_from
    if moving:
        await log_dirs.move(access, write, moving, timeout_ms)
    else:
        # No line end: Kafka's tool writes none, so the next text is on the same line.
        write("None of the specified partition moves are active.")
    if not preserve_throttles:
        await _clear_throttles(access, write, plan)


# ---- what several need -------------------------------------------------------------------------


async def _replicas(access: Access, topics: Iterable[str]) -> dict[TopicPartition, Sequence[int]]:
    found: dict[TopicPartition, Sequence[int]] = {}
    for topic, description in (await access.topics_or_errors(set(topics))).items():
        if isinstance(description, UnknownTopicOrPartitionError):
            raise UnknownTopicOrPartitionError(f"Topic {topic} not found.")
        if isinstance(description, Exception):
            raise description
        for each in description.partitions:
            found[TopicPartition(topic, each.index)] = each.replicas
    return found


async def replicas_of(access: Access, partitions: Iterable[TopicPartition]) -> Replicas:
    """Return the present replicas of each partition. Raises UnknownTopicOrPartitionError for one
    that does not exist."""
    requested = set(partitions)
    found = await _replicas(access, {partition.topic for partition in requested})
    if missing := requested - found.keys():
        raise UnknownTopicOrPartitionError(
            f"Unable to find partition: {show_partitions(missing, ', ')}"
        )
    return {partition: found[partition] for partition in requested}


def partitions_failed(what: str, errors: Mapping[TopicPartition, Exception]) -> ToolError:
    """Return an error with one line per partition under ``what``."""
    lines = [f"{show_partition(partition)}: {errors[partition]}" for partition in sorted(errors)]
    return ToolError(f"{what} {'; '.join(lines)}", printed=what, details=lines)


def _failed(message: str) -> ToolError:
    return ToolError(message, printed=f"Error: {message}")
