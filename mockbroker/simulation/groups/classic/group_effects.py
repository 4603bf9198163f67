"""Effects that rows of several tables share."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

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
from mockbroker.simulation.releases.rows import Do, Refuse, Release, Row

__all__ = [
    "COMPLETE",
    "IN_REBALANCE",
    "NEW_COORDINATOR",
    "PREPARE",
    "SETTLE",
    "GroupRow",
    "MemberRow",
    "RefuseWithoutId",
    "refuse_elsewhere",
    "remove_member",
    "renew_session",
]

GroupRow: TypeAlias = Row[GroupEvent, GroupEvent]
MemberRow: TypeAlias = Row[MemberEvent, MemberEvent]

NEW_COORDINATOR: Final[Release] = (4, 0)
"""The first release with the coordinator that is written in Java."""


class RefuseWithoutId(msgspec.Struct, frozen=True):
    """Answer with an error code and an empty member id: the client's own is not valid."""

    code: ErrorCode

    def perform(self, subject: JoinEvent, /) -> None:
        subject.refuse_without_id(self.code)


def remove_member(event: MemberEvent) -> None:
    event.machine.remove(event.group, event.member_id)


def renew_session(event: MemberEvent) -> None:
    event.machine.renew(event.member)


def refuse_elsewhere(event: Admission | Gate) -> None:
    event.refuse(event.coordinator_error)


COMPLETE: Final[Do[GroupEvent]] = Do(lambda event: event.machine.complete(event.group))
PREPARE: Final[Do[GroupEvent]] = Do(lambda event: event.machine.prepare(event.group))
SETTLE: Final[Do[GroupEvent]] = Do(lambda event: event.machine.settle(event.group))
IN_REBALANCE: Final = Refuse(ErrorCode.REBALANCE_IN_PROGRESS)
