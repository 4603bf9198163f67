"""Operations on share groups: locks, sessions and delivery counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mockbroker.simulation.operations.arguments import (
    COUNT,
    WORD,
    AnyPartitionArgument,
    Argument,
    GroupArgument,
    PartitionArgument,
)
from mockbroker.simulation.operations.operation import operation

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster


@operation
def expire_locks(
    cluster: Cluster, group: GroupArgument, partition: AnyPartitionArgument = None
) -> int:
    """Expire the acquisition locks of a share group.

    The records become available again, or archived at the delivery limit; acknowledging them gets
    error 121. In Python the method returns how many records were locked.
    """
    return cluster.share_fetches.expire_locks(group, partition)


@operation
def expire_share_session(
    cluster: Cluster, group: GroupArgument, member: Annotated[str, Argument(WORD, "The member id.")]
) -> int:
    """Drop the share sessions of a member from all brokers.

    Its next request gets error 122, and the records that it had acquired become available. In
    Python the method returns how many sessions there were.
    """
    return cluster.share_fetches.expire_session(group, member)


@operation
def set_delivery_count(
    cluster: Cluster,
    group: GroupArgument,
    partition: PartitionArgument,
    offset: Annotated[int, Argument(COUNT, "The offset of a record in flight.")],
    count: Annotated[int, Argument(COUNT, "The delivery count.")],
) -> None:
    """Set how often a record has been delivered to a share group.

    At the group's `share.delivery.count.limit` the record is archived when it is released.
    """
    cluster.share_fetches.set_delivery_count(group, partition, offset, count)
