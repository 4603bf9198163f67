"""Operations on the replicas of a partition: the ISR, the leader, and how far each has the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec.structs import replace

from mockbroker.errors import ClusterError
from mockbroker.simulation.elections.partition_change import with_epochs
from mockbroker.simulation.operations.arguments import (
    COUNT,
    Argument,
    BrokerArgument,
    FollowerArgument,
    PartitionArgument,
)
from mockbroker.simulation.operations.operation import operation
from mockbroker.simulation.operations.partitions import change_partition, name_of
from mockbroker.simulation.state.cluster_parts import Partition

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster


@operation
def join_isr(
    cluster: Cluster, partition: PartitionArgument, broker_id: BrokerArgument
) -> Partition:
    """Make a replica catch up and join the ISR."""
    return cluster.brokers.join_isr(partition, broker_id)


@operation
def leave_isr(
    cluster: Cluster, partition: PartitionArgument, broker_id: BrokerArgument
) -> Partition:
    """Make a follower fall behind and leave the ISR."""
    return cluster.brokers.leave_isr(partition, broker_id)


@operation
def unclean_election(
    cluster: Cluster, partition: PartitionArgument, broker: BrokerArgument
) -> None:
    """Elect a replica that lacks records.

    The replica becomes the only member of the ISR, and the log is truncated to its end.
    Acknowledged records may be lost.
    """
    name = name_of(partition)
    controller = cluster.controller
    before = controller.partition(partition)
    if not controller.broker(broker).live:
        raise ClusterError(f"broker {broker} is stopped and cannot lead {name}")
    if not controller.is_served(partition, broker):
        raise ClusterError(f"the log directory of {name} on broker {broker} has failed")
    if broker not in before.replicas:
        raise ClusterError(f"broker {broker} has no replica of {name}")
    if broker == before.leader:
        raise ClusterError(f"broker {broker} already leads {name}")
    elected = replace(before, leader=broker, isr=(broker,), recovering=True, vacated=False)
    change_partition(cluster, "unclean_election", partition, with_epochs(before, elected))


@operation
def hold_replication(
    cluster: Cluster, partition: PartitionArgument, broker: FollowerArgument = None
) -> None:
    """Stop followers from copying a log.

    The follower stays in the ISR: the high watermark stands still, and produce requests with acks
    -1 wait. Without BROKER, all followers stop.
    """
    cluster.logs.hold_replication(partition, broker)


@operation
def replicate(
    cluster: Cluster,
    partition: PartitionArgument,
    broker: BrokerArgument,
    offset: Annotated[int | None, Argument(COUNT, "Where it stops.")] = None,
) -> None:
    """Copy records to a held follower.

    It copies up to OFFSET, or the whole log, and stays held.
    """
    held = cluster.logs.data(partition).replication.held
    if broker in cluster.controller.partition(partition).isr and broker not in held:
        raise ClusterError(
            f"broker {broker} copies {name_of(partition)} already; use hold-replication first"
        )
    cluster.logs.replicate(partition, broker, offset)


@operation
def release_replication(
    cluster: Cluster, partition: PartitionArgument, broker: FollowerArgument = None
) -> None:
    """Resume the replication of a log.

    Produce requests that wait for the followers are then answered.
    """
    cluster.logs.release_replication(partition, broker)


@operation
def lag_high_watermark(
    cluster: Cluster,
    partition: PartitionArgument,
    records: Annotated[int, Argument(COUNT, "How many records behind; 0 for none.")],
) -> None:
    """Keep the high watermark behind the end of a log.

    It stays RECORDS behind until the operation sets 0. It never falls.
    """
    cluster.logs.lag_watermark(partition, records)
