"""A partition as the broker that received a request knows it."""

from __future__ import annotations

from mockbroker.apis.calls import Call
from mockbroker.simulation.state.cluster_parts import Partition, TopicPartition

__all__ = ["known_partition"]


def known_partition(call: Call, tp: TopicPartition) -> Partition | None:
    """Return the partition from the metadata of the receiving broker; None if the broker does not
    know it, or if the cluster has it no more, and so no log of it."""
    name, index = tp
    now = call.cluster.topics.get(name)
    if now is None or now.partition(index) is None:
        return None
    topic = call.cluster.controller.metadata_view(call.broker_id).topics.get(name)
    return None if topic is None else topic.partition(index)
