"""Operations on classic groups that no client has.

Every operation raises ClusterError for a group or a member that does not exist.
"""

from __future__ import annotations

import random
import uuid
from typing import Final

from mockbroker.errors import ClusterError
from mockbroker.simulation.groups.classic.classic_group import Group, GroupState
from mockbroker.simulation.groups.classic.rebalancing import Rebalancing

__all__ = ["ClassicOperations"]

_SEED: Final = 394
"""Member ids are the same in each run, so that a journal is."""
_MOST_GENERATIONS: Final = 2**31 - 1


class ClassicOperations:
    """The operations that ``ClassicGroups`` inherits. ``member`` is a member id, or the instance id
    of a static member."""

    def __init__(self, machine: Rebalancing) -> None:
        self.machine = machine
        self._groups: dict[str, Group] = {}
        self._random = random.Random(_SEED)

    def hold_joins(self, group_id: str) -> None:
        """Keep rebalances of this group from completing, until ``complete_join``."""
        group = self._existing(group_id)
        if group.held:
            raise ClusterError(f"the joins of group {group_id!r} are held already")
        group.held = True
        self.machine.changed(group)

    def complete_join(self, group_id: str) -> None:
        """Complete the rebalance of this group now, without members that have not joined, and hold
        the next ones no longer."""
        group = self._existing(group_id)
        if not group.held and group.state is not GroupState.PREPARING:
            raise ClusterError(f"group {group_id!r} is {group.state}: it has no rebalance to end")
        group.held = False
        if group.state is GroupState.PREPARING:
            self.machine.complete(group)
        else:
            self.machine.changed(group)

    def force_rebalance(self, group_id: str) -> None:
        """Begin a rebalance, as if a member had joined with other metadata."""
        group = self._existing(group_id)
        if group.state not in (GroupState.COMPLETING, GroupState.STABLE):
            raise ClusterError(
                f"group {group_id!r} is {group.state}: only a group of a generation can rebalance"
            )
        self.machine.prepare(group)

    def expire_member(self, group_id: str, member: str) -> None:
        """End the session of a member, or of an id that was handed out, even if its join or sync
        waits: that gets UNKNOWN_MEMBER_ID(25)."""
        group = self._existing(group_id)
        member_id = self._member_id(group, member)
        if self._forget_pending(group, member_id):
            return
        self.machine.remove(group, member_id)
        self.machine.settle_after_session(group)

    def remove_member(self, group_id: str, member: str) -> None:
        """Remove a member as an administrator does, by LeaveGroup."""
        group = self._existing(group_id)
        member_id = self._member_id(group, member)
        if self._forget_pending(group, member_id):
            return
        self.machine.remove(group, member_id)
        self.machine.settle(group)

    def fence_instance(self, group_id: str, instance_id: str) -> str:
        """Fence a static member by giving its instance id to another: use of the former member
        id gets FENCED_INSTANCE_ID(82). Returns the new member id."""
        group = self._existing(group_id)
        if instance_id not in group.instances:
            known = ", ".join(sorted(group.instances)) or "none"
            raise ClusterError(
                f"group {group_id!r} has no instance {instance_id!r}; its instances: {known}"
            )
        member_id = self._new_member_id(instance_id)
        self.machine.replace(group, instance_id, member_id)
        return member_id

    def set_generation(self, group_id: str, number: int) -> None:
        """Let the group be in another generation: requests of the former one get
        ILLEGAL_GENERATION(22)."""
        group = self._existing(group_id)
        if not 0 <= number <= _MOST_GENERATIONS:
            raise ClusterError(
                f"a generation is a number from 0 to {_MOST_GENERATIONS}, not {number}"
            )
        group.generation = number
        if group.stored is not None:
            group.store()
        self.machine.changed(group)

    def _new_member_id(self, prefix: str) -> str:
        return f"{prefix}-{uuid.UUID(int=self._random.getrandbits(128), version=4)}"

    def _forget_pending(self, group: Group, member_id: str) -> bool:
        if member_id not in group.pending:
            return False
        self.machine.remove(group, member_id)
        self.machine.settle_without_pending(group)
        return True

    def _existing(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            raise ClusterError(f"there is no group {group_id!r}")
        return group

    @staticmethod
    def _member_id(group: Group, member: str) -> str:
        wanted = group.members.values()
        named = [each.member_id for each in wanted if member in ("*", each.client_id)]
        member_id = group.instances.get(member) or (named[0] if len(named) == 1 else member)
        if member_id not in group.members and member_id not in group.pending:
            known = ", ".join([*group.members, *group.pending]) or "none"
            raise ClusterError(
                f"group {group.group_id!r} has no member {member!r}; its members: {known}"
            )
        return member_id
