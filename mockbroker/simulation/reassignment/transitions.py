"""Transitions of partitions: what rules look at, how a table is applied, and the effects that
several reassignment controllers share.

A row's condition looks at one partition (``RuleContext``). Its effects first edit a draft of that
partition (``Transition.now``). Some effects write the draft to znodes, and ``commit`` makes it the
controller's own value, which requests are answered from. Everything enters the action log in the
order in which it happens.

R is a partition's replicas, T the target of its reassignment.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.simulation.releases.rows import Effect, Row, apply_first, with_arguments
from mockbroker.simulation.state.actions import (
    Change,
    LeaderAndIsrSent,
    PartitionChanged,
    StopReplicaSent,
    UpdateMetadataSent,
    Warned,
)
from mockbroker.simulation.state.cluster_parts import (
    NO_LEADER,
    Partition,
    TargetedPartition,
    Topic,
    TopicPartition,
)
from mockbroker.simulation.state.controller import Controller

__all__ = [
    "Brokers",
    "Choice",
    "Condition",
    "Effects",
    "RuleContext",
    "Table",
    "Transition",
    "ZnodeWriter",
    "commit",
    "dropped",
    "elect_among_replicas",
    "idle",
    "leader_and_isr",
    "raise_leader_epoch",
    "refuse_request",
    "replicas",
    "requested",
    "run_first",
    "send_leader_and_isr",
    "send_stop_replica",
    "send_update_metadata",
    "set_replicas",
    "set_target",
    "shrink_isr",
    "target",
    "targeted",
    "untargeted",
    "update_metadata",
    "warn",
    "write_state_znode",
    "write_topic_znode",
]

Brokers: TypeAlias = tuple[int, ...]


class RuleContext(msgspec.Struct):
    """What conditions and choices look at.

    ``is_live`` says whether a broker is live, ``is_online`` whether its replica can lead.
    ``start`` is the partition when the row began; ``now`` is the draft that the row's effects have
    made of it so far. ``requested_replicas`` is the replica list of the request that started this,
    empty if none did. ``facts`` holds what a controller looked up beforehand for its own rows, such
    as ``min.insync.replicas``.
    """

    start: Partition
    now: Partition
    is_live: Callable[[int], bool]
    is_online: Callable[[int], bool]
    requested_replicas: Brokers = ()
    facts: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def target(self) -> Brokers:
        """The target of ``start``; empty where there is no reassignment."""
        return self.start.target or ()

    @property
    def whole_target(self) -> Brokers | None:
        """All replicas that ``now`` is being reassigned to; None if unknown."""
        return self.now.whole_target if isinstance(self.now, TargetedPartition) else None


Condition: TypeAlias = Callable[[RuleContext], bool]
Choice: TypeAlias = Callable[[RuleContext], Brokers]


class ZnodeWriter(Protocol):
    """What effects need of a controller that keeps its metadata in ZooKeeper."""

    @property
    def controller(self) -> Controller: ...

    def store_topic(self, cause: str, topic: Topic) -> None: ...

    def store_state(self, cause: str, name: str, partition: Partition) -> bool: ...

    def plan_removed(self) -> None: ...

    def change_partition(self, cause: str, change: PartitionChanged) -> None: ...


class Transition(RuleContext, kw_only=True):
    """One row being applied to one partition: the subject of effects, which edit ``now``."""

    controller: Controller
    cause: str
    tp: TopicPartition
    znode_writer: ZnodeWriter | None = None

    @property
    def writer(self) -> ZnodeWriter:
        """For effects that write znodes; no table of KRaft's has one."""
        assert self.znode_writer is not None, "this controller keeps no znodes"
        return self.znode_writer

    def record(self, change: Change) -> None:
        self.controller.record(self.cause, change)

    def live(self, brokers: Brokers) -> Brokers:
        return tuple(filter(self.is_live, brokers))


# ---- conditions and choices that several tables use ----------------------------------------------


def idle(context: RuleContext) -> bool:
    """No reassignment is in progress."""
    return not context.start.reassigning


def requested(context: RuleContext) -> Brokers:
    return context.requested_replicas


def target(context: RuleContext) -> Brokers:
    """T as it was when the row began."""
    return context.target


def replicas(context: RuleContext) -> Brokers:
    """R as the row has made it so far."""
    return context.now.replicas


def dropped(context: RuleContext) -> Brokers:
    """The replicas that the row has removed so far."""
    return tuple(each for each in context.start.replicas if each not in context.now.replicas)


# ---- tables --------------------------------------------------------------------------------------

Effects: TypeAlias = tuple[Effect[Transition], ...]
Table: TypeAlias = tuple[Row[RuleContext, Transition], ...]


