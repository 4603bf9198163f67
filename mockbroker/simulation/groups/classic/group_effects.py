"""Effects that rows of several tables share."""

from __future__ import annotations

from typing import Final, TypeAlias

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_requests import (
    Admission,
    Gate,
    JoinEvent,
)
from mockbroker.simulation.groups.classic.rebalancing import (
    GroupEvent,
    MemberEvent,
)
from mockbroker.simulation.releases.rows import Row, refuse, with_arguments

__all__ = [
    "IN_REBALANCE",
    "NEW_COORDINATOR",
    "GroupRow",
    "MemberRow",
    "complete_rebalance",
    "prepare_rebalance",
    "refuse_elsewhere",
    "refuse_without_id",
    "remove_member",
    "renew_session",
    "settle",
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


def remove_member(event: MemberEvent) -> None:
    event.machine.remove(event.group, event.member_id)


def renew_session(event: MemberEvent) -> None:
    event.machine.renew(event.member)


def refuse_elsewhere(event: Admission | Gate) -> None:
    event.refuse(event.coordinator_error)


def complete_rebalance(event: GroupEvent) -> None:
    event.machine.complete(event.group)


def prepare_rebalance(event: GroupEvent) -> None:
    event.machine.prepare(event.group)


def settle(event: GroupEvent) -> None:
    event.machine.settle(event.group)


IN_REBALANCE: Final = refuse(ErrorCode.REBALANCE_IN_PROGRESS)
