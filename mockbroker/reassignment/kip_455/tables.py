"""KIP-455 before it was built, in the page's two revisions, as tables. Nothing here acts.

R is the replicas, I the ISR, T the target. Both revisions let R grow by each broker of T that
joins I, one by one. The newer one keeps T until the end; the older one takes a broker out of T as
soon as it is in, and has finished when T is empty. A row's order of effects is part of the page:
first the replicas in ``/brokers/topics/T``, then T in the state znode together with the leader
epoch, then LeaderAndIsr with the full ISR, which the leader itself shrinks.

Where the page is silent, what controllers of that time did: a LeaderAndIsr that is to have effect
raises the leader epoch first, and brokers that stop being replicas are told to delete their data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mockbroker.reassignment.effects import (
    Commit,
    ElectAmongReplicas,
    RaiseLeaderEpoch,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    SetReplicas,
    SetTarget,
    ShrinkIsr,
    Warn,
    WriteStateZnode,
    WriteTopicZnode,
)
from mockbroker.reassignment.transitions import Effects, RuleContext, Table
from mockbroker.rows import Row, always

__all__ = ["NEW", "OLD", "Draft"]

Brokers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """One revision: what happens on a request for new replicas, on a cancellation, to a partition
    whose ISR or leader has changed, and to one that a new controller finds under reassignment.

    ``target_is_whole``: the T a new controller finds is all that was asked for.
    """

    name: str
    on_alter: Table
    on_cancel: Table
    on_step: Table
    on_take_over: Table
    target_is_whole: bool


# ---- conditions and choices ----------------------------------------------------------------------


def _idle(context: RuleContext) -> bool:
    return not context.start.reassigning


def _reassigning(context: RuleContext) -> bool:
    return context.start.reassigning


def _leader_missed_the_end(context: RuleContext) -> bool:
    """Of the end of a reassignment, by a controller that died after it was on record."""
    return not set(context.start.isr) <= set(context.start.replicas)


def _target_unchanged(context: RuleContext) -> bool:
    return context.start.reassigning and context.requested_replicas in (
        context.target,
        context.whole_target,
    )


def _permutation(context: RuleContext) -> bool:
    same = set(context.requested_replicas) == set(context.start.replicas)
    return same and _can_lead(context, context.requested_replicas)


def _joined(context: RuleContext) -> Brokers:
    """T and I, in T's order."""
    return tuple(each for each in context.target if each in context.start.isr)


def _newer_may_grow(context: RuleContext) -> bool:
    return not set(_joined(context)) <= set(context.start.replicas)


def _newer_is_done(context: RuleContext) -> bool:
    target = context.target
    return bool(target) and set(target) <= set(context.start.isr) and _can_lead(context, target)


def _older_may_shrink(context: RuleContext) -> bool:
    return bool(_joined(context))


def _older_is_done(context: RuleContext) -> bool:
    whole = context.whole_target
    return _emptied(context) and whole is not None and _can_lead(context, whole)


def _older_forgot(context: RuleContext) -> bool:
    return _emptied(context) and context.whole_target is None


def _emptied(context: RuleContext) -> bool:
    return context.start.reassigning and not context.target


def _can_lead(context: RuleContext, brokers: Brokers) -> bool:
    return any(each in context.start.isr and context.is_live(each) for each in brokers)


def _requested(context: RuleContext) -> Brokers:
    return context.requested_replicas


def _whole_target(context: RuleContext) -> Brokers:
    return context.whole_target or ()


def _one_more(context: RuleContext) -> Brokers:
    """R and the first of T that is in I but not in R."""
    replicas = context.start.replicas
    return replicas + tuple(each for each in _joined(context) if each not in replicas)[:1]


def _and_first_joined(context: RuleContext) -> Brokers:
    """R and the first of T that is in I, which may be in R already."""
    return tuple(dict.fromkeys(context.start.replicas + _joined(context)[:1]))


def _without_first_joined(context: RuleContext) -> Brokers:
    return tuple(each for each in context.target if each not in _joined(context)[:1])


def _and_all_joined(context: RuleContext) -> Brokers:
    return tuple(dict.fromkeys(context.start.replicas + _joined(context)))


def _hosts(context: RuleContext) -> Brokers:
    """R and T."""
    return context.now.hosts


def _leader(context: RuleContext) -> Brokers:
    return (context.now.leader,)


def _followers(context: RuleContext) -> Brokers:
    return tuple(each for each in context.now.replicas if each != context.now.leader)


