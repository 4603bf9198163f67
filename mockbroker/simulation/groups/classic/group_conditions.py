"""Conditions that rows of several tables share."""

from __future__ import annotations

from collections.abc import Callable

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_group import GroupState
from mockbroker.simulation.groups.classic.classic_requests import (
    Admission,
    CommitEvent,
    Gate,
    HeartbeatEvent,
    SyncEvent,
)
from mockbroker.simulation.groups.classic.rebalancing import GroupEvent, MemberEvent

__all__ = [
    "all_joined",
    "can_rebalance",
    "elsewhere",
    "empty_id",
    "fenced",
    "first_rebalance",
    "first_rebalance_is_delayed",
    "has_generation",
    "in_first_generation",
    "is_completing",
    "is_dead",
    "is_empty",
    "is_preparing",
    "is_stable",
    "leads",
    "missing",
    "other_generation",
    "pending",
    "preparing_and_all_joined",
    "unknown_instance",
    "unknown_member",
]

_EMPTY, _PREPARING = GroupState.EMPTY, GroupState.PREPARING
_COMPLETING, _STABLE, _DEAD = GroupState.COMPLETING, GroupState.STABLE, GroupState.DEAD


def _in(*states: GroupState) -> Callable[[GroupEvent], bool]:
    return lambda event: event.group.state in states


is_empty = _in(_EMPTY)
is_preparing = _in(_PREPARING)
is_completing = _in(_COMPLETING)
is_stable = _in(_STABLE)
is_dead = _in(_DEAD)
has_generation = _in(_COMPLETING, _STABLE)
can_rebalance = _in(_EMPTY, _COMPLETING, _STABLE)


def all_joined(event: GroupEvent) -> bool:
    return event.group.all_joined


def preparing_and_all_joined(event: GroupEvent) -> bool:
    return is_preparing(event) and event.group.all_joined


def first_rebalance(event: GroupEvent) -> bool:
    return event.group.in_initial_delay


def first_rebalance_is_delayed(event: GroupEvent) -> bool:
    return event.group.in_initial_delay and event.machine.settings.initial_rebalance_delay_ms > 0


def in_first_generation(event: GroupEvent) -> bool:
    return is_preparing(event) and event.group.generation == 0


def unknown_member(event: MemberEvent) -> bool:
    return event.member_id not in event.group.members


def unknown_instance(event: MemberEvent) -> bool:
    return event.instance_id is not None and event.instance_id not in event.group.instances


def fenced(event: MemberEvent) -> bool:
    """The instance id belongs to another member id."""
    known = None if event.instance_id is None else event.group.instances.get(event.instance_id)
    return known is not None and known != event.member_id


def pending(event: MemberEvent) -> bool:
    return event.member_id in event.group.pending


def leads(event: MemberEvent) -> bool:
    return event.member_id == event.group.leader


def other_generation(event: SyncEvent | HeartbeatEvent | CommitEvent) -> bool:
    return event.generation != event.group.generation


def elsewhere(event: Admission | Gate) -> bool:
    """The broker does not coordinate the group, or not yet."""
    return event.coordinator_error is not ErrorCode.NONE


def empty_id(event: Gate) -> bool:
    return event.group_id == ""


def missing(event: Gate) -> bool:
    return not event.exists
