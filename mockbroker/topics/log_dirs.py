"""DescribeLogDirs (35) and AlterReplicaLogDirs (34): each broker has one log directory, with all
its replicas in it.

The lag of a replica is 0, as Kafka's is: a broker compares the end of a replica with the high
watermark that this replica knows, which is never behind its own end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kproto.error_codes import ErrorCode
from mockbroker.state.cluster_state import ClusterState
from mockbroker.state.model import Topic, TopicPartition
from mockbroker.state.results import LogDir, LogDirReplica

__all__ = ["LOG_DIR", "describe", "move"]

LOG_DIR = "/var/lib/kafka/data"


def describe(
    state: ClusterState,
    broker_id: int,
    topics: Sequence[tuple[str, Sequence[int]]] | None,
    size_of: Callable[[TopicPartition], int],
) -> tuple[LogDir, ...]:
    """Return the log directories of a broker with its requested replicas; None requests all.
    ``size_of`` returns the bytes of the broker's replica."""
    requested: Iterable[tuple[Topic, Iterable[int]]]
    if topics is None:
        requested = ((t, range(len(t.partitions))) for _, t in sorted(state.topics.items()))
    else:
        requested = ((state.topics[n], indexes) for n, indexes in topics if n in state.topics)
    rows = (
        (each.name, _replicas(each, indexes, broker_id, size_of)) for each, indexes in requested
    )
    return (LogDir(LOG_DIR, tuple(row for row in rows if row[1])),)


def move(state: ClusterState, broker_id: int, tp: TopicPartition, directory: str) -> ErrorCode:
    """Return the error of moving a replica of this broker into a directory; 0 if it is there."""
    if directory != LOG_DIR:
        return ErrorCode.LOG_DIR_NOT_FOUND
    topic = state.topics.get(tp[0])
    partition = None if topic is None else topic.partition(tp[1])
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in partition.replicas:
        return ErrorCode.REPLICA_NOT_AVAILABLE
    return ErrorCode.NONE


def _replicas(
    topic: Topic, indexes: Iterable[int], broker_id: int, size_of: Callable[[TopicPartition], int]
) -> tuple[LogDirReplica, ...]:
    found = (topic.partition(index) for index in indexes)
    return tuple(
        LogDirReplica(each.index, size_of((topic.name, each.index)))
        for each in found
        if each is not None and broker_id in each.replicas
    )
