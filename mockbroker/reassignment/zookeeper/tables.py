"""The rules of Kafka's own ZooKeeper controller, 0.10 to 3.9, as tables of rows.

Since 2.4 every reassignment takes the same steps. U: its target is written. A: while the target is
not in sync, old and new replicas get LeaderAndIsr. B: as soon as the target is in sync, the other
replicas are removed. A new controller that finds B half done repeats it from its start, since
replicas leave the topic znode last. Before 2.4 there is no U: A adds the new replicas to those on
record, and nothing on record tells which are new.

LeaderAndIsr is followed by UpdateMetadata to every broker, then by StopReplica, as in a batch of
Kafka's. Kafka sends a new replica's first LeaderAndIsr twice, and so does A. Requests that Kafka
repeats without effect are left out: at B, those to new replicas that a former controller started;
at the death of a broker, those to the other replicas of a partition with a new leader.

Rows name the releases that have them; ``docs/explanation/zookeeper-eras.md`` lists the differences.
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode, message
from mockbroker.reassignment.transitions import (
    Brokers,
    Choice,
    Commit,
    Effects,
    ElectAmongReplicas,
    RaiseLeaderEpoch,
    Refuse,
    RuleContext,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    ShrinkIsr,
    Table,
    Transition,
    WriteStateZnode,
    WriteTopicZnode,
)
from mockbroker.reassignment.zookeeper import refusal_texts as texts
from mockbroker.reassignment.zookeeper.effects import (
    AdoptTarget,
    ElectFromIsr,
    KeepLiveInIsr,
    RememberTarget,
    RemoveFromIsr,
    RemoveFromPlan,
    RewritePlan,
    SendFormerLeaderAndIsr,
    StartReassignment,
    UniteReplicas,
    with_target,
)
from mockbroker.rows import Effect, Row, always

__all__ = [
    "ON_CANCEL",
    "ON_CHANGE",
    "ON_ELECTION",
    "ON_LEADER",
    "ON_PARTITION_START",
    "ON_PHASE",
    "ON_PLAN",
    "ON_REPLICA_START",
    "ON_STEP",
    "ON_SUBMIT",
    "ON_UPDATE",
    "REFUSALS",
]

_OFFLINE_AT_START: Final = (2, 3)
"""``ReplicaStateMachine.startup`` handles offline replicas too."""
_KIP_455: Final = (2, 4)
_REFUSALS_EXPLAINED: Final = (2, 5)
"""A refused list of replicas has a text of its own, before that only the error's generic one."""
_ALTER_ISR: Final = (2, 7)
"""Leaders change the ISR through the controller (KIP-497)."""
_NEW_AT_ONCE: Final = (2, 7)
"""``updateLeaderEpochAndSendRequest`` says which replicas are new."""
_KAFKA_9672: Final = (3, 0)
"""``Partition.isFollowerOutOfSync`` takes a follower that is not a replica for out of sync."""

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


def _replicas_unchanged(context: RuleContext) -> bool:
    return context.start.replicas == context.target


def _done(context: RuleContext) -> bool:
    """The target is in sync, but none of it can lead any more."""
    return _complete(context) and not _leader_to_be_had(context)


def _done_with_a_leader(context: RuleContext) -> bool:
    return _complete(context) and _leader_to_be_had(context)


def _dead_in_isr(context: RuleContext) -> bool:
    return bool(set(_dead(context)) & set(context.start.isr))


def _isr_beyond_replicas(context: RuleContext) -> bool:
    isr, replicas = set(context.start.isr), set(context.start.replicas)
    return context.is_live(context.start.leader) and not isr <= replicas


def _leader_changes(context: RuleContext) -> bool:
    return context.now.leader != context.start.leader


def _dead_follower_leaves(context: RuleContext) -> bool:
    left = set(context.start.isr) - set(context.now.isr)
    return any(not context.is_live(each) for each in left)


def _replicas_went(context: RuleContext) -> bool:
    return bool(_dropped(context))


def _invalid_list(context: RuleContext) -> bool:
    """Any of the four conditions below."""
    checks = (_empty_list, _repeated_broker, _negative_broker, _dead_addition)
    return any(check(context) for check in checks)


def _empty_list(context: RuleContext) -> bool:
    return not context.requested_replicas


def _repeated_broker(context: RuleContext) -> bool:
    return len(set(context.requested_replicas)) != len(context.requested_replicas)


def _negative_broker(context: RuleContext) -> bool:
    return min(context.requested_replicas) < 0


def _dead_addition(context: RuleContext) -> bool:
    """Only brokers to be added have to be live."""
    return not all(context.is_live(each) for each in _additions(context))


def _idle(context: RuleContext) -> bool:
    return not context.start.reassigning


# ---- choices -------------------------------------------------------------------------------------


