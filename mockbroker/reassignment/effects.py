"""The effects that the rows of several machines share. Each is a value that knows what it does.

Which of them follow which condition, and in what order, is the tables' to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, cast

from kproto.znodes.kafka_znodes import topic_path
from mockbroker.reassignment.engine import Brokers, Choice, Condition, Moment, Work
from mockbroker.state.actions import (
    LeaderAndIsrSent,
    PartitionChanged,
    StopReplicaSent,
    UpdateMetadataSent,
    Warned,
)
from mockbroker.state.model import NO_LEADER, Partition, TargetedPartition

if TYPE_CHECKING:
    from mockbroker.reassignment.zookeeper_controller import KeepsZnodes

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
    """R becomes this."""

    choose: Choice

    def perform(self, work: Work) -> None:
        work.now = replace(work.now, replicas=self.choose(work.moment))


@dataclass(frozen=True, slots=True)
class SetTarget:
    """T becomes ``target``, on the way to ``whole``; None ends the reassignment."""

    target: Choice | None
    whole: Callable[[Moment], Brokers | None] = lambda moment: moment.whole_target

    def perform(self, work: Work) -> None:
        if self.target is None:
            work.now = untargeted(work.now)
        else:
            work.now = targeted(work.now, self.target(work.moment), self.whole(work.moment))


@dataclass(frozen=True, slots=True)
class ElectAmongReplicas:
    """Keep the leader if it is in R and live, else the first of R that is live and in the ISR."""

    def perform(self, work: Work) -> None:
        now, is_live = work.now, work.moment.is_live
        if now.leader in now.replicas and is_live(now.leader):
            return
        candidates = (each for each in now.replicas if each in now.isr and is_live(each))
        work.now = replace(now, leader=next(candidates, NO_LEADER))


@dataclass(frozen=True, slots=True)
class RaiseLeaderEpoch:
    """Brokers obey a LeaderAndIsr only if its leader epoch is new to them."""

    def perform(self, work: Work) -> None:
        work.now = replace(work.now, leader_epoch=work.now.leader_epoch + 1)


@dataclass(frozen=True, slots=True)
class WriteTopicZnode:
    """R goes on record."""

    def perform(self, work: Work) -> None:
        name, index = work.tp
        topic = work.controller.state.topics[name]
        partitions = (*topic.partitions[:index], work.now, *topic.partitions[index + 1 :])
        text = _machine(work).topic_text(replace(topic, partitions=partitions))
        work.controller.znodes.put(work.cause, topic_path(name), text)


@dataclass(frozen=True, slots=True)
class WriteStateZnode:
    """Leader, epochs, ISR and T go on record."""

    def perform(self, work: Work) -> None:
        if _machine(work).store_state(work.controller, work.cause, work.tp[0], work.now):
            work.now = replace(work.now, partition_epoch=work.now.partition_epoch + 1)


@dataclass(frozen=True, slots=True)
class Commit:
    """The controller remembers the draft from now on."""

    def perform(self, work: Work) -> None:
        name, index = work.tp
        before = work.controller.state.topics[name].partitions[index]
        if work.now != before:
            work.record(PartitionChanged(name, before, work.now))


@dataclass(frozen=True, slots=True)
class SendLeaderAndIsr:
    """To those of ``to`` that are live; nobody is no request."""

    to: Choice
    is_new: bool = False

    def perform(self, work: Work) -> None:
        to = work.live(self.to(work.moment))
        if to:
            work.record(leader_and_isr(to, work.tp[0], work.now, is_new=self.is_new))


@dataclass(frozen=True, slots=True)
class ShrinkIsr:
    """The leader takes out of the ISR what is no replica any more, and writes the state znode."""

    def perform(self, work: Work) -> None:
        isr = tuple(each for each in work.now.replicas if each in work.now.isr)
        if set(isr) != set(work.now.isr):
            work.now = replace(work.now, isr=isr)
            WriteStateZnode().perform(work)
            Commit().perform(work)


@dataclass(frozen=True, slots=True)
class SendStopReplica:
    """To those that are live; ``delete``: the data goes too."""

    to: Choice
    delete: bool = True

    def perform(self, work: Work) -> None:
        to = work.live(self.to(work.moment))
        if to:
            work.record(StopReplicaSent(to, *work.tp, delete=self.delete))


@dataclass(frozen=True, slots=True)
class SendUpdateMetadata:
    """To every live broker; ``when`` is where there is need of it."""

    when: Condition = lambda _: True

    def perform(self, work: Work) -> None:
        to = work.controller.live_ids()
        if to and self.when(work.moment):
            work.record(update_metadata(to, work.tp[0], work.now))


@dataclass(frozen=True, slots=True)
class Warn:
    """``{tp}`` in the text is the partition."""

    text: str

    def perform(self, work: Work) -> None:
        work.record(Warned(self.text.format(tp=f"{work.tp[0]}-{work.tp[1]}")))


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


def _machine(work: Work) -> KeepsZnodes:
    """Only machines that keep znodes have rows that write them."""
    return cast("KeepsZnodes", work.controller.machine)
