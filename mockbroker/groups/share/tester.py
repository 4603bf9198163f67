"""What a tester can do to a share group at its coordinator, which no client could.

Every step raises ClusterError for a group or a member that does not exist.
"""

from __future__ import annotations

from mockbroker.errors import ClusterError
from mockbroker.groups.share.membership import ShareMembership
from mockbroker.groups.share.model import ShareGroup

__all__ = ["ShareTesterSteps"]


class ShareTesterSteps:
    """The steps that ``ShareGroups`` inherits."""

    def __init__(self, membership: ShareMembership) -> None:
        self.membership = membership
        self._groups: dict[str, ShareGroup] = {}

    def force_rebalance(self, group_id: str) -> None:
        """Raise the group's epoch: the next heartbeat makes another target."""
        group = self._existing(group_id)
        self.membership.bump(group)
        self.membership.flush(group)

    def expire_member(self, group_id: str, member: str) -> None:
        """End the session of a member: it is fenced."""
        group = self._existing(group_id)
        if member not in group.members:
            known = ", ".join(group.members) or "none"
            raise ClusterError(f"group {group_id!r} has no member {member!r}; its members: {known}")
        self.membership.fence_member(group, member)

    def remove_member(self, group_id: str, member: str) -> None:
        """Remove a member from its group."""
        self.expire_member(group_id, member)

    def fence_instance(self, group_id: str, instance_id: str) -> str:
        """Share groups have no static members."""
        raise ClusterError(f"group {group_id!r} is a share group: it has no instances")

    def hold_assignment(self, group_id: str) -> None:
        """Keep members from their targets, until ``release_assignment``."""
        group = self._existing(group_id)
        if group.held:
            raise ClusterError(f"the assignment of group {group_id!r} is held already")
        group.held = True
        self.membership.changed(group)

    def release_assignment(self, group_id: str) -> None:
        """Let members get to their targets again."""
        group = self._existing(group_id)
        if not group.held:
            raise ClusterError(f"the assignment of group {group_id!r} is not held")
        group.held = False
        self.membership.changed(group)

    def _existing(self, group_id: str) -> ShareGroup:
        group = self._groups.get(group_id)
        if group is None:
            raise ClusterError(f"there is no share group {group_id!r}")
        return group
