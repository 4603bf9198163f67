"""Effects that the tables of several reassignment controllers share.

An effect is a value with a ``perform`` method. Tables decide which effects follow which condition,
and in what order. R is a partition's replicas, T the target of its reassignment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from kproto.znodes.kafka_znodes import topic_path
from mockbroker.reassignment.transitions import Brokers, Choice, Condition, RuleContext, Transition
from mockbroker.state.actions import (
    LeaderAndIsrSent,
    PartitionChanged,
    StopReplicaSent,
    UpdateMetadataSent,
    Warned,
)
from mockbroker.state.model import NO_LEADER, Partition, TargetedPartition

__all__ = [
    "Commit",
    "ElectAmongReplicas",
    "RaiseLeaderEpoch",
    "SendLeaderAndIsr",
    "SendStopReplica",
    "SendUpdateMetadata",
    "SetReplicas",
    "SetTarget",
    "ShrinkIsr",
    "Warn",
    "WriteStateZnode",
    "WriteTopicZnode",
    "leader_and_isr",
    "targeted",
    "untargeted",
    "update_metadata",
]


@dataclass(frozen=True, slots=True)
class SetReplicas:
    """Set R."""

    choose: Choice

    def perform(self, transition: Transition) -> None:
        transition.now = replace(transition.now, replicas=self.choose(transition))


@dataclass(frozen=True, slots=True)
class SetTarget:
    """Set T to ``target``, a step towards ``whole``. None ends the reassignment."""

    target: Choice | None
    whole: Callable[[RuleContext], Brokers | None] = lambda context: context.whole_target

    def perform(self, transition: Transition) -> None:
        if self.target is None:
            transition.now = untargeted(transition.now)
        else:
            transition.now = targeted(
                transition.now, self.target(transition), self.whole(transition)
            )


@dataclass(frozen=True, slots=True)
class ElectAmongReplicas:
    """Keep the leader if it is in R and live; otherwise elect the first of R that is live and in
    sync."""

    def perform(self, transition: Transition) -> None:
        now, is_live = transition.now, transition.is_live
        if now.leader in now.replicas and is_live(now.leader):
            return
        candidates = (each for each in now.replicas if each in now.isr and is_live(each))
        leader = next(candidates, NO_LEADER)
        transition.now = replace(now, leader=leader, vacated=now.vacated and leader == NO_LEADER)


@dataclass(frozen=True, slots=True)
class RaiseLeaderEpoch:
    """Raise the leader epoch: brokers ignore a LeaderAndIsr whose leader epoch they know
    already."""

    def perform(self, transition: Transition) -> None:
        transition.now = replace(transition.now, leader_epoch=transition.now.leader_epoch + 1)


@dataclass(frozen=True, slots=True)
class WriteTopicZnode:
    """Write R to ``/brokers/topics/T``."""

    def perform(self, transition: Transition) -> None:
        name, index = transition.tp
        topic = transition.controller.state.topics[name]
        partitions = (*topic.partitions[:index], transition.now, *topic.partitions[index + 1 :])
        text = transition.writer.topic_text(replace(topic, partitions=partitions))
        transition.controller.znodes.put(transition.cause, topic_path(name), text)


@dataclass(frozen=True, slots=True)
class WriteStateZnode:
    """Write leader, epochs, ISR and T to the partition's state znode."""

    def perform(self, transition: Transition) -> None:
        if transition.writer.store_state(
            transition.controller, transition.cause, transition.tp[0], transition.now
        ):
            transition.now = replace(
                transition.now, partition_epoch=transition.now.partition_epoch + 1
            )


@dataclass(frozen=True, slots=True)
class Commit:
    """Make the draft the value that the controller remembers."""

    def perform(self, transition: Transition) -> None:
        name, index = transition.tp
        before = transition.controller.state.topics[name].partitions[index]
        if transition.now != before:
            transition.record(PartitionChanged(name, before, transition.now))


@dataclass(frozen=True, slots=True)
class SendLeaderAndIsr:
    """Send LeaderAndIsr to the live brokers among ``to``, if there are any."""

    to: Choice
    is_new: bool = False

    def perform(self, transition: Transition) -> None:
        to = transition.live(self.to(transition))
        if to:
            transition.record(
                leader_and_isr(to, transition.tp[0], transition.now, is_new=self.is_new)
            )


@dataclass(frozen=True, slots=True)
class ShrinkIsr:
    """Let the leader remove from the ISR what is no longer in R, and write the state znode."""

    def perform(self, transition: Transition) -> None:
        isr = tuple(each for each in transition.now.replicas if each in transition.now.isr)
        if set(isr) != set(transition.now.isr):
            transition.now = replace(transition.now, isr=isr)
            WriteStateZnode().perform(transition)
            Commit().perform(transition)


@dataclass(frozen=True, slots=True)
class SendStopReplica:
    """Send StopReplica to the live brokers among ``to``. ``delete``: they delete the data too."""

    to: Choice
    delete: bool = True

    def perform(self, transition: Transition) -> None:
        to = transition.live(self.to(transition))
        if to:
            transition.record(StopReplicaSent(to, *transition.tp, delete=self.delete))


@dataclass(frozen=True, slots=True)
class SendUpdateMetadata:
    """Send UpdateMetadata to every live broker, if ``when`` holds."""

    when: Condition = lambda _: True

    def perform(self, transition: Transition) -> None:
        to = transition.controller.state.live_ids
        if to and self.when(transition):
            transition.record(update_metadata(to, transition.tp[0], transition.now))


@dataclass(frozen=True, slots=True)
class Warn:
    """Log a warning. ``{tp}`` in the text stands for the partition."""

    text: str

    def perform(self, transition: Transition) -> None:
        transition.record(Warned(self.text.format(tp=f"{transition.tp[0]}-{transition.tp[1]}")))


# ---- requests to brokers, as values --------------------------------------------------------------


def leader_and_isr(
    to: Brokers, topic: str, partition: Partition, *, is_new: bool = False
) -> LeaderAndIsrSent:
    target = partition.target if isinstance(partition, TargetedPartition) else None
    return LeaderAndIsrSent(
        to,
        topic,
        partition.index,
        partition.leader,
        partition.leader_epoch,
        partition.isr,
        partition.partition_epoch,
        partition.replicas,
        target,
        partition.adding,
        partition.removing,
        is_new,
        partition.recovering,
    )


def update_metadata(to: Brokers, topic: str, partition: Partition) -> UpdateMetadataSent:
    return UpdateMetadataSent(
        to,
        topic,
        partition.index,
        partition.leader,
        partition.leader_epoch,
        partition.isr,
        partition.replicas,
        partition.partition_epoch,
    )


# ---- partitions with and without a target --------------------------------------------------------

_COMMON = tuple(field.name for field in fields(Partition))


def untargeted(partition: Partition) -> Partition:
    return Partition(**{name: getattr(partition, name) for name in _COMMON})


def targeted(partition: Partition, target: Brokers, whole: Brokers | None) -> TargetedPartition:
    common = {name: getattr(partition, name) for name in _COMMON}
    return TargetedPartition(**common, target_replicas=target, whole_target=whole)
