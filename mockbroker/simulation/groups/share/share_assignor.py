"""The simple assignor of share groups, as a pure function.

Members share a partition if there are more members than partitions, and none is left idle. Members
come in the order of Java's hash tables, as in Kafka, so each gets as many partitions; which ones
may differ.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from mockbroker.simulation.groups.modern.partitions import Assignment, TopicIdPartition
from mockbroker.simulation.state.java_maps import hash_order

__all__ = ["ASSIGNOR", "simple"]

ASSIGNOR: Final = "simple"
"""Its name, the only one that Kafka ships."""


def simple(
    topics: Mapping[str, frozenset[uuid.UUID]],
    partitions: Sequence[TopicIdPartition],
    current: Mapping[str, Assignment],
) -> dict[str, Assignment]:
    """Return the targets of members. ``topics`` are those that each member subscribes to,
    ``partitions`` all that may be assigned, ``current`` is the former target. All partitions
    are balanced together if all members have one subscription, else those of each topic."""
    members = hash_order(topics)
    targets: dict[str, set[TopicIdPartition]] = {member: set() for member in members}
    if len(set(topics.values())) <= 1:
        subscribed = frozenset().union(*topics.values())
        dealt = [tp for tp in partitions if tp[0] in subscribed]
        _deal(members, dealt, current, targets)
    else:
        for topic in dict.fromkeys(tp[0] for tp in partitions):
            subscribers = [member for member in members if topic in topics[member]]
            _deal(subscribers, [tp for tp in partitions if tp[0] == topic], current, targets)
    return {member: frozenset(each) for member, each in targets.items()}


def _deal(
    members: Sequence[str],
    partitions: Sequence[TopicIdPartition],
    current: Mapping[str, Assignment],
    targets: dict[str, set[TopicIdPartition]],
) -> None:
    """Deal partitions to members, who keep what they have up to their quota."""
    if not members or not partitions:
        return
    sharing = -(-len(members) // len(partitions))
    places = {tp: number for number, tp in enumerate(partitions)}
    total = sharing * len(partitions)
    count = len(members)
    owners: dict[TopicIdPartition, list[str]] = {tp: [] for tp in partitions}
    room: dict[str, int] = {}
    for number, member in enumerate(members):
        quota = -(-total * (number + 1) // count) - -(-total * number // count)
        kept = sorted(
            (tp for tp in current.get(member, ()) if tp in places), key=places.__getitem__
        )
        for tp in kept:
            if quota and len(owners[tp]) < sharing:
                owners[tp].append(member)
                quota -= 1
        room[member] = quota
    for tp in partitions:
        for member in sorted(members, key=lambda each: -room[each]):
            if len(owners[tp]) >= sharing:
                break
            if room[member] and member not in owners[tp]:
                owners[tp].append(member)
                room[member] -= 1
    for tp, shared in owners.items():
        for member in shared:
            targets[member].add(tp)
