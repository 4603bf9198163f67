"""The state machine of the newer protocols' groups: members, their timers, targets, and the records
of all that.

The rows of each kind decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.modern.group_records import (
    GroupRecords,
    RecordWriter,
    WriteRecords,
)
from mockbroker.simulation.groups.modern.group_times import GroupTimes
from mockbroker.simulation.groups.modern.group_topics import GroupTopics
from mockbroker.simulation.groups.modern.heartbeats import LEAVING_FOR_A_WHILE
from mockbroker.simulation.groups.modern.modern_group import (
    GroupT,
    MemberClocks,
    MemberState,
    StaticGroup,
)
from mockbroker.simulation.groups.modern.target_rules import MembersGone, TargetEvent
from mockbroker.simulation.groups.sessions import Session
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rules_of_release
from mockbroker.simulation.state.timers import Timer, Timers

__all__ = ["GroupDependencies", "ModernMembership", "StaticGroupT", "StaticMembership"]

StaticGroupT = TypeVar("StaticGroupT", bound=StaticGroup[Any, Any, Any])


class GroupDependencies(msgspec.Struct, frozen=True, eq=False):
    """The parts of a cluster that groups of every newer protocol use. ``is_taken`` says whether a
    group of any kind has an id, and ``write`` appends records for a group. ``on_changed`` are
    called with the id of a group that changed, ``on_deleted`` with the id of one that is gone."""

    timers: Timers
    release: Release
    topics: GroupTopics
    is_taken: Callable[[str], bool]
    write: WriteRecords
    on_changed: list[Callable[[str], None]]
    on_deleted: list[Callable[[str], None]]


class ModernMembership(RecordWriter, Generic[GroupT]):
    """``rules`` is the class of the rows of one kind of groups, ``records`` makes its records, and
    ``times`` returns the times of a group."""

    def __init__(
        self,
        shared: GroupDependencies,
        rules: Any,
        records: GroupRecords[GroupT],
        times: Callable[[str], GroupTimes],
    ) -> None:
        super().__init__(shared.write)
        self.timers = shared.timers
        self.rules: Any = rules
        self._all_rules = rules
        self.records: Any = records
        self.topics = shared.topics
        self.times = times
        self._on_changed = shared.on_changed
        shared.release.follow(self._use_release)

    def _use_release(self, release: Release) -> None:
        self.rules = rules_of_release(self._all_rules, release)

    def changed(self, group: GroupT) -> None:
        """Report a change that a tester may wait for."""
        for call in self._on_changed:
            call(group.group_id)

    def flush(self, group: GroupT) -> None:
        """Write what was noted, and report the change."""
        if self.write_noted(group.group_id):
            self.changed(group)

    # ---- timers ------------------------------------------------------------------------------

    def session(self, group: GroupT, member_id: str) -> Session:
        """A session at whose end the member is fenced."""
        fence = partial(self.fence_member, group, member_id)
        return Session(self.timers, fence, f"group {group.group_id}: session of {member_id}")

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
            self.gone(group, [member])
            self.flush(group)

    # ---- members -----------------------------------------------------------------------------

    def put(self, group: GroupT, member: Any) -> None:
        """Add or replace a member, with the records of what changed."""
        former = group.members.get(member.member_id)
        group.put(member)
        if former is None or former.metadata != member.metadata:
            self.note(self.records.member(group.group_id, member))
        if former is not None and former.progress != member.progress:
            self.note(self.records.current(group.group_id, member))

    def gone(self, group: GroupT, members: Sequence[Any]) -> ErrorCode:
        """Members leave the group or are fenced, unless there is an error."""
        event = self._members_gone(group, members)
        apply_first(self.rules.gone, event, event)
        return event.code

    def _members_gone(self, group: GroupT, members: Sequence[Any]) -> MembersGone:
        return MembersGone(group, members, self.remove, self.settle)

    def remove(self, group: GroupT, members: Sequence[Any]) -> None:
        """Forget members; the others need another target."""
        for member in members:
            self.note(*self.records.member_deletion(group.group_id, member.member_id))
            group.remove(member.member_id)
        self._removed(group)
        self.bump(group)

    def _removed(self, group: GroupT) -> None:
        """Look at the topics of a group that has lost members."""

    # ---- epochs and targets ------------------------------------------------------------------

    def bump(self, group: GroupT) -> None:
        """Raise the group's epoch: it needs another target."""
        group.epoch += 1
        self.note(self.records.epoch(group))

    def target_event(self, group: GroupT) -> TargetEvent:
        """Decide whether it is time for a target of the group's epoch."""
        interval_ms = self.times(group.group_id).assignment_interval_ms
        event = TargetEvent(group, self.timers.now_ms, interval_ms)
        apply_first(self.rules.target, event, event)
        return event

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


class StaticMembership(ModernMembership[StaticGroupT]):
    """Members may have instance ids, and give up what others wait for within a time."""

    nothing: ClassVar[Any]
    """The target of a member that has none."""

    # ---- timers ------------------------------------------------------------------------------

    def clocks(self, group: StaticGroupT, member_id: str) -> Any:
        """The timers of a member."""
        clocks = group.clocks.get(member_id)
        if clocks is None:
            fence = partial(self.fence_member, group, member_id)

            def timer(name: str) -> Timer:
                return self.timers.timer(fence, f"group {group.group_id}: {name} of {member_id}")

            clocks = group.clocks[member_id] = self._new_clocks(
                self.session(group, member_id), timer
            )
        return clocks

    def _new_clocks(self, session: Session, timer: Callable[[str], Timer]) -> MemberClocks:
        return MemberClocks(session, timer("revocation"))

    def renew(self, group: StaticGroupT, member: Any) -> None:
        session_ms = self.times(group.group_id).session_ms
        self.clocks(group, member.member_id).session.renew(session_ms)

    def time_revocation(self, group: StaticGroupT, member: Any) -> None:
        """Let the time run in which the member has to give up what it must."""
        revokes = member.state is MemberState.UNREVOKED and not group.held
        due_ms = self.timers.now_ms + member.rebalance_timeout_ms
        clocks = self.clocks(group, member.member_id)
        clocks.revocation.set(due_ms if revokes and not member.is_classic else None)

    def _start_timers(self, group: StaticGroupT, member: Any) -> None:
        self.renew(group, member)
        self.time_revocation(group, member)

    # ---- members -----------------------------------------------------------------------------

    def take_place(self, group: StaticGroupT, former: Any, member_id: str) -> Any:
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

    def leave_for_a_while(self, group: StaticGroupT, member: Any) -> None:
        """Keep what a static member was assigned for one session."""
        away = replace(member, epoch=LEAVING_FOR_A_WHILE, **self._kept_while_away(member))
        self.put(group, away)

    def _kept_while_away(self, member: Any) -> dict[str, Any]:
        """The fields of a member that is away for a while."""
        raise NotImplementedError

    def advance(self, group: StaticGroupT, member: Any, after: Any) -> None:
        """Put a member where reconciliation has brought it."""
        if after.progress != member.progress:
            self.put(group, after)
            self.time_revocation(group, after)
