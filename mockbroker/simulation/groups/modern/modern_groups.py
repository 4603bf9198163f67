"""The groups of one newer protocol by id: heartbeats, administration, moves of coordinators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.modern.heartbeats import HeartbeatResult
from mockbroker.simulation.groups.modern.modern_group import GroupT
from mockbroker.simulation.groups.modern.modern_membership import ModernMembership
from mockbroker.simulation.releases.rows import apply_first

__all__ = ["ModernGroups", "ResultT"]


ResultT = TypeVar("ResultT", bound=HeartbeatResult)


class ModernGroups(Generic[GroupT, ResultT]):
    """``on_changed`` are called with the id of a group that changed, ``on_deleted`` with the id of
    one that is gone."""

    def __init__(
        self,
        membership: ModernMembership[GroupT],
        on_changed: list[Callable[[str], None]],
        on_deleted: list[Callable[[str], None]],
    ) -> None:
        self.membership = membership
        self.on_changed = on_changed
        self.on_deleted = on_deleted
        self._groups: dict[str, GroupT] = {}

    @property
    def groups(self) -> Mapping[str, GroupT]:
        """All groups by id, oldest first."""
        return MappingProxyType(self._groups)

    def group(self, group_id: str) -> GroupT | None:
        """Return a group; None if there is none of this id."""
        return self._groups.get(group_id)

    # ---- heartbeats --------------------------------------------------------------------------

    def heartbeat(self, request: Any, coordinator_error: ErrorCode = ErrorCode.NONE) -> ResultT:
        """A member joins, lives, or leaves. ``coordinator_error`` says whether the broker
        coordinates the group."""
        event, rules = self._event(request, coordinator_error), self.membership.rules
        for rows in rules.leaving if request.leaves else rules.staying:
            apply_first(rows, event, event)
            if event.result is not None:
                refusal: ResultT = event.result
                return refusal
        if not request.leaves:
            return self._beat(event)
        result = self._leave(event)
        self.membership.flush(event.known)
        return result

    def _event(self, request: Any, coordinator_error: ErrorCode) -> Any:
        """Return what the rows decide on."""
        raise NotImplementedError

    def _beat(self, event: Any) -> ResultT:
        """Take over the fields of a heartbeat of a member that stays, and answer it."""
        raise NotImplementedError

    def _leave(self, event: Any) -> ResultT:
        """Let a member go."""
        raise NotImplementedError

    # ---- administration ----------------------------------------------------------------------

    def delete(self, group_id: str) -> ErrorCode:
        """DeleteGroups, for a group that exists: an empty group goes, with what it stored."""
        group = self._groups[group_id]
        if group.members:
            return ErrorCode.NON_EMPTY_GROUP
        self._remove(group)
        # The deletions of its offsets come first in the log.
        for call in self.on_deleted:
            call(group_id)
        self._write_deletion(group)
        return ErrorCode.NONE

    def discard(self, group: GroupT) -> None:
        """Delete a group without its offsets."""
        self._remove(group)
        self._write_deletion(group)

    def _remove(self, group: GroupT) -> None:
        group.stop()
        group.dead = True
        del self._groups[group.group_id]

    def _write_deletion(self, group: GroupT) -> None:
        self.membership.note(*self.membership.records.deletion(group))
        self.membership.flush(group)

    # ---- moves of coordinators -------------------------------------------------------------

    def unload(self, group_ids: Sequence[str]) -> None:
        """The coordinator of these groups lost its partition."""
        for group_id in group_ids:
            if group_id in self._groups:
                self._groups[group_id].stop()

    def load(self, group_ids: Sequence[str]) -> None:
        """Another coordinator reads these groups from the log, which has all of their state. The
        sessions of members begin anew."""
        for group_id in group_ids:
            if group_id in self._groups:
                self.membership.restart(self._groups[group_id])

    def _report(self, group: GroupT) -> None:
        for call in self.on_changed:
            call(group.group_id)
