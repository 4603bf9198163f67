"""Rows of a machine, and what runs them. Knows no KIP: tables say what happens when.

A row is a condition on one partition and the effects that follow, in order. Effects first work on a
draft of the partition; ``WriteTopicZnode`` and ``WriteStateZnode`` put that draft on record, and
``Commit`` makes it what the controller remembers, and so what it answers. Everything goes to the
action log in the order it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

from mockbroker.actions import (
    LeaderAndIsrSent,
    PartitionChanged,
    StopReplicaSent,
    UpdateMetadataSent,
    Warned,
    ZnodeWritten,
)
from mockbroker.controller import Controller
from mockbroker.machines import znode_texts
from mockbroker.model import NO_LEADER, Partition, TargetedPartition, TopicPartition

__all__ = [
    "Commit",
    "Effect",
    "ElectAmongReplicas",
    "Moment",
    "RaiseLeaderEpoch",
    "Row",
    "SendLeaderAndIsr",
    "SendStopReplica",
    "SendUpdateMetadata",
    "SetReplicas",
    "SetTarget",
    "ShrinkIsr",
    "Warn",
    "WriteStateZnode",
    "WriteTopicZnode",
    "run_first",
    "run_until_none",
    "targeted",
    "untargeted",
    "write_znode",
]

Brokers: TypeAlias = tuple[int, ...]


@dataclass(slots=True)
class Moment:
    """What conditions and choices look at.

    ``start`` is the partition when the row began, ``now`` the draft its effects have made of it so
    far; ``asked`` the replicas a request wants, where one started this.
    """

    start: Partition
    now: Partition
    is_live: Callable[[int], bool]
    asked: Brokers = ()

    @property
    def target(self) -> Brokers:
        """T of ``start``; empty where there is no reassignment."""
        return self.start.target or ()

    @property
    def whole_target(self) -> Brokers | None:
        """What ``now`` heads for, None where nobody knows."""
        return self.now.whole_target if isinstance(self.now, TargetedPartition) else None


Condition: TypeAlias = Callable[[Moment], bool]
Choice: TypeAlias = Callable[[Moment], Brokers]


@dataclass(frozen=True, slots=True)
class SetReplicas:
    """R becomes this."""

    choose: Choice


@dataclass(frozen=True, slots=True)
class SetTarget:
    """T becomes ``target``, on the way to ``whole``; None ends the reassignment."""

    target: Choice | None
    whole: Callable[[Moment], Brokers | None] = lambda moment: moment.whole_target


@dataclass(frozen=True, slots=True)
class ElectAmongReplicas:
    """Keep the leader if it is in R and live, else the first of R that is live and in the ISR."""


@dataclass(frozen=True, slots=True)
class RaiseLeaderEpoch:
    """Brokers obey a LeaderAndIsr only if its leader epoch is new to them."""


@dataclass(frozen=True, slots=True)
class WriteTopicZnode:
    """R goes on record."""


@dataclass(frozen=True, slots=True)
class WriteStateZnode:
    """Leader, epochs, ISR and T go on record."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The controller remembers the draft from now on."""


@dataclass(frozen=True, slots=True)
class SendLeaderAndIsr:
    """To those of ``to`` that are live; nobody is no request."""

    to: Choice


@dataclass(frozen=True, slots=True)
class ShrinkIsr:
    """The leader takes out of the ISR what is no replica any more, and writes the state znode."""


@dataclass(frozen=True, slots=True)
class SendStopReplica:
    """With the data deleted; to those that are live."""

    to: Choice


@dataclass(frozen=True, slots=True)
class SendUpdateMetadata:
    """To every live broker."""


@dataclass(frozen=True, slots=True)
class Warn:
    """``{tp}`` in the text is the partition."""

    text: str


Effect: TypeAlias = (
    SetReplicas
    | SetTarget
    | ElectAmongReplicas
    | RaiseLeaderEpoch
    | WriteTopicZnode
    | WriteStateZnode
    | Commit
    | SendLeaderAndIsr
    | ShrinkIsr
    | SendStopReplica
    | SendUpdateMetadata
    | Warn
)


@dataclass(frozen=True, slots=True)
class Row:
    """``requirement`` is what asks for it."""

    requirement: str
    when: Condition
    then: tuple[Effect, ...]


def run_until_none(
    controller: Controller, cause: str, tp: TopicPartition, rows: Sequence[Row]
) -> None:
    """Apply the first row that matches, and again, until none does."""
    while run_first(controller, cause, tp, rows):
        pass


def run_first(
    controller: Controller,
    cause: str,
    tp: TopicPartition,
    rows: Sequence[Row],
    *,
    asked: Brokers = (),
) -> bool:
    """Apply the first row that matches; whether one did."""
    partition = controller.state.topics[tp[0]].partitions[tp[1]]
    moment = Moment(partition, partition, controller.is_live, asked)
    for row in rows:
        if row.when(moment):
            work = _Work(controller, cause, tp, moment)
            for effect in row.then:
                work.perform(effect)
            return True
    return False


