"""DescribeLogDirs (35): each broker has one log directory, with all its replicas in it.

The lag of a replica is 0, as Kafka's is: a broker compares the end of a replica with the high
watermark that this replica knows, which is never behind its own end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mockbroker.state.cluster_state import ClusterState
from mockbroker.state.model import Topic, TopicPartition
from mockbroker.state.results import LogDir, LogDirReplica

__all__ = ["LOG_DIR", "describe"]

LOG_DIR = "/var/lib/kafka/data"


def describe(
    state: ClusterState,
    broker_id: int,
    topics: Sequence[tuple[str, Sequence[int]]] | None,
    size_of: Callable[[TopicPartition], int],
) -> tuple[LogDir, ...]:
    """Return the log directories of a broker with its requested replicas; None requests all.
    ``size_of`` returns the bytes of the broker's replica."""
    wanted: Iterable[tuple[Topic, Iterable[int]]]
    if topics is None:
        wanted = ((t, range(len(t.partitions))) for _, t in sorted(state.topics.items()))
    else:
        wanted = ((state.topics[n], indexes) for n, indexes in topics if n in state.topics)
    rows = ((each.name, _replicas(each, indexes, broker_id, size_of)) for each, indexes in wanted)
    return (LogDir(LOG_DIR, tuple(row for row in rows if row[1])),)


def _replicas(
    topic: Topic, indexes: Iterable[int], broker_id: int, size_of: Callable[[TopicPartition], int]
) -> tuple[LogDirReplica, ...]:
    found = (topic.partition(index) for index in indexes)
    return tuple(
        LogDirReplica(each.index, size_of((topic.name, each.index)))
        for each in found
        if each is not None and broker_id in each.replicas
    )
