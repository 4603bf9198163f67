"""Requests of the classic protocol, as the contexts of rows."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.groups.classic.classic_group import (
    NO_GENERATION,
    Group,
    JoinAnswer,
    JoinRequest,
    JoinResult,
    SyncAnswer,
    SyncRequest,
    SyncResult,
)
from mockbroker.simulation.groups.classic.rebalancing import GroupEvent, MemberEvent, Rebalancing
from mockbroker.simulation.releases.rows import Refusable, Row

__all__ = [
    "Admission",
    "CodeEvent",
    "CommitEvent",
    "DeleteEvent",
    "DescribeEvent",
    "Gate",
    "HeartbeatEvent",
    "JoinEvent",
    "LeaveEvent",
    "MissingGroup",
    "SyncEvent",
]


class Admission(msgspec.Struct):
    """A JoinGroup request before its group is checked; ``group`` is None if there is none."""

    machine: Rebalancing
    group: Group | None
    request: JoinRequest
    answer: JoinAnswer
    coordinator_error: ErrorCode = ErrorCode.NONE

    def refuse(self, code: ErrorCode) -> None:
        self.answer(JoinResult(code, self.request.member_id))


class Gate(msgspec.Struct):
    """Any other request of a member before its group is checked. ``coordinator_error`` says
    whether the broker coordinates the group; ``code`` is None unless the request is answered."""

    group_id: str
    exists: bool
    coordinator_error: ErrorCode
    code: ErrorCode | None = None

    def refuse(self, code: ErrorCode) -> None:
        self.code = code


class JoinEvent(MemberEvent, kw_only=True):
    """``former_leader`` is the leader before a static member was replaced."""

    request: JoinRequest
    answer: JoinAnswer
    new_member_id: Callable[[JoinRequest], str]
    on_updated: tuple[Row[JoinEvent, JoinEvent], ...]
    on_replaced: tuple[Row[JoinEvent, JoinEvent], ...]
    former_leader: str | None = None

    def refuse(self, code: ErrorCode) -> None:
        self.answer(JoinResult(code, self.request.member_id))

    def refuse_without_id(self, code: ErrorCode) -> None:
        self.answer(JoinResult(code, ""))


class SyncEvent(MemberEvent, kw_only=True):
    request: SyncRequest
    answer: SyncAnswer

    @property
    def generation(self) -> int:
        return self.request.generation

    def refuse(self, code: ErrorCode) -> None:
        self.answer(SyncResult(code))


class CodeEvent(Refusable, MemberEvent, kw_only=True):
    """A request whose answer is an error code."""

    generation: int = NO_GENERATION
    code: ErrorCode = ErrorCode.NONE


class HeartbeatEvent(CodeEvent, kw_only=True):
    """A heartbeat."""


class LeaveEvent(CodeEvent, kw_only=True):
    """A member that LeaveGroup names."""


class CommitEvent(CodeEvent, kw_only=True):
    """Offsets are to be stored for the group."""

    transactional: bool = False


class DeleteEvent(CodeEvent, kw_only=True):
    """DeleteGroups names the group."""

    delete: Callable[[Group], None] = lambda _group: None


class MissingGroup(Refusable, msgspec.Struct):
    """A commit names a group that does not exist. ``make`` makes one."""

    commit: GroupCommit
    make: Callable[[], object]
    code: ErrorCode = ErrorCode.NONE


class DescribeEvent(GroupEvent, kw_only=True):
    """DescribeGroups names the group: what it shows."""

    state: str
    shows_metadata: bool = False
    shows_assignments: bool = False