def write_znode(controller: Controller, cause: str, path: str, text: str | None) -> bool:
    """Whether there was anything to write."""
    before = controller.state.znodes.get(path)
    if text == before:
        return False
    controller.record(cause, ZnodeWritten(path, before, text))
    return True


class _Work:
    """One row at work on one partition."""

    def __init__(
        self, controller: Controller, cause: str, tp: TopicPartition, moment: Moment
    ) -> None:
        self._controller = controller
        self._cause = cause
        self._topic, self._index = tp
        self._moment = moment

    def perform(self, effect: Effect) -> None:
        moment = self._moment
        match effect:
            case SetReplicas(choose):
                moment.now = replace(moment.now, replicas=choose(moment))
            case SetTarget(None):
                moment.now = untargeted(moment.now)
            case SetTarget(target, whole) if target is not None:
                moment.now = targeted(moment.now, target(moment), whole(moment))
            case ElectAmongReplicas():
                moment.now = replace(moment.now, leader=_leader(moment.now, moment.is_live))
            case RaiseLeaderEpoch():
                moment.now = replace(moment.now, leader_epoch=moment.now.leader_epoch + 1)
            case WriteTopicZnode():
                self._write_topic_znode()
            case WriteStateZnode():
                self._write_state_znode()
            case Commit():
                self._commit()
            case SendLeaderAndIsr(choose):
                self._send_leader_and_isr(choose(moment))
            case ShrinkIsr():
                isr = tuple(each for each in moment.now.replicas if each in moment.now.isr)
                if set(isr) != set(moment.now.isr):
                    moment.now = replace(moment.now, isr=isr)
                    self._write_state_znode()
                    self._commit()
            case SendStopReplica(choose):
                self._send_stop_replica(choose(moment))
            case SendUpdateMetadata():
                self._send_update_metadata()
            case Warn(text):
                where = f"{self._topic}-{self._index}"
                self._controller.record(self._cause, Warned(text.format(tp=where)))

    # ---- znodes ------------------------------------------------------------------------------

    def _write_topic_znode(self) -> None:
        partitions = list(self._controller.state.topics[self._topic].partitions)
        partitions[self._index] = self._moment.now
        path, text = znode_texts.topic_path(self._topic), znode_texts.topic_text(partitions)
        write_znode(self._controller, self._cause, path, text)

    def _write_state_znode(self) -> None:
        now = self._moment.now
        path = znode_texts.partition_state_path(self._topic, self._index)
        text = znode_texts.state_text(now, self._controller.state.controller_epoch)
        if write_znode(self._controller, self._cause, path, text):
            self._moment.now = replace(now, partition_epoch=now.partition_epoch + 1)

    def _commit(self) -> None:
        now = self._moment.now
        before = self._controller.state.topics[self._topic].partitions[self._index]
        if now != before:
            self._controller.record(self._cause, PartitionChanged(self._topic, before, now))

    # ---- requests to brokers -----------------------------------------------------------------

    def _live(self, brokers: Brokers) -> Brokers:
        return tuple(each for each in brokers if self._moment.is_live(each))

    def _send_leader_and_isr(self, brokers: Brokers) -> None:
        to, now = self._live(brokers), self._moment.now
        if to:
            change = LeaderAndIsrSent(
                to, self._topic, self._index, now.leader, now.leader_epoch, now.isr,
                now.partition_epoch, now.replicas, now.target,
            )  # fmt: skip
            self._controller.record(self._cause, change)

    def _send_stop_replica(self, brokers: Brokers) -> None:
        to = self._live(brokers)
        if to:
            change = StopReplicaSent(to, self._topic, self._index, delete=True)
            self._controller.record(self._cause, change)

    def _send_update_metadata(self) -> None:
        to, now = self._controller.live_ids(), self._moment.now
        if to:
            change = UpdateMetadataSent(
                to, self._topic, self._index, now.leader, now.leader_epoch, now.isr, now.replicas
            )
            self._controller.record(self._cause, change)


_COMMON = tuple(field.name for field in fields(Partition))


def untargeted(partition: Partition) -> Partition:
    return Partition(**{name: getattr(partition, name) for name in _COMMON})


def targeted(partition: Partition, target: Brokers, whole: Brokers | None) -> TargetedPartition:
    common = {name: getattr(partition, name) for name in _COMMON}
    return TargetedPartition(**common, target_replicas=target, whole_target=whole)


def _leader(partition: Partition, is_live: Callable[[int], bool]) -> int:
    if partition.leader in partition.replicas and is_live(partition.leader):
        return partition.leader
    candidates = (each for each in partition.replicas if each in partition.isr and is_live(each))
    return next(candidates, NO_LEADER)
