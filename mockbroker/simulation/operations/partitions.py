"""What several operations check or change of a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.errors import ClusterError
from mockbroker.simulation.state.actions import PartitionChanged
from mockbroker.simulation.state.cluster_parts import NO_LEADER, Partition, TopicPartition

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster

__all__ = ["change_partition", "check_led", "check_partition", "name_of"]


def name_of(tp: TopicPartition) -> str:
    return f"{tp[0]}-{tp[1]}"


def check_partition(cluster: Cluster, tp: TopicPartition | None) -> None:
    """Raises UnknownPartitionError; None stands for all partitions."""
    if tp is not None:
        cluster.controller.partition(tp)


def check_led(cluster: Cluster, tp: TopicPartition) -> None:
    """Raises ClusterError for a partition without a leader."""
    if cluster.controller.partition(tp).leader == NO_LEADER:
        raise ClusterError(f"{name_of(tp)} is offline: it has no leader")


def change_partition(cluster: Cluster, cause: str, tp: TopicPartition, after: Partition) -> None:
    """Change a partition as the controller does."""
    before = cluster.controller.partition(tp)
    cluster.reassignments.change_partition(cause, PartitionChanged(tp[0], before, after))
    cluster.reassignments.settle(cause, tp)