def _dropped(context: RuleContext) -> Brokers:
    """The replicas that the row has removed so far."""
    return tuple(each for each in context.start.replicas if each not in context.now.replicas)


def _kept(context: RuleContext) -> Brokers:
    """The remaining replicas, if the row has removed any."""
    return context.now.replicas if _dropped(context) else ()


def _replicas(context: RuleContext) -> Brokers:
    return context.now.replicas


def _origin(context: RuleContext) -> Brokers:
    return tuple(each for each in context.now.replicas if each not in context.now.adding)


def _adding(context: RuleContext) -> Brokers:
    return context.now.adding


def _recipients_of_the_end(context: RuleContext) -> Brokers:
    """Before 2.4 the last LeaderAndIsr also goes to removed replicas, unless the leader changes."""
    now, start = context.now, context.start
    stays = now.leader == start.leader
    return tuple(dict.fromkeys(start.replicas + now.replicas)) if stays else now.replicas


def _dead(context: RuleContext) -> Brokers:
    return tuple(each for each in context.now.replicas if not context.is_live(each))


def _not_started(context: RuleContext) -> Brokers:
    """New replicas that were not replicas before the request."""
    held: Brokers = context.facts.get("held", context.start.replicas)
    return tuple(each for each in context.now.adding if each not in held)


def _additions(context: RuleContext) -> Brokers:
    return with_target(context.start, context.requested_replicas).adding


# ---- texts ---------------------------------------------------------------------------------------


def _repeated_text(transition: Transition) -> str:
    return texts.duplicates(transition.requested_replicas)


def _negative_text(transition: Transition) -> str:
    return texts.not_ids(transition.requested_replicas)


def _dead_text(transition: Transition) -> str:
    return texts.not_alive(_additions(transition), transition.controller.live_ids())


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
"""Stop the removed replicas, then have them delete their data."""

_ANNOUNCE: Final[Effects] = (
    RaiseLeaderEpoch(),
    WriteStateZnode(),
    Commit(),
    SendLeaderAndIsr(_replicas),
    SendUpdateMetadata(),
)


def _finish(to: Choice, remove_from_plan: Effect[Transition]) -> Effects:
    """Complete a reassignment. Replicas are removed only after the leader has learned of the new
    list: otherwise it could take them back into the ISR."""
    return (
        AdoptTarget(),
        Commit(),
        ElectAmongReplicas(),
        RaiseLeaderEpoch(),
        WriteStateZnode(),
        Commit(),
        SendLeaderAndIsr(to),
        SendUpdateMetadata(),
        *_DROP,
        WriteTopicZnode(),
        remove_from_plan,
        SendUpdateMetadata(),
    )


def _finish_without_leader(remove_from_plan: Effect[Transition]) -> Effects:
    """Complete a reassignment whose target is down. The last in-sync replica is in the target, so
    the ISR stays, and no leader needs a LeaderAndIsr."""
    return (
        AdoptTarget(),
        Commit(),
        SendUpdateMetadata(_replicas_went),
        *_STOP_DROPPED,
        WriteTopicZnode(),
        remove_from_plan,
        SendUpdateMetadata(),
    )


_FINISH: Final[Effects] = _finish(_replicas, RemoveFromPlan())
_FINISH_BEFORE_2_4: Final[Effects] = _finish(_recipients_of_the_end, RewritePlan())

# ---- tables --------------------------------------------------------------------------------------

_INVALID: Final = ErrorCode.INVALID_REPLICA_ASSIGNMENT
_NO_REASSIGNMENT: Final = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

REFUSALS: Final[Table] = (
    Row(
        "K455-22, K455-23",
        _invalid_list,
        (Refuse(_INVALID, message(_INVALID)),),
        until=_REFUSALS_EXPLAINED,
    ),
    Row("K455-23", _empty_list, (Refuse(_INVALID, texts.EMPTY),), since=_REFUSALS_EXPLAINED),
    Row(
        "K455-23",
        _repeated_broker,
        (Refuse(_INVALID, _repeated_text),),
        since=_REFUSALS_EXPLAINED,
    ),
    Row(
        "K455-23",
        _negative_broker,
        (Refuse(_INVALID, _negative_text),),
        since=_REFUSALS_EXPLAINED,
    ),
    Row("K455-23", _dead_addition, (Refuse(_INVALID, _dead_text),), since=_REFUSALS_EXPLAINED),
)
"""Refused requests. Unlike KRaft, this controller checks the list before it checks whether the
partition exists."""

ON_CANCEL: Final[Table] = (
    Row("K455-22", _idle, (Refuse(_NO_REASSIGNMENT, message(_NO_REASSIGNMENT)),)),
)
"""Refused cancellations. The error has a text, while KRaft sends none."""

