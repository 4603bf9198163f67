"""DescribeLogDirs (35): each broker has one log directory, and replicas of size 0 in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mockbroker.state.cluster_state import ClusterState
from mockbroker.state.model import Topic
from mockbroker.state.results import LogDir, LogDirReplica

__all__ = ["LOG_DIR", "describe"]

LOG_DIR = "/var/lib/kafka/data"


def describe(
    state: ClusterState, broker_id: int, topics: Sequence[tuple[str, Sequence[int]]] | None
) -> tuple[LogDir, ...]:
    """Return the log directories of a broker with its requested replicas; None requests all."""
    wanted: Iterable[tuple[Topic, Iterable[int]]]
    if topics is None:
        wanted = ((t, range(len(t.partitions))) for _, t in sorted(state.topics.items()))
    else:
        wanted = ((state.topics[n], indexes) for n, indexes in topics if n in state.topics)
    rows = ((topic.name, _replicas(topic, indexes, broker_id)) for topic, indexes in wanted)
    return (LogDir(LOG_DIR, tuple(row for row in rows if row[1])),)


def _replicas(topic: Topic, indexes: Iterable[int], broker_id: int) -> tuple[LogDirReplica, ...]:
    found = (topic.partition(index) for index in indexes)
    return tuple(LogDirReplica(p.index) for p in found if p is not None and broker_id in p.replicas)
