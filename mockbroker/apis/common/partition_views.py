"""A partition as the broker that received a request knows it."""

from __future__ import annotations

from mockbroker.apis.calls import Call
from mockbroker.simulation.state.cluster_parts import Partition, TopicPartition, find_partition

__all__ = ["known_partition", "viewed_partition"]


def viewed_partition(call: Call, tp: TopicPartition) -> Partition | None:
    """Return the partition from the metadata of the receiving broker; None if it does not know
    it."""
    return find_partition(call.cluster.controller.metadata_view(call.broker_id).topics, tp)


def known_partition(call: Call, tp: TopicPartition) -> Partition | None:
    """As ``viewed_partition``, but None also if the cluster has the partition no more, and so no
    log of it."""
    return None if find_partition(call.cluster.topics, tp) is None else viewed_partition(call, tp)