_REMEMBER_PLAN: Final[Row[RuleContext, Transition]] = Row(
    "K455-60", always, (RememberTarget(), Commit()), until=_KIP_455
)

ON_SUBMIT: Final[Table] = (_REMEMBER_PLAN,)
"""Applied to each partition of a plan before any of them starts."""

ON_UPDATE: Final[Table] = (
    Row(
        "K455-01",
        always,
        (StartReassignment(), WriteTopicZnode(), Commit(), *_DROP),
        since=_KIP_455,
    ),
    _REMEMBER_PLAN,
)
"""U: a new target, which is the origin if a reassignment is cancelled. An unchanged target writes
nothing, and only removed replicas cause requests. Before 2.4 only memory changes."""

ON_PLAN: Final[Table] = (
    Row(
        "K455-60",
        _replicas_unchanged,
        (AdoptTarget(), Commit(), RewritePlan()),
        until=_KIP_455,
    ),
)
"""A planned partition that has these replicas in this order already is done. So is one to which a
former controller began to add replicas, if its plan adds them at the end."""

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
        (*_ANNOUNCE, SendLeaderAndIsr(_not_started, is_new=True)),
        since=_KIP_455,
        until=_NEW_AT_ONCE,
    ),
    Row("K455-42", _leader_to_be_had, _FINISH, since=_KIP_455),
    Row("K455-42", always, _finish_without_leader(RemoveFromPlan()), since=_KIP_455),
    Row(
        "K455-60",
        _incomplete,
        (
            UniteReplicas(),
            WriteTopicZnode(),
            Commit(),
            *_ANNOUNCE,
            SendFormerLeaderAndIsr(_not_started),
        ),
        until=_KIP_455,
    ),
    Row("K455-60", _done_with_a_leader, _FINISH_BEFORE_2_4, until=_KIP_455),
    Row("K455-60", _done, _finish_without_leader(RewritePlan()), until=_KIP_455),
)
"""A or B: applied after U, after a take-over, and when a broker of the target returns."""

ON_STEP: Final[Table] = (
    Row("K455-42", _complete, _FINISH, since=_KIP_455),
    Row("K455-60", _complete, _FINISH_BEFORE_2_4, until=_KIP_455),
)
"""B alone: applied when the ISR has changed. An ISR that completes a target has a leader."""

ON_ELECTION: Final[Table] = (Row("K455-42 K455-60", _complete, (), until=_ALTER_ISR),)
"""Whether an election that no reassignment requested is followed by ``ON_STEP``. Until 2.7 the
controller reacts to its own write of the state znode; since then only a change of the ISR by the
leader completes a reassignment (real 2.4.1, 2.6.3, 2.7.2, 2.8.2 and 3.9.2)."""

ON_REPLICA_START: Final[Table] = (
    Row(
        "K455-38",
        _dead_in_isr,
        (RemoveFromIsr(_dead), SendLeaderAndIsr(_replicas), SendUpdateMetadata()),
        since=_OFFLINE_AT_START,
    ),
)
"""Applied to each partition when a controller starts: offline replicas leave the ISR, and a leader
among them no longer leads (``ReplicaStateMachine.startup``)."""

ON_PARTITION_START: Final[Table] = (
    Row("K455-38", _leader_is_gone, (ElectFromIsr(), *_ANNOUNCE)),
    Row(
        "K455-38",
        _dead_in_isr,
        (KeepLiveInIsr(), WriteStateZnode(), Commit(), SendUpdateMetadata()),
        until=_OFFLINE_AT_START,
    ),
)
"""Applied to each partition next: a starting controller elects leaders before it looks at
reassignments (``PartitionStateMachine.startup``). Dead followers that no controller removes from
the ISR are removed by their leader, which raises no epoch."""

ON_LEADER: Final[Table] = (
    Row("K455-38", _isr_beyond_replicas, (ShrinkIsr(), SendUpdateMetadata()), since=_KAFKA_9672),
)
"""Applied after a raised epoch: the leader removes members of the ISR that are not replicas, since
they never caught up (``Partition.maybeShrinkIsr``). They exist only if a controller died between
two writes of U. Leaders of 2.4 to 2.8 keep them: their attempts to remove them fail."""

ON_CHANGE: Final[Table] = (
    Row(
        "K455-42",
        _leader_changes,
        (WriteStateZnode(), Commit(), SendLeaderAndIsr(_replicas), SendUpdateMetadata()),
    ),
    Row("K455-42", _dead_follower_leaves, _ANNOUNCE),
    Row("K455-42", always, (WriteStateZnode(), Commit(), SendUpdateMetadata())),
)
"""An ISR or a leader changed without a reassignment. A leader changes its ISR without raising its
epoch; the controller raises it when it removes a dead follower."""
