"""Kafka's own ZooKeeper controller, to 3.9, as tables. Nothing here acts.

Since 2.4 every reassignment, however it came about, goes the same road: its new assignment goes on
record (U); then, as long as the target is not in the ISR, old and new replicas are told to go on
(A); as soon as it is, the rest is removed (B). B is taken again from its start by a controller that
finds it half done: replicas leave the topic znode last. Before 2.4 there is no U: A adds the new
replicas to those on record, and nothing says there which are new.

LeaderAndIsr is followed by UpdateMetadata to every broker, and that by StopReplica, as one batch of
Kafka's has them. Kafka sends a new replica's first LeaderAndIsr twice, and so does A. What it sends
again without need is left out: at B to new replicas that a former controller started, at the death
of a broker to the others of a partition that got another leader.

Rows name the releases that have them; ``docs/zookeeper-eras.md`` lists what differs, and why.
"""

from __future__ import annotations

from typing import Final

from mockbroker.reassignment.effects import (
    Commit,
    ElectAmongReplicas,
    RaiseLeaderEpoch,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    ShrinkIsr,
    WriteStateZnode,
    WriteTopicZnode,
)
from mockbroker.reassignment.transitions import (
    Brokers,
    Choice,
    Effects,
    RuleContext,
    Table,
    Transition,
)
from mockbroker.reassignment.zookeeper.effects import (
    ElectFromIsr,
    HeadForAsked,
    KeepLiveInIsr,
    LeavePlan,
    LeaveRememberedPlan,
    PlanAsked,
    RemoveFromIsr,
    SendFormerLeaderAndIsr,
    SettleOnTarget,
    SpreadOverBoth,
)
from mockbroker.rows import Effect, Row, always

__all__ = [
    "ON_CHANGE",
    "ON_LEADER",
    "ON_PARTITION_START",
    "ON_PHASE",
    "ON_PLAN",
    "ON_REPLICA_START",
    "ON_STEP",
    "ON_UPDATE",
]

_OFFLINE_AT_START: Final = (2, 3)
"""ReplicaStateMachine.startup handles the replicas that are offline, too."""
_KIP_455: Final = (2, 4)
_NEW_AT_ONCE: Final = (2, 7)
"""updateLeaderEpochAndSendRequest says which replicas are new."""
_KAFKA_9672: Final = (3, 0)
"""Partition.isFollowerOutOfSync takes a follower that is no replica for out of sync."""

# ---- conditions ----------------------------------------------------------------------------------


def _incomplete(context: RuleContext) -> bool:
    return context.start.reassigning and not set(context.target) <= set(context.start.isr)


def _complete(context: RuleContext) -> bool:
    return context.start.reassigning and set(context.target) <= set(context.start.isr)


def _leader_to_be_had(context: RuleContext) -> bool:
    target = context.target or context.start.replicas
    return any(each in context.start.isr and context.is_live(each) for each in target)


def _leader_is_gone(context: RuleContext) -> bool:
    replicas = context.start.replicas
    candidates = any(each in context.start.isr and context.is_live(each) for each in replicas)
    return candidates and not context.is_live(context.start.leader)


def _is_there(context: RuleContext) -> bool:
    return context.start.replicas == context.target


def _done(context: RuleContext) -> bool:
    """None of the target can lead any more, which is in sync all the same."""
    return _complete(context) and not _leader_to_be_had(context)


def _done_with_a_leader(context: RuleContext) -> bool:
    return _complete(context) and _leader_to_be_had(context)


def _dead_in_isr(context: RuleContext) -> bool:
    return bool(set(_dead(context)) & set(context.start.isr))


def _strangers_in_isr(context: RuleContext) -> bool:
    isr, replicas = set(context.start.isr), set(context.start.replicas)
    return context.is_live(context.start.leader) and not isr <= replicas


def _leader_changes(context: RuleContext) -> bool:
    return context.now.leader != context.start.leader


def _dead_follower_leaves(context: RuleContext) -> bool:
    left = set(context.start.isr) - set(context.now.isr)
    return any(not context.is_live(each) for each in left)


