"""Operations on topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from kproto import error_codes
from mockbroker.errors import ClusterError
from mockbroker.simulation.configs.changes import DELETE, SET
from mockbroker.simulation.operations.arguments import (
    CONFIG_VALUE,
    COUNT,
    TOPIC_TEXT,
    WORD,
    Argument,
    TopicNameArgument,
)
from mockbroker.simulation.operations.operation import operation
from mockbroker.simulation.state.cluster_state import TOPIC

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


@operation(in_turn=False)
def set_topic_config(
    cluster: Cluster,
    topic: TopicNameArgument,
    name: Annotated[str, Argument(WORD, "The config by Kafka's name, such as cleanup.policy.")],
    value: Annotated[str | None, Argument(CONFIG_VALUE, "Its value; none for the default.")] = None,
) -> None:
    """Set a config of a topic.

    Names and values are checked as by IncrementalAlterConfigs. Without VALUE the config has its
    default again.
    """
    change = (name, DELETE if value is None else SET, value)
    (result,) = cluster.config_changes.alter_incrementally(
        [(TOPIC, topic, [change])], cause="set_topic_config"
    )
    if result.error_code:
        raise ClusterError(result.error_message or error_codes.name(result.error_code))
