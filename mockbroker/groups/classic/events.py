"""What requests do to a group: the contexts of the rows, and the answers they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kproto.error_codes import ErrorCode
from mockbroker.groups.classic.model import (
    NO_GENERATION,
    Group,
    JoinAnswer,
    JoinRequest,
    JoinResult,
    SyncAnswer,
    SyncRequest,
    SyncResult,
)
from mockbroker.groups.classic.rebalancing import GroupEvent, MemberEvent, Rebalancing
from mockbroker.rows import Row

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


@dataclass(slots=True)
class Admission:
    """A JoinGroup request before its group is looked at; ``group`` is None if there is none."""

    machine: Rebalancing
    group: Group | None
    request: JoinRequest
    answer: JoinAnswer
    coordinator_error: ErrorCode = ErrorCode.NONE

    def refuse(self, code: ErrorCode) -> None:
        self.answer(JoinResult(code, self.request.member_id))


@dataclass(slots=True)
class Gate:
    """Any other request of a member before its group is looked at. ``coordinator_error`` says
    whether the broker coordinates the group; ``code`` is None unless the request is answered."""

    group_id: str
    exists: bool
    coordinator_error: ErrorCode
    code: ErrorCode | None = None

    def refuse(self, code: ErrorCode) -> None:
        self.code = code


@dataclass(slots=True, kw_only=True)
class JoinEvent(MemberEvent):
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


@dataclass(slots=True, kw_only=True)
class SyncEvent(MemberEvent):
    request: SyncRequest
    answer: SyncAnswer

    @property
    def generation(self) -> int:
        return self.request.generation

    def refuse(self, code: ErrorCode) -> None:
        self.answer(SyncResult(code))


@dataclass(slots=True, kw_only=True)
class CodeEvent(MemberEvent):
    """A request whose answer is an error code."""

    generation: int = NO_GENERATION
    code: ErrorCode = ErrorCode.NONE

    def refuse(self, code: ErrorCode) -> None:
        self.code = code


@dataclass(slots=True, kw_only=True)
class HeartbeatEvent(CodeEvent):
    """A heartbeat."""


@dataclass(slots=True, kw_only=True)
class LeaveEvent(CodeEvent):
    """A member that LeaveGroup names."""


@dataclass(slots=True, kw_only=True)
class CommitEvent(CodeEvent):
    """Offsets are to be stored for the group."""

    transactional: bool = False


@dataclass(slots=True, kw_only=True)
class DeleteEvent(CodeEvent):
    """DeleteGroups names the group."""

    delete: Callable[[Group], None] = field(default=lambda _group: None)


@dataclass(slots=True)
class MissingGroup:
    """A request names a group that does not exist. ``make`` makes one. ``generation`` and
    ``version`` are those of OffsetCommit, or of TxnOffsetCommit if ``transactional``."""

    group_id: str
    generation: int = NO_GENERATION
    version: int = 0
    make: Callable[[], object] = field(default=lambda: None)
    transactional: bool = False
    code: ErrorCode = ErrorCode.NONE

    def refuse(self, code: ErrorCode) -> None:
        self.code = code


@dataclass(slots=True, kw_only=True)
class DescribeEvent(GroupEvent):
    """DescribeGroups names the group: what it shows."""

    state: str
    shows_metadata: bool = False
    shows_assignments: bool = False