def _replicas_went(context: RuleContext) -> bool:
    return bool(_dropped(context))


# ---- choices -------------------------------------------------------------------------------------


def _dropped(context: RuleContext) -> Brokers:
    """What was a replica when the row began, and is none now."""
    return tuple(each for each in context.start.replicas if each not in context.now.replicas)


def _kept(context: RuleContext) -> Brokers:
    """Who has to hear that others are gone."""
    return context.now.replicas if _dropped(context) else ()


def _replicas(context: RuleContext) -> Brokers:
    return context.now.replicas


def _origin(context: RuleContext) -> Brokers:
    return tuple(each for each in context.now.replicas if each not in context.now.adding)


def _adding(context: RuleContext) -> Brokers:
    return context.now.adding


def _told_of_the_end(context: RuleContext) -> Brokers:
    """Before 2.4, those that go are told of the end, too, unless another leader is elected."""
    now, start = context.now, context.start
    stays = now.leader == start.leader
    return tuple(dict.fromkeys(start.replicas + now.replicas)) if stays else now.replicas


def _dead(context: RuleContext) -> Brokers:
    return tuple(each for each in context.now.replicas if not context.is_live(each))


def _not_started(context: RuleContext) -> Brokers:
    """New replicas that were none before the request."""
    held: Brokers = context.facts.get("held", context.start.replicas)
    return tuple(each for each in context.now.adding if each not in held)


# ---- what tables share ---------------------------------------------------------------------------


_STOP_DROPPED: Final[Effects] = (
    SendStopReplica(_dropped, delete=False),
    SendStopReplica(_dropped),
)

_DROP: Final[Effects] = (
    RemoveFromIsr(_dropped),
    SendLeaderAndIsr(_kept),
    SendUpdateMetadata(_replicas_went),
    *_STOP_DROPPED,
)
"""They go offline, and then for good."""

_TELL: Final[Effects] = (
    RaiseLeaderEpoch(),
    WriteStateZnode(),
    Commit(),
    SendLeaderAndIsr(_replicas),
    SendUpdateMetadata(),
)


def _finish(told: Choice, leave_plan: Effect[Transition]) -> Effects:
    """The rest is removed only after the leader has heard that it is no replica any more: or else
    it could take it into the ISR again."""
    return (
        SettleOnTarget(),
        Commit(),
        ElectAmongReplicas(),
        RaiseLeaderEpoch(),
        WriteStateZnode(),
        Commit(),
        SendLeaderAndIsr(told),
        SendUpdateMetadata(),
        *_DROP,
        WriteTopicZnode(),
        leave_plan,
        SendUpdateMetadata(),
    )


def _finish_without_leader(leave_plan: Effect[Transition]) -> Effects:
    """All of the target is down, and so the last in sync is among it: nobody is to be taken out of
    the ISR, and nobody there to be told of it."""
    return (
        SettleOnTarget(),
        Commit(),
        SendUpdateMetadata(_replicas_went),
        *_STOP_DROPPED,
        WriteTopicZnode(),
        leave_plan,
        SendUpdateMetadata(),
    )


_FINISH: Final[Effects] = _finish(_replicas, LeavePlan())
_FINISH_BEFORE_2_4: Final[Effects] = _finish(_told_of_the_end, LeaveRememberedPlan())

# ---- tables --------------------------------------------------------------------------------------

ON_UPDATE: Final[Table] = (
    Row(
        "K455-01",
        always,
        (HeadForAsked(), WriteTopicZnode(), Commit(), *_DROP),
        since=_KIP_455,
    ),
    Row("K455-60", always, (PlanAsked(), Commit()), until=_KIP_455),
)
"""U. A new target, the origin of a cancelled reassignment among them. Where it makes no difference
nothing is written, and where nobody is dropped nobody is told. Before 2.4 only memory changes."""

