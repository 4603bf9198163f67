"""Operations on groups and their members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mockbroker.simulation.operations.arguments import (
    COUNT,
    WORD,
    Argument,
    GroupArgument,
    MemberArgument,
    TargetArgument,
)
from mockbroker.simulation.operations.operation import operation

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster


@operation
def hold_joins(cluster: Cluster, group: GroupArgument) -> None:
    """Hold the rebalances of a group open.

    JoinGroup requests wait until `complete-join`.
    """
    cluster.groups.classic_owner(group).hold_joins(group)


@operation
def complete_join(cluster: Cluster, group: GroupArgument) -> None:
    """Complete the rebalance of a group now.

    Members that have not rejoined are left out. Ends `hold-joins`.
    """
    cluster.groups.classic_owner(group).complete_join(group)


@operation
def rebalance(cluster: Cluster, group: GroupArgument) -> None:
    """Trigger a rebalance of a group.

    Members of a classic group get error 27 and rejoin. A consumer or streams group gets a new
    epoch, and its next heartbeat computes a new target assignment.
    """
    cluster.groups.owner(group).force_rebalance(group)


@operation
def expire_member(cluster: Cluster, group: GroupArgument, member: MemberArgument) -> None:
    """Expire the session of a member.

    The member gets error 25 and the group rebalances, in classic and in newer groups.
    """
    cluster.groups.owner(group).expire_member(group, member)


@operation
def remove_member(cluster: Cluster, group: GroupArgument, member: MemberArgument) -> None:
    """Remove a member from its group.

    This is what an administrator does with LeaveGroup.
    """
    cluster.groups.owner(group).remove_member(group, member)


@operation
def fence_instance(
    cluster: Cluster,
    group: GroupArgument,
    instance: Annotated[str, Argument(WORD, "The instance id of a static member.")],
) -> None:
    """Fence a static member: another member takes its instance id.

    The member that had it gets error 82 (KIP-345).
    """
    cluster.groups.owner(group).fence_instance(group, instance)


@operation
def set_generation(
    cluster: Cluster,
    group: GroupArgument,
    generation: Annotated[int, Argument(COUNT, "Its number.")],
) -> None:
    """Change the generation of a group.

    Requests with the old generation get error 22. In a consumer group the epoch changes: heartbeats
    get error 110 and commits 113.
    """
    cluster.groups.owner(group).set_generation(group, generation)


@operation
def set_target_assignment(cluster: Cluster, group: GroupArgument, target: TargetArgument) -> None:
    """Set the target assignment of a consumer or streams group by hand.

    It holds until `release-assignor`. Members that are not named get nothing: `{"one": ["foo-0",
    "foo-1"]}`. In a streams group the partitions are active tasks: `0-2` is partition 2 of
    subtopology 0.
    """
    cluster.groups.static_owner(group).set_target(group, target)


@operation
def shutdown_application(cluster: Cluster, group: GroupArgument, member: MemberArgument) -> None:
    """Request the shutdown of a streams application on behalf of a member.

    Every member of the streams group gets status 4 in its next heartbeat response.
    """
    cluster.groups.streams.shut_down(group, member)


@operation
def release_assignor(cluster: Cluster, group: GroupArgument) -> None:
    """Return a consumer or streams group to its assignor."""
    cluster.groups.static_owner(group).release_assignor(group)


@operation
def hold_assignment(cluster: Cluster, group: GroupArgument) -> None:
    """Hold a consumer or streams group short of its target assignment.

    Until `release-assignment`, members must revoke partitions and are assigned no new ones.
    """
    cluster.groups.modern_owner(group).hold_assignment(group)


@operation
def release_assignment(cluster: Cluster, group: GroupArgument) -> None:
    """Let the members of a consumer or streams group reach their target again."""
    cluster.groups.modern_owner(group).release_assignment(group)
