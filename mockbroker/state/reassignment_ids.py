"""Which reassignment of a partition is this one: the identity that KIP-240 gives each.

With KIP-236's older draft a reassignment is a znode, and its ``czxid`` is the identity. Other
controllers keep none; theirs is made from the action log, where each began at an offset of its
own. Nothing is remembered here: the log and ZooKeeper are asked anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from mockbroker.configs.effective import broker_entry, topic_entry
from mockbroker.state.actions import (
    Action,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from mockbroker.state.controller import ClusterState, Controller
from mockbroker.state.model import Partition, TargetedPartition, TopicPartition

__all__ = [
    "UNTHROTTLED",
    "KeepsReassignmentZnodes",
    "ReassignmentFacts",
    "ReassignmentIdentity",
    "identities",
    "throttle",
]

UNTHROTTLED = 2**63 - 1
"""Java's Long.MAX_VALUE, bytes a second."""


@dataclass(frozen=True, slots=True)
class ReassignmentIdentity:
    """``czxid`` names it as long as it lasts and no other ever; another ``mzxid`` than that says
    that it was changed. ``ctime_ms`` is when it began. ``target`` is where it goes."""

    czxid: int
    mzxid: int
    ctime_ms: int
    target: tuple[int, ...]


@runtime_checkable
class KeepsReassignmentZnodes(Protocol):
    """A machine with a znode a reassignment."""

    def identities(self, controller: Controller) -> Mapping[TopicPartition, ReassignmentIdentity]:
        """As ZooKeeper has them now."""
        ...


def identities(controller: Controller) -> Mapping[TopicPartition, ReassignmentIdentity]:
    """Every reassignment in progress, by topic and partition ascending."""
    if isinstance(controller.machine, KeepsReassignmentZnodes):
        return controller.machine.identities(controller)
    found = _from_log(controller.log)
    return {tp: found[tp] for tp in sorted(found)}


# ---- made up from the log ------------------------------------------------------------------------


def _from_log(log: Iterable[Action]) -> dict[TopicPartition, ReassignmentIdentity]:
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
    return found


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
    """What was asked for, where a draft of KIP-455 lets the target shrink."""
    whole = partition.whole_target if isinstance(partition, TargetedPartition) else None
    return whole or partition.target or ()


def _number(action: Action, partition: Partition) -> int:
    """Greater than any before it; one action may be about several partitions of one topic."""
    return (action.offset + 1) << 31 | partition.index


# ---- throttles (KIP-73) --------------------------------------------------------------------------


def throttle(state: ClusterState, side: str, tp: TopicPartition, broker_id: int) -> int:
    """Bytes a second that the replica on this broker may take in (``side`` "follower") or give out
    ("leader"). It is throttled where the topic lists it, at the rate that the broker has."""
    listed = topic_entry(state, tp[0], f"{side}.replication.throttled.replicas").value or ""
    replicas = {each.strip() for each in listed.split(",")}
    if not replicas & {"*", f"{tp[1]}:{broker_id}"}:
        return UNTHROTTLED
    rate = broker_entry(state, broker_id, f"{side}.replication.throttled.rate").value
    # ZooKeeper may hold what no broker would have taken.
    readable = rate is not None and rate.isascii() and rate.isdigit()
    return min(int(rate), UNTHROTTLED) if rate and readable else UNTHROTTLED


class ReassignmentFacts:
    """The part of ``Cluster`` that KIP-240's answers are made of."""

    _controller: Controller

    def reassignment_identities(self) -> Mapping[TopicPartition, ReassignmentIdentity]:
        """What is in progress, each with what tells it from any other, in order."""
        return identities(self._controller)

    def replication_throttle(self, side: str, tp: TopicPartition, broker_id: int) -> int:
        """As ``throttle``."""
        return throttle(self._controller.state, side, tp, broker_id)
