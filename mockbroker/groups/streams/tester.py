"""What a tester can do to a streams group, which no client could.

Every step raises ClusterError for a group or a member that does not exist.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from mockbroker.errors import ClusterError
from mockbroker.groups.streams.membership import Membership
from mockbroker.groups.streams.model import Member, StreamsGroup, Tasks
from mockbroker.state.model import TopicPartition

__all__ = ["TesterSteps"]

_SEED: Final = 1071
"""Member ids are the same in each run, so that a journal is."""
_MOST_EPOCHS: Final = 2**31 - 1


class TesterSteps:
    """The steps that ``StreamsGroups`` inherits. ``member`` is a member id, or the instance id of
    a static member."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self._groups: dict[str, StreamsGroup] = {}
        self._random = random.Random(_SEED)

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
        """Remove a member as an administrator does, by LeaveGroup."""
        self.expire_member(group_id, member)

    def fence_instance(self, group_id: str, instance_id: str) -> str:
        """Let a stranger take the instance id of a static member: whoever uses the member's former
        id gets FENCED_INSTANCE_ID(82). Returns the stranger's member id."""
        group = self._existing(group_id)
        former = group.static_member(instance_id)
        if former is None:
            known = ", ".join(sorted(group.instances)) or "none"
            raise ClusterError(
                f"group {group_id!r} has no instance {instance_id!r}; its instances: {known}"
            )
        stranger = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        member = self.membership.take_place(group, former, stranger)
        self.membership.renew(group, member)
        self.membership.flush(group)
        return member.member_id

    def set_epoch(self, group_id: str, number: int) -> None:
        """Let the group and its members be at another epoch: heartbeats of the former one get
        FENCED_MEMBER_EPOCH(110), commits STALE_MEMBER_EPOCH(113)."""
        group = self._existing(group_id)
        if not 0 <= number <= _MOST_EPOCHS:
            raise ClusterError(f"an epoch is a number from 0 to {_MOST_EPOCHS}, not {number}")
        group.epoch = group.target_epoch = number
        records = self.membership.records
        self.membership.note(records.epoch(group), records.target_epoch(group))
        for member in list(group.members.values()):
            epochs = dict.fromkeys(member.epochs, number)
            moved = replace(member, epoch=number, previous_epoch=number, epochs=epochs)
            self.membership.put(group, moved)
        self.membership.flush(group)

    def shut_down(self, group_id: str, member: str) -> None:
        """Let a member request that the whole application shuts down: each member is told with its
        next heartbeat."""
        group = self._existing(group_id)
        found = self._member(group, member)
        group.shutdown_member = group.shutdown_member or found.member_id
        self.membership.changed(group)

    def set_target(self, group_id: str, target: Mapping[str, Sequence[TopicPartition]]) -> None:
        """Give members these active tasks, as subtopology and partition, instead of those of the
        assignor, until ``release_assignor``. Members that are not named get nothing."""
        group = self._existing(group_id)
        for tasks in target.values():
            for name, index in tasks:
                known = group.configured
                if known is None or not 0 <= index < known.tasks.get(name, 0):
                    raise ClusterError(f"group {group_id!r} has no task {name}-{index}")
        group.pinned = {name: Tasks(frozenset(tasks)) for name, tasks in target.items()}
        self._retarget(group)

    def release_assignor(self, group_id: str) -> None:
        """Let the assignor make targets again."""
        group = self._existing(group_id)
        if group.pinned is None:
            raise ClusterError(f"the target of group {group_id!r} is not set by hand")
        group.pinned = None
        self._retarget(group)

    def _retarget(self, group: StreamsGroup) -> None:
        self.membership.bump(group)
        group.target_ms = 0
        if group.configured is not None:
            self.membership.make_target(group, group.configured)
        self.membership.flush(group)

    def hold_assignment(self, group_id: str) -> None:
        """Keep members from getting to their targets: they have to give up tasks, and nothing is
        free, until ``release_assignment``."""
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

    def _hold(self, group: StreamsGroup, *, held: bool) -> None:
        group.held = held
        for member in group.members.values():
            self.membership.time_revocation(group, member)
        self.membership.changed(group)

    def _existing(self, group_id: str) -> StreamsGroup:
        group = self._groups.get(group_id)
        if group is None:
            raise ClusterError(f"there is no streams group {group_id!r}")
        return group

    @staticmethod
    def _member(group: StreamsGroup, member: str) -> Member:
        found = group.static_member(member) or group.members.get(member)
        if found is None:
            known = ", ".join(group.members) or "none"
            raise ClusterError(
                f"group {group.group_id!r} has no member {member!r}; its members: {known}"
            )
        return found
