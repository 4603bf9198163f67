"""Operations on topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mockbroker.simulation.operations.arguments import (
    COUNT,
    TOPIC_TEXT,
    Argument,
    TopicNameArgument,
)
from mockbroker.simulation.operations.operation import operation

if TYPE_CHECKING:
    from mockbroker.simulation.cluster import Cluster


@operation
def create_topic(
    cluster: Cluster,
    topic: Annotated[
        str,
        Argument(
            TOPIC_TEXT, "NAME:PARTITIONS:REPLICAS, or NAME= and the replicas of each partition."
        ),
    ],
) -> None:
    """Create a topic.

    TOPIC is foo:2:3 for two partitions with three replicas each, or foo=1,2,3/2,3,4, which lists
    the replicas of each partition.
    """
    cluster.topics.add(topic)


@operation(in_turn=False)
def delete_topic(cluster: Cluster, topic: TopicNameArgument) -> None:
    """Delete a topic."""
    cluster.topics.remove(topic)


@operation(in_turn=False)
def add_partitions(
    cluster: Cluster,
    topic: TopicNameArgument,
    count: Annotated[int, Argument(COUNT, "The new total number of partitions.")],
) -> None:
    """Add partitions to a topic."""
    cluster.topics.extend(topic, count)