def _not_yet_in(context: RuleContext) -> Brokers:
    """Of the old T, what is neither in I nor in R nor asked for now: a copy just begun. A replica
    that is in R and lags is none of those, and keeps its data."""
    keep = {*context.start.isr, *context.start.replicas, *context.requested_replicas}
    return tuple(each for each in context.target if each not in keep)


def _dropped(context: RuleContext) -> Brokers:
    """What was a replica when the row began, and is none now."""
    return tuple(each for each in context.start.replicas if each not in context.now.replicas)


# ---- what both revisions share -------------------------------------------------------------------

_SET_TARGET: Final[Effects] = (SetTarget(_requested, _requested),)

_CONFIRM: Final[Effects] = (
    RaiseLeaderEpoch(),
    WriteStateZnode(),
    Commit(),
    SendLeaderAndIsr(_leader),
    SendLeaderAndIsr(_followers),
)

_FINISH: Final[Effects] = (
    SetReplicas(_whole_target),
    WriteTopicZnode(),
    SetTarget(None),
    ElectAmongReplicas(),
    *_CONFIRM,
    ShrinkIsr(),
    SendStopReplica(_dropped),
    SendUpdateMetadata(),
)

_ON_ALTER: Final[Table] = (
    Row("K455-51", _target_unchanged, ()),
    Row(
        "K455-42",
        _permutation,
        (
            *_SET_TARGET,
            WriteStateZnode(),
            Commit(),
            SendStopReplica(_not_yet_in),
            SetReplicas(_whole_target),
            WriteTopicZnode(),
            SetTarget(None),
            *_CONFIRM,
            SendUpdateMetadata(),
        ),
    ),
    Row(
        "K455-30",
        always,
        (
            *_SET_TARGET,
            RaiseLeaderEpoch(),
            WriteStateZnode(),
            Commit(),
            SendLeaderAndIsr(_hosts),
            SendStopReplica(_not_yet_in),
        ),
    ),
)

_ON_CANCEL: Final[Table] = (
    Row("A-41", _idle, ()),
    Row(
        "K455-43",
        always,
        (
            SetReplicas(_and_all_joined),
            WriteTopicZnode(),
            SetTarget(None),
            RaiseLeaderEpoch(),
            WriteStateZnode(),
            Commit(),
            SendLeaderAndIsr(_hosts),
            SendStopReplica(_not_yet_in),
            SendUpdateMetadata(),
        ),
    ),
)

_ON_TAKE_OVER: Final[Table] = (
    Row(
        "K455-38",
        _reassigning,
        (RaiseLeaderEpoch(), WriteStateZnode(), Commit(), SendLeaderAndIsr(_hosts)),
    ),
    Row(
        "K455-36",
        _leader_missed_the_end,
        (
            ElectAmongReplicas(),
            RaiseLeaderEpoch(),
            WriteStateZnode(),
            Commit(),
            SendLeaderAndIsr(_hosts),
            ShrinkIsr(),
            SendUpdateMetadata(),
        ),
    ),
)

# ---- the newer revision --------------------------------------------------------------------------

NEW: Final = Draft(
    name="kip-455-new",
    on_alter=_ON_ALTER,
    on_cancel=_ON_CANCEL,
    on_step=(
        Row(
            "K455-35",
            _newer_may_grow,
            (SetReplicas(_one_more), WriteTopicZnode(), Commit(), SendUpdateMetadata()),
        ),
        Row("K455-33", _newer_is_done, _FINISH),
    ),
    on_take_over=_ON_TAKE_OVER,
    target_is_whole=True,
)

# ---- the older revision --------------------------------------------------------------------------

OLD: Final = Draft(
    name="kip-455-old",
    on_alter=_ON_ALTER,
    on_cancel=_ON_CANCEL,
    on_step=(
        Row(
            "K455-31",
            _older_may_shrink,
            (
                SetReplicas(_and_first_joined),
                WriteTopicZnode(),
                SetTarget(_without_first_joined),
                WriteStateZnode(),
                Commit(),
                SendUpdateMetadata(),
            ),
        ),
        Row("K455-31", _older_is_done, _FINISH),
        Row(
            "A-12",
            _older_forgot,
            (
                SetTarget(None),
                RaiseLeaderEpoch(),
                WriteStateZnode(),
                Commit(),
                Warn(
                    "{tp}: target unknown, so every replica stays: a shrunken targetReplicas was "
                    "found at take-over, and which replicas were to go is lost"
                ),
                SendLeaderAndIsr(_hosts),
                SendUpdateMetadata(),
            ),
        ),
    ),
    on_take_over=_ON_TAKE_OVER,
    target_is_whole=False,
)
