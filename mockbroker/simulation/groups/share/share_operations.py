"""Operations on share groups at their coordinator that no client has.

Every operation raises ClusterError for a group or a member that does not exist.
"""

from __future__ import annotations

from mockbroker.errors import ClusterError
from mockbroker.simulation.groups.modern.heartbeats import HeartbeatResult
from mockbroker.simulation.groups.modern.modern_operations import ModernOperations
from mockbroker.simulation.groups.share.share_group import ShareGroup
from mockbroker.simulation.groups.share.share_membership import ShareMembership

__all__ = ["ShareOperations"]


class ShareOperations(ModernOperations[ShareGroup, HeartbeatResult]):
    """The operations that ``ShareGroups`` inherits."""

    kind = "share"
    membership: ShareMembership

    def fence_instance(self, group_id: str, instance_id: str) -> str:
        """Share groups have no static members."""
        raise ClusterError(f"group {group_id!r} is a share group: it has no instances")
