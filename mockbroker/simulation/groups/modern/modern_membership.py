"""What rules do to any group of a newer protocol: keep its members, their timers and its targets,
with the records of all that.

Decides nothing: the tables of each kind say when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Generic

from msgspec.structs import replace

from mockbroker.simulation.groups.modern.group_records import RecordWriter, StoredRecord
from mockbroker.simulation.groups.modern.modern_group import GroupT
from mockbroker.simulation.state.timers import Timers

__all__ = ["ModernMembership", "StaticMembership"]


class ModernMembership(RecordWriter, Generic[GroupT]):
    """``write`` appends records for a group; ``changed`` is called with a group after each change
    that a tester may wait for."""

    records: Any
    """Makes the records of this kind of groups."""

    def __init__(
        self,
        timers: Timers,
        write: Callable[[str, Iterable[StoredRecord]], None],
        changed: Callable[[GroupT], None],
    ) -> None:
        super().__init__(write)
        self.timers = timers
        self.changed = changed

    def flush(self, group: GroupT) -> None:
        """Write what changed, and tell it."""
        if self.write_noted(group.group_id):
            self.changed(group)

    # ---- timers ------------------------------------------------------------------------------

    def renew(self, group: GroupT, member: Any) -> None:
        """Let the session of a member begin anew."""
        raise NotImplementedError

    def restart(self, group: GroupT) -> None:
        """Start the timers of all members, as a new coordinator does."""
        group.stop()
        for member in group.members.values():
            self._start_timers(group, member)

    def _start_timers(self, group: GroupT, member: Any) -> None:
        self.renew(group, member)

    def fence_member(self, group: GroupT, member_id: str) -> None:
        """A timer of the member has run out."""
        member = group.members.get(member_id)
        if member is not None:
            self.expel(group, member)
            self.flush(group)

    def expel(self, group: GroupT, member: Any) -> None:
        """Fence a member."""
        raise NotImplementedError

    # ---- members and targets -----------------------------------------------------------------

    def put(self, group: GroupT, member: Any) -> None:
        """Add or replace a member, with the records of what changed."""
        former = group.members.get(member.member_id)
        group.put(member)
        if former is None or former.metadata != member.metadata:
            self.note(self.records.member(group.group_id, member))
        if former is not None and former.progress != member.progress:
            self.note(self.records.current(group.group_id, member))

    def bump(self, group: GroupT) -> None:
        """Raise the group's epoch: it needs another target."""
        group.epoch += 1
        self.note(self.records.epoch(group))

    def set_targets(
        self, group: GroupT, targets: Mapping[str, Any], unwritten: object = None
    ) -> None:
        """Take these targets, by member id, for those of the group's epoch. A first target that
        equals ``unwritten`` needs no record."""
        for member_id, target in targets.items():
            if group.target.get(member_id, unwritten) != target:
                self.note(self.records.target(group.group_id, member_id, target))
            group.target[member_id] = target
        group.target_epoch, group.target_ms = group.epoch, self.timers.now_ms
        self.note(self.records.target_epoch(group))

    def settle(self, group: GroupT) -> None:
        """An empty group needs no other target, and its next member gets one at once."""
        group.target_epoch, group.target_ms = group.epoch, 0
        self.note(self.records.target_epoch(group))


class StaticMembership(ModernMembership[GroupT]):
    """Members may have instance ids, and give up what others wait for within a time."""

    nothing: ClassVar[Any]
    """The target of a member that has none."""

    def time_revocation(self, group: GroupT, member: Any) -> None:
        """Let the time run in which the member has to give up what it must."""
        raise NotImplementedError

    def _start_timers(self, group: GroupT, member: Any) -> None:
        self.renew(group, member)
        self.time_revocation(group, member)

    def take_place(self, group: GroupT, former: Any, member_id: str) -> Any:
        """Let a static member go on under another id, with its target and what it holds."""
        target = group.target.get(former.member_id, self.nothing)
        member = replace(former, member_id=member_id, epoch=0, previous_epoch=0)
        self.note(*self.records.member_deletion(group.group_id, former.member_id))
        group.remove(former.member_id)
        group.target[member_id] = target
        group.put(member)
        self.note(
            self.records.member(group.group_id, member),
            self.records.target(group.group_id, member_id, target),
            self.records.current(group.group_id, member),
        )
        return member