ON_PLAN: Final[Table] = (
    Row(
        "K455-60",
        _is_there,
        (SettleOnTarget(), Commit(), LeaveRememberedPlan()),
        until=_KIP_455,
    ),
)
"""A planned partition that has these replicas already, in this order, is done with. So is one that
a former controller began to add replicas to, where its plan adds to the end."""

ON_PHASE: Final[Table] = (
    Row(
        "K455-42",
        _incomplete,
        (
            RaiseLeaderEpoch(),
            WriteStateZnode(),
            Commit(),
            SendLeaderAndIsr(_origin),
            SendLeaderAndIsr(_adding, is_new=True),
            SendUpdateMetadata(),
            SendLeaderAndIsr(_not_started, is_new=True),
        ),
        since=_NEW_AT_ONCE,
    ),
    Row(
        "K455-42",
        _incomplete,
        (*_TELL, SendLeaderAndIsr(_not_started, is_new=True)),
        since=_KIP_455,
        until=_NEW_AT_ONCE,
    ),
    Row("K455-42", _leader_to_be_had, _FINISH, since=_KIP_455),
    Row("K455-42", always, _finish_without_leader(LeavePlan()), since=_KIP_455),
    Row(
        "K455-60",
        _incomplete,
        (
            SpreadOverBoth(),
            WriteTopicZnode(),
            Commit(),
            *_TELL,
            SendFormerLeaderAndIsr(_not_started),
        ),
        until=_KIP_455,
    ),
    Row("K455-60", _done_with_a_leader, _FINISH_BEFORE_2_4, until=_KIP_455),
    Row("K455-60", _done, _finish_without_leader(LeaveRememberedPlan()), until=_KIP_455),
)
"""A or B: what follows U, and a take-over, and a return of a broker that is needed."""

ON_STEP: Final[Table] = (
    Row("K455-42", _complete, _FINISH, since=_KIP_455),
    Row("K455-60", _complete, _FINISH_BEFORE_2_4, until=_KIP_455),
)
"""B alone: what follows a change of the ISR. One that completes a target has a leader."""

ON_REPLICA_START: Final[Table] = (
    Row(
        "K455-38",
        _dead_in_isr,
        (RemoveFromIsr(_dead), SendLeaderAndIsr(_replicas), SendUpdateMetadata()),
        since=_OFFLINE_AT_START,
    ),
)
"""Each partition, when a controller comes up: replicas that are offline leave the ISR, and a leader
among them leads no more (``ReplicaStateMachine.startup``)."""

ON_PARTITION_START: Final[Table] = (
    Row("K455-38", _leader_is_gone, (ElectFromIsr(), *_TELL)),
    Row(
        "K455-38",
        _dead_in_isr,
        (KeepLiveInIsr(), WriteStateZnode(), Commit(), SendUpdateMetadata()),
        until=_OFFLINE_AT_START,
    ),
)
"""Each partition thereafter, before its reassignment is looked at: a controller that comes up
elects first (``PartitionStateMachine.startup``). Dead followers that no controller takes out of the
ISR leave it by their leader's hand, which raises no epoch."""

ON_LEADER: Final[Table] = (
    Row("K455-38", _strangers_in_isr, (ShrinkIsr(), SendUpdateMetadata()), since=_KAFKA_9672),
)
"""What a leader does that was told anew, with a raised epoch: members of the ISR that are no
replicas have never caught up (``Partition.maybeShrinkIsr``). There are such only where a controller
died between two writes of U. Leaders of 2.4 to 2.8 keep them: their attempt fails, every time."""

ON_CHANGE: Final[Table] = (
    Row(
        "K455-42",
        _leader_changes,
        (WriteStateZnode(), Commit(), SendLeaderAndIsr(_replicas), SendUpdateMetadata()),
    ),
    Row("K455-42", _dead_follower_leaves, _TELL),
    Row("K455-42", always, (WriteStateZnode(), Commit(), SendUpdateMetadata())),
)
"""An ISR or a leader changed without a reassignment. The leader itself changes its ISR without
raising its epoch; the controller raises it when it takes out a follower that died."""
