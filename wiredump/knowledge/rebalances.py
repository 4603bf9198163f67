"""One rebalance of a group, and its row."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from kproto import error_codes
from wiredump.knowledge.excerpts import Excerpt
from wiredump.rows.exchanges import Row

__all__ = ["Protocol", "Rebalance"]

Protocol: TypeAlias = Literal["classic", "consumer", "share", "streams"]
"""How the group's members agree: by JoinGroup and SyncGroup, or by a heartbeat of KIP-848, KIP-932
or KIP-1071."""

_MEMBER_ID_REQUIRED = 79


class Rebalance(msgspec.Struct):
    """``first`` is the request that began it. ``generation`` is None until a response has it.

    ``waiting`` are the members that have not got, or not confirmed, their assignment yet. ``size``
    is the number of members that the leader was given. ``issued`` are ids that the coordinator gave
    to new members; ``gone`` are members that left. ``started``: members are known to rejoin, or to
    try.
    """

    first: Excerpt
    generation: int | None = None
    assignor: str | None = None
    leader: str | None = None
    size: int = 0
    formed_ns: int | None = None
    ended_ns: int | None = None
    started: bool = False
    unanswered: bool = False
    members: set[str] = set()
    joined: set[str] = set()
    issued: set[str] = set()
    waiting: set[str] = set()
    gone: set[str] = set()
    reasons: set[str] = set()
    errors: set[str] = set()
    client_ids: set[str] = set()

    @property
    def weight(self) -> int:
        """About how many strings it keeps."""
        return 10 + sum(
            map(len, (self.members, self.joined, self.issued, self.waiting, self.gone,
                      self.reasons, self.errors, self.client_ids))
        )  # fmt: skip

    def add(self, excerpt: Excerpt) -> None:
        """Note whose request belongs to it."""
        if excerpt.client_id is not None:
            self.client_ids.add(excerpt.client_id)

    def because(self, reason: str | None) -> None:
        """Note a member's reason, if it has one."""
        if reason:
            self.reasons.add(reason)

    def failed(self, code: int) -> None:
        """Note an error. Every new member of a classic group gets MEMBER_ID_REQUIRED first."""
        if code != _MEMBER_ID_REQUIRED:
            self.errors.add(error_codes.name(code))

    def is_over(self, time_ns: int) -> bool:
        """Whether all members had their assignment by then."""
        return not self.waiting and self.ended_ns is not None and self.ended_ns < time_ns

    def until(self, time_ns: int) -> None:
        """It was going on at that time."""
        self.ended_ns = time_ns if self.ended_ns is None else max(self.ended_ns, time_ns)

    def row(self, coordinator: str, group_id: str, protocol: Protocol, superseded: bool) -> Row:
        """Return the row. ``superseded``: another generation followed."""
        began, ended = self.first.requested_ns, self.ended_ns
        lasted = None if ended is None or ended < began else ended - began
        return "groups", (
            coordinator, group_id, protocol, self.generation, self._outcome(superseded),
            self.assignor, self.leader, max(self.size, len(self.members)), len(self.joined),
            len(self.gone), sorted(self.reasons), sorted(self.errors), sorted(self.client_ids),
            began, ended, lasted, self.first.connection, self.first.request_offset,
        )  # fmt: skip

    def _outcome(self, superseded: bool) -> str:
        if self.generation is None:
            return "failed" if self.errors and not self.unanswered else "in progress"
        if not self.waiting:
            return "completed"
        return "superseded" if superseded else "in progress"
