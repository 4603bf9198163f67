"""Effects that rows of several tables share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_group import Group
from mockbroker.simulation.groups.classic.classic_requests import Admission, Gate, JoinEvent
from mockbroker.simulation.groups.classic.rebalancing import GroupEvent, MemberEvent, Rebalancing
from mockbroker.simulation.releases.rows import Row, refuse, with_arguments

__all__ = [
    "IN_REBALANCE",
    "NEW_COORDINATOR",
    "GroupRow",
    "MemberRow",
    "complete_rebalance",
    "group_step",
    "member_step",
    "prepare_rebalance",
    "refuse_elsewhere",
    "refuse_without_id",
    "remove_member",
    "renew_session",
    "settle",
    "settle_without_pending",
]

GroupRow: TypeAlias = Row[GroupEvent, GroupEvent]
MemberRow: TypeAlias = Row[MemberEvent, MemberEvent]

NEW_COORDINATOR: Final = (4, 0)
"""The first release with the coordinator that is written in Java. Releases up to 3.9 run the
former one (``GroupCoordinator``, Scala) by default."""


@with_arguments
def refuse_without_id(event: JoinEvent, code: ErrorCode) -> None:
    """Answer with an error code and an empty member id: the client's own is not valid."""
    event.refuse_without_id(code)


def renew_session(event: MemberEvent) -> None:
    event.machine.renew(event.member)


def refuse_elsewhere(event: Admission | Gate) -> None:
    event.refuse(event.coordinator_error)


@with_arguments
def group_step(event: GroupEvent, step: Callable[[Rebalancing, Group], None]) -> None:
    """Take a step of the state machine with the event's group."""
    step(event.machine, event.group)


@with_arguments
def member_step(event: MemberEvent, step: Callable[[Rebalancing, Group, str], None]) -> None:
    """Take a step of the state machine with the event's member."""
    step(event.machine, event.group, event.member_id)


complete_rebalance: Final = group_step(Rebalancing.complete)
prepare_rebalance: Final = group_step(Rebalancing.prepare)
settle: Final = group_step(Rebalancing.settle)
settle_without_pending: Final = group_step(Rebalancing.settle_without_pending)
remove_member: Final = member_step(Rebalancing.remove)
IN_REBALANCE: Final = refuse(ErrorCode.REBALANCE_IN_PROGRESS)
