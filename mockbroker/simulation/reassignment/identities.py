"""The identity that KIP-240 gives each reassignment.

In KIP-236's older draft a reassignment is a znode, whose ``czxid`` is its identity. For other
controllers the identity is derived from the action log: it is the position of the action that
started the reassignment. Nothing is cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from mockbroker.simulation.state.actions import (
    Action,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from mockbroker.simulation.state.cluster_parts import Partition, TargetedPartition, TopicPartition

__all__ = ["ReassignmentIdentity", "identities_in_log"]


class ReassignmentIdentity(msgspec.Struct, frozen=True):
    """``czxid`` identifies a reassignment for as long as it lasts and is never reused. ``mzxid``
    differs from it once the target was changed. ``ctime_ms`` is the time of its start."""

    czxid: int
    mzxid: int
    ctime_ms: int
    target: tuple[int, ...]


def identities_in_log(log: Iterable[Action]) -> Mapping[TopicPartition, ReassignmentIdentity]:
    """Return the identities of all reassignments in progress, by topic and partition ascending."""
    found: dict[TopicPartition, ReassignmentIdentity] = {}
    for action in log:
        match action.change:
            case PartitionChanged(topic, _, after):
                _note(found, action, topic, after)
            case TopicCreated(topic):
                for each in topic.partitions:
                    _note(found, action, topic.name, each)
            case PartitionsAdded(name, partitions):
                for each in partitions:
                    _note(found, action, name, each)
            case TopicDeleted(name):
                for tp in [tp for tp in found if tp[0] == name]:
                    del found[tp]
    return {tp: found[tp] for tp in sorted(found)}


def _note(
    found: dict[TopicPartition, ReassignmentIdentity],
    action: Action,
    topic: str,
    partition: Partition,
) -> None:
    tp = (topic, partition.index)
    if not partition.reassigning:
        found.pop(tp, None)
        return
    number = _number(action, partition)
    known = found.get(tp)
    target = _target(partition)
    if known is None:
        found[tp] = ReassignmentIdentity(number, number, action.at_ms, target)
    elif known.target != target:
        found[tp] = replace(known, mzxid=number, target=target)


def _target(partition: Partition) -> tuple[int, ...]:
    """The requested target; in a draft of KIP-455 the current target may be smaller."""
    whole = partition.whole_target if isinstance(partition, TargetedPartition) else None
    return whole or partition.target or ()


def _number(action: Action, partition: Partition) -> int:
    """Numbers increase along the log; one action may concern several partitions of a topic."""
    return (action.offset + 1) << 31 | partition.index