def run_first(
    controller: Controller,
    cause: str,
    tp: TopicPartition,
    rows: Table,
    *,
    requested_replicas: Brokers = (),
    facts: dict[str, Any] | None = None,
    before: Partition | None = None,
    draft: Partition | None = None,
    writer: ZnodeWriter | None = None,
) -> bool:
    """Apply the first row that matches. Returns whether one did.

    ``before`` is the partition to decide on, if that is not its present value; ``draft`` is what
    the caller has already made of it.
    """
    start = before or controller.partition(tp)
    transition = Transition(
        start,
        draft or start,
        controller.state.live_ids.__contains__,
        partial(controller.is_online, tp),
        requested_replicas,
        facts or {},
        controller=controller,
        cause=cause,
        tp=tp,
        znode_writer=writer,
    )
    return apply_first(rows, transition, transition)


# ---- effects -------------------------------------------------------------------------------------


@with_arguments
def refuse_request(
    transition: Transition, code: ErrorCode, text: str | Callable[[Transition], str] | None = None
) -> None:
    """Refuse the request and change nothing. In a text that is a string, ``{tp}`` stands for the
    partition; with None the error carries no text."""
    if isinstance(text, str):
        text = text.format(tp=f"{transition.tp[0]}-{transition.tp[1]}")
    raise Refusal(code, text(transition) if callable(text) else text)


@with_arguments
def set_replicas(transition: Transition, choose: Choice) -> None:
    """Set R."""
    transition.now = replace(transition.now, replicas=choose(transition))


@with_arguments
def set_target(
    transition: Transition,
    target: Choice | None,
    whole: Callable[[RuleContext], Brokers | None] = lambda context: context.whole_target,
) -> None:
    """Set T to ``target``, a step towards ``whole``. None ends the reassignment."""
    if target is None:
        transition.now = untargeted(transition.now)
    else:
        transition.now = targeted(transition.now, target(transition), whole(transition))


def elect_among_replicas(transition: Transition) -> None:
    """Keep the leader if it is in R and live; otherwise elect the first of R that is live and in
    sync."""
    now, is_online = transition.now, transition.is_online
    if now.leader in now.replicas and is_online(now.leader):
        return
    candidates = (replica for replica in now.replicas if replica in now.isr and is_online(replica))
    leader = next(candidates, NO_LEADER)
    transition.now = replace(now, leader=leader, vacated=now.vacated and leader == NO_LEADER)


def raise_leader_epoch(transition: Transition) -> None:
    """Raise the leader epoch: brokers ignore a LeaderAndIsr whose leader epoch they know
    already."""
    transition.now = replace(transition.now, leader_epoch=transition.now.leader_epoch + 1)


def write_topic_znode(transition: Transition) -> None:
    """Write R to ``/brokers/topics/T``."""
    topic = transition.controller.state.topics[transition.tp[0]]
    transition.writer.store_topic(transition.cause, topic.with_partition(transition.now))


def write_state_znode(transition: Transition) -> None:
    """Write leader, epochs, ISR and T to the partition's state znode."""
    if transition.writer.store_state(transition.cause, transition.tp[0], transition.now):
        transition.now = replace(transition.now, partition_epoch=transition.now.partition_epoch + 1)


def commit(transition: Transition) -> None:
    """Make the draft the value that the controller remembers."""
    name, index = transition.tp
    before = transition.controller.partition((name, index))
    if transition.now != before:
        transition.record(PartitionChanged(name, before, transition.now))


@with_arguments
def send_leader_and_isr(transition: Transition, to: Choice, *, is_new: bool = False) -> None:
    """Send LeaderAndIsr to the live brokers among ``to``, if there are any."""
    brokers = transition.live(to(transition))
    if brokers:
        transition.record(leader_and_isr(brokers, transition.tp[0], transition.now, is_new=is_new))


def shrink_isr(transition: Transition) -> None:
    """Let the leader remove from the ISR what is no longer in R, and write the state znode."""
    isr = tuple(replica for replica in transition.now.replicas if replica in transition.now.isr)
    if set(isr) != set(transition.now.isr):
        transition.now = replace(transition.now, isr=isr)
        write_state_znode(transition)
        commit(transition)


@with_arguments
def send_stop_replica(transition: Transition, to: Choice, *, delete: bool = True) -> None:
    """Send StopReplica to the live brokers among ``to``. ``delete``: they delete the data too."""
    brokers = transition.live(to(transition))
    if brokers:
        transition.record(StopReplicaSent(brokers, *transition.tp, delete=delete))


@with_arguments
def send_update_metadata(transition: Transition, when: Condition = lambda _: True) -> None:
    """Send UpdateMetadata to every live broker, if ``when`` holds."""
    to = transition.controller.state.live_ids
    if to and when(transition):
        transition.record(update_metadata(to, transition.tp[0], transition.now))


@with_arguments
def warn(transition: Transition, text: str) -> None:
    """Log a warning. ``{tp}`` in the text stands for the partition."""
    transition.record(Warned(text.format(tp=f"{transition.tp[0]}-{transition.tp[1]}")))


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

_COMMON = Partition.__struct_fields__


def untargeted(partition: Partition) -> Partition:
    return Partition(**{name: getattr(partition, name) for name in _COMMON})


def targeted(partition: Partition, target: Brokers, whole: Brokers | None) -> TargetedPartition:
    common = {name: getattr(partition, name) for name in _COMMON}
    return TargetedPartition(**common, target_replicas=target, whole_target=whole)
