"""The rules of KIP-455's two drafts, as tables of rows.

R is the replicas, I the ISR, T the target. In both drafts R grows by one broker of T at a time as
these join I. The newer draft keeps T until the end. The older one removes a broker from T as soon
as it has joined, and is done when T is empty. The order of a row's effects is the page's: first R
in ``/brokers/topics/T``, then T in the state znode together with the leader epoch, then
LeaderAndIsr with the full ISR, which the leader shrinks.

Where the page is silent, the rules follow the controllers of that time: a LeaderAndIsr that must
take effect raises the leader epoch first, and brokers that stop being replicas delete their data.
"""

from __future__ import annotations

from typing import Final

import msgspec

from mockbroker.simulation.reassignment.transitions import (
    Effects,
    RuleContext,
    Table,
    commit,
    dropped,
    elect_among_replicas,
    idle,
    raise_leader_epoch,
    requested,
    send_leader_and_isr,
    send_stop_replica,
    send_update_metadata,
    set_replicas,
    set_target,
    shrink_isr,
    warn,
    write_state_znode,
    write_topic_znode,
)
from mockbroker.simulation.releases.rows import Row, always

__all__ = ["NEW", "OLD", "Draft"]

Brokers = tuple[int, ...]


class Draft(msgspec.Struct, frozen=True):
    """One draft. The tables apply to a request for new replicas, to a cancellation, to a partition
    whose ISR or leader has changed, and to one that a new controller finds.

    ``target_is_whole``: the T that a new controller finds is the requested target.
    """

    name: str
    on_alter: Table
    on_cancel: Table
    on_step: Table
    on_take_over: Table
    target_is_whole: bool


# ---- conditions and choices ----------------------------------------------------------------------


def _leader_missed_the_end(context: RuleContext) -> bool:
    """A controller died after it recorded the end of a reassignment and before it sent the leader
    the new state."""
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
    """T and I, in the order of T."""
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
    return any(broker in context.start.isr and context.is_online(broker) for broker in brokers)


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


def _followers(context: RuleContext) -> Brokers:
    return tuple(replica for replica in context.now.replicas if replica != context.now.leader)


def _not_yet_in(context: RuleContext) -> Brokers:
    """The brokers of the old T that have only begun to copy: they are not in I, R or the request. A
    replica in R that lags is none of them and keeps its data."""
    keep = {*context.start.isr, *context.start.replicas, *context.requested_replicas}
    return tuple(each for each in context.target if each not in keep)


# ---- what both revisions share -------------------------------------------------------------------

_SET_TARGET: Final[Effects] = (set_target(requested, requested),)

_CONFIRM: Final[Effects] = (
    raise_leader_epoch,
    write_state_znode,
    commit,
    send_leader_and_isr(lambda context: (context.now.leader,)),
    send_leader_and_isr(_followers),
)

_FINISH: Final[Effects] = (
    set_replicas(_whole_target),
    write_topic_znode,
    set_target(None),
    elect_among_replicas,
    *_CONFIRM,
    shrink_isr,
    send_stop_replica(dropped),
    send_update_metadata(),
)

_ON_ALTER: Final[Table] = (
    Row("K455-51", _target_unchanged, ()),
    Row(
        "K455-42",
        _permutation,
        (
            *_SET_TARGET,
            write_state_znode,
            commit,
            send_stop_replica(_not_yet_in),
            set_replicas(_whole_target),
            write_topic_znode,
            set_target(None),
            *_CONFIRM,
            send_update_metadata(),
        ),
    ),
    Row(
        "K455-30",
        always,
        (
            *_SET_TARGET,
            raise_leader_epoch,
            write_state_znode,
            commit,
            send_leader_and_isr(_hosts),
            send_stop_replica(_not_yet_in),
        ),
    ),
)

_ON_CANCEL: Final[Table] = (
    Row("A-41", idle, ()),
    Row(
        "K455-43",
        always,
        (
            set_replicas(_and_all_joined),
            write_topic_znode,
            set_target(None),
            raise_leader_epoch,
            write_state_znode,
            commit,
            send_leader_and_isr(_hosts),
            send_stop_replica(_not_yet_in),
            send_update_metadata(),
        ),
    ),
)

_ON_TAKE_OVER: Final[Table] = (
    Row(
        "K455-38",
        lambda context: context.start.reassigning,
        (raise_leader_epoch, write_state_znode, commit, send_leader_and_isr(_hosts)),
    ),
    Row(
        "K455-36",
        _leader_missed_the_end,
        (
            elect_among_replicas,
            raise_leader_epoch,
            write_state_znode,
            commit,
            send_leader_and_isr(_hosts),
            shrink_isr,
            send_update_metadata(),
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
            (set_replicas(_one_more), write_topic_znode, commit, send_update_metadata()),
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
                set_replicas(_and_first_joined),
                write_topic_znode,
                set_target(_without_first_joined),
                write_state_znode,
                commit,
                send_update_metadata(),
            ),
        ),
        Row("K455-31", _older_is_done, _FINISH),
        Row(
            "A-12",
            _older_forgot,
            (
                set_target(None),
                raise_leader_epoch,
                write_state_znode,
                commit,
                warn(
                    "{tp}: target unknown, so every replica stays: a shrunken targetReplicas was "
                    "found at take-over, and which replicas were to go is lost"
                ),
                send_leader_and_isr(_hosts),
                send_update_metadata(),
            ),
        ),
    ),
    on_take_over=_ON_TAKE_OVER,
    target_is_whole=False,
)
