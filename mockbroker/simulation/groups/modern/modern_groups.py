"""The groups of one newer protocol by id: heartbeats, administration, moves of coordinators, and
operations that no client has.

Every operation raises ClusterError for a group or a member that does not exist.
"""

from __future__ import annotations

import base64
import random
import uuid
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Final, Generic, TypeVar

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.groups.modern.heartbeats import HeartbeatResult
from mockbroker.simulation.groups.modern.member_commits import CommitEvent
from mockbroker.simulation.groups.modern.modern_group import GroupT
from mockbroker.simulation.groups.modern.modern_membership import (
    GroupDependencies,
    ModernMembership,
    StaticGroupT,
    StaticMembership,
)
from mockbroker.simulation.releases.rows import apply_first
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["ModernGroups", "ResultT", "StaticMemberGroups"]

_MOST_EPOCHS: Final = 2**31 - 1

ResultT = TypeVar("ResultT", bound=HeartbeatResult)


class ModernGroups(Generic[GroupT, ResultT]):
    """``kind`` is the name of the protocol in texts."""

    kind: ClassVar[str]

    def __init__(self, shared: GroupDependencies, membership: ModernMembership[GroupT]) -> None:
        self.membership = membership
        self.topics = shared.topics
        self._shared = shared
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
        for call in self._shared.on_deleted:
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

    # ---- operations --------------------------------------------------------------------------

    def force_rebalance(self, group_id: str) -> None:
        """Raise the group's epoch: the next heartbeat makes another target."""
        group = self._existing(group_id)
        self.membership.bump(group)
        self.membership.flush(group)

    def expire_member(self, group_id: str, member: str) -> None:
        """End the session of a member: it is fenced."""
        group = self._existing(group_id)
        self.membership.fence_member(group, self._member(group, member).member_id)

    def remove_member(self, group_id: str, member: str) -> None:
        """Remove a member as an administrator does."""
        self.expire_member(group_id, member)

    def hold_assignment(self, group_id: str) -> None:
        """Keep members from getting to their targets, until ``release_assignment``: members that
        have to give something up do so, and nothing is free."""
        group = self._existing(group_id)
        if group.held:
            raise ClusterError(f"the assignment of group {group_id!r} is held already")
        self._hold(group, held=True)

    def release_assignment(self, group_id: str) -> None:
        """Let members get to their targets again."""
        group = self._existing(group_id)
        if not group.held:
            raise ClusterError(f"the assignment of group {group_id!r} is not held")
        self._hold(group, held=False)

    def _hold(self, group: GroupT, *, held: bool) -> None:
        group.held = held
        self.membership.changed(group)

    def _existing(self, group_id: str) -> GroupT:
        group = self._groups.get(group_id)
        if group is None:
            raise ClusterError(f"there is no {self.kind} group {group_id!r}")
        return group

    def _member(self, group: GroupT, member: str) -> Any:
        """The member of this id, or the only one of this client id, or with ``*`` the only one."""
        named = [each for each in group.members.values() if member in ("*", each.client_id)]
        meant = group.members.get(member) or (named[0] if len(named) == 1 else None)
        if meant is None:
            known = ", ".join(group.members) or "none"
            raise ClusterError(
                f"group {group.group_id!r} has no member {member!r}; its members: {known}"
            )
        return meant


class StaticMemberGroups(ModernGroups[StaticGroupT, ResultT]):
    """Groups with static members, assignors and committed offsets. In operations ``member`` is a
    member id, or the instance id of a static member."""

    seed: ClassVar[int]
    """Member ids are the same in each run, so that a journal is."""
    membership: StaticMembership[StaticGroupT]

    def __init__(
        self, shared: GroupDependencies, membership: StaticMembership[StaticGroupT]
    ) -> None:
        super().__init__(shared, membership)
        self._random = random.Random(self.seed)

    def new_member_id(self) -> str:
        """A member id of the broker's making: as Kafka's ids, it does not begin with a dash."""
        while True:
            drawn = uuid.UUID(int=self._random.getrandbits(128), version=4)
            text = base64.urlsafe_b64encode(drawn.bytes).decode().rstrip("=")
            if not text.startswith("-"):
                return text

    def fence_instance(self, group_id: str, instance_id: str) -> str:
        """Fence a static member by giving its instance id to another: use of the former member
        id gets FENCED_INSTANCE_ID(82). Returns the new member id."""
        group = self._existing(group_id)
        former = group.static_member(instance_id)
        if former is None:
            known = ", ".join(sorted(group.instances)) or "none"
            raise ClusterError(
                f"group {group_id!r} has no instance {instance_id!r}; its instances: {known}"
            )
        member = self.membership.take_place(group, former, self.new_member_id())
        self.membership.renew(group, member)
        self.membership.flush(group)
        return str(member.member_id)

    def set_generation(self, group_id: str, number: int) -> None:
        """Let the group and its members be at another epoch: heartbeats of the former one get
        FENCED_MEMBER_EPOCH(110), commits STALE_MEMBER_EPOCH(113)."""
        group = self._existing(group_id)
        if not 0 <= number <= _MOST_EPOCHS:
            raise ClusterError(f"an epoch is a number from 0 to {_MOST_EPOCHS}, not {number}")
        group.epoch = group.target_epoch = number
        records = self.membership.records
        self.membership.note(records.epoch(group), records.target_epoch(group))
        for member in list(group.members.values()):
            self.membership.put(group, self._at_epoch(member, number))
        self.membership.flush(group)

    def release_assignor(self, group_id: str) -> None:
        """Let the assignor make targets again."""
        group = self._existing(group_id)
        if group.pinned is None:
            raise ClusterError(f"the target of group {group_id!r} is not set by hand")
        self._pin(group, None)

    def _pin(self, group: StaticGroupT, target: Mapping[str, Any] | None) -> None:
        group.pinned = target
        self.membership.bump(group)
        group.target_ms = 0
        self._make_target(group)
        self.membership.flush(group)

    def _hold(self, group: StaticGroupT, *, held: bool) -> None:
        group.held = held
        for member in group.members.values():
            self.membership.time_revocation(group, member)
        self.membership.changed(group)

    def _member(self, group: StaticGroupT, member: str) -> Any:
        static = group.static_member(member)
        return super()._member(group, member) if static is None else static

    # ---- offsets -----------------------------------------------------------------------------

    def validate_commit(self, commit: GroupCommit) -> ErrorCode:
        """Return whether a member may commit offsets, as 0 or an error code."""
        group = self._groups[commit.group_id]
        event = CommitEvent(
            group, commit, lambda member, partition: self._held_since(group, member, partition)
        )
        apply_first(self.membership.rules.commit, event, event)
        return event.code

    def validate_fetch(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Return whether a member may fetch offsets, as 0 or an error code."""
        commit = GroupCommit(group_id, member_id, epoch=epoch)
        event = CommitEvent(self._groups[group_id], commit)
        apply_first(self.membership.rules.fetch, event, event)
        return event.code

    # ---- what differs by kind ----------------------------------------------------------------

    def _held_since(
        self, group: StaticGroupT, member: Any, partition: TopicPartition
    ) -> int | None:
        """The epoch at which a member got a partition; None if it does not have it."""
        raise NotImplementedError

    def _at_epoch(self, member: Any, number: int) -> Any:
        """The member at another epoch, with what it has."""
        raise NotImplementedError

    def _make_target(self, group: StaticGroupT) -> None:
        """Make a target, if there is something to assign."""
        raise NotImplementedError
