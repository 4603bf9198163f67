"""Operations on the committed offsets of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.operations.arguments import (
    COUNT,
    Argument,
    GroupArgument,
    PartitionArgument,
)
from mockbroker.simulation.operations.operation import operation
from mockbroker.simulation.operations.subjects.coordinators import create_internal_topic

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster


@operation
def set_offset(
    cluster: Cluster,
    group: GroupArgument,
    partition: PartitionArgument,
    offset: Annotated[int, Argument(COUNT, "The offset.")],
) -> None:
    """Commit an offset for a group.

    The group's members are not checked. A group that does not exist is created.
    """
    create_internal_topic(cluster, CoordinatorKind.GROUP)
    cluster.offsets.set_offset(group, partition, offset)


@operation
def drop_offset(cluster: Cluster, group: GroupArgument, partition: PartitionArgument) -> None:
    """Delete a committed offset of a group.

    This is what happens when an offset expires.
    """
    create_internal_topic(cluster, CoordinatorKind.GROUP)
    cluster.offsets.drop_offset(group, partition)


@operation
def hold_commits(cluster: Cluster, group: GroupArgument) -> None:
    """Hold the offset commits of a group.

    Until `release-commits`, commits are neither answered nor visible, and OffsetFetch for stable
    offsets gets error 88.
    """
    cluster.offsets.hold_commits(group)


@operation
def release_commits(cluster: Cluster, group: GroupArgument) -> None:
    """Complete the held commits."""
    cluster.offsets.release_commits(group)
