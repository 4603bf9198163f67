"""The log directories of brokers: which one each replica is in, DescribeLogDirs (35) and
AlterReplicaLogDirs (34).

A broker has the directories of its config ``log.dirs``. A new replica goes into the working one
with the fewest replicas, the first of several; a broker with a single directory needs no placement.

The lag of a replica is 0, as Kafka's is: a broker compares the end of a replica with the high
watermark that this replica knows, which is never behind its own end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.actions import (
    Change,
    PartitionChanged,
    PartitionsAdded,
    ReplicaPlaced,
    TopicCreated,
)
from mockbroker.simulation.state.cluster_parts import (
    Broker,
    Partition,
    Topic,
    TopicPartition,
    find_partition,
)
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.replica_dirs import ReplicaDirs
from mockbroker.simulation.state.results import LogDir, LogDirReplica
from mockbroker.simulation.state.turns import step

__all__ = ["PLACED_BY", "LogDirs"]

PLACED_BY = (TopicCreated, PartitionsAdded, PartitionChanged)
"""The kinds of changes that may bring new replicas."""


_LONGEST_FOLDER: Final = 255 - len(".") - 32 - len("-future")
"""Of a replica, so that a random id fits in behind it while it moves."""


class LogDirs:
    """The log directories of the brokers of one cluster. New replicas of brokers that have several
    directories are placed as soon as they are recorded. ``size_of`` returns the bytes of a broker's
    replica. ``lists_all_topics``: every topic of a directory is described, though without
    partitions if none of them is requested. ``checks_names``: replicas whose folders would get too
    long a name do not move."""

    def __init__(
        self,
        controller: Controller,
        size_of: Callable[[int, TopicPartition], int],
        release: Release,
    ) -> None:
        self._controller = controller
        release.follow(self._use_release)
        self._size_of = size_of
        self.turns = controller.turns
        controller.add_hooks(PLACED_BY, after=self._place_new)

    def _use_release(self, release: Release) -> None:
        self._lists_all_topics = release.has(facts.ALL_TOPICS_OF_LOG_DIRS)
        self._checks_names = release.has(facts.NAMES_OF_MOVED_REPLICAS_CHECKED)

    def _place_new(self, cause: str, change: Change) -> None:
        match change:
            case TopicCreated(Topic(name, _, partitions)) | PartitionsAdded(name, partitions):
                pass
            case PartitionChanged(name, _, partition):
                partitions = (partition,)
            case _:
                return
        brokers, placed = self._controller.state.brokers, self._controller.state.replica_dirs.placed
        for partition in partitions:
            tp = (name, partition.index)
            for broker_id in partition.hosts:
                broker = brokers.get(broker_id)
                if broker and len(broker.log_dirs) > 1 and (broker_id, tp) not in placed:
                    self._controller.note(
                        cause, ReplicaPlaced(*tp, broker_id, self._choose(broker))
                    )

    def _choose(self, broker: Broker) -> str:
        dirs = self._controller.state.replica_dirs
        counts = dict.fromkeys(broker.log_dirs, 0)
        for (broker_id, _), directory in dirs.placed.items():
            if broker_id == broker.broker_id:
                counts[directory] += 1
        failed = dirs.failed.get(broker.broker_id, frozenset())
        working = [each for each in broker.log_dirs if each not in failed]
        return min(working or broker.log_dirs, key=counts.__getitem__)

    def describe(
        self, broker_id: int, topics: Sequence[tuple[str, Sequence[int]]] | None
    ) -> tuple[LogDir, ...]:
        """Return the log directories of a broker with its requested replicas; None requests
        all."""
        state = self._controller.state
        size_of = partial(self._size_of, broker_id)
        requested: list[tuple[Topic, Sequence[int]]]
        if topics is None:
            requested = [(t, range(len(t.partitions))) for _, t in sorted(state.topics.items())]
        else:
            requested = [(state.topics[n], indexes) for n, indexes in topics if n in state.topics]
            if self._lists_all_topics:
                named = {topic.name for topic, _ in requested}
                requested += [(t, ()) for name, t in state.topics.items() if name not in named]
        dirs = state.replica_dirs
        failed = dirs.failed.get(broker_id, frozenset())
        found = []
        for directory in state.brokers[broker_id].log_dirs:
            if directory in failed:
                found.append(LogDir(directory, (), ErrorCode.KAFKA_STORAGE_ERROR))
                continue
            rows = (
                (
                    each.name,
                    _replicas(
                        each.name, _placed(dirs, each, indexes, broker_id, directory), size_of
                    ),
                )
                for each, indexes in requested
            )
            present = self._topics_in(broker_id, directory) if self._lists_all_topics else set()
            found.append(
                LogDir(directory, tuple(row for row in rows if row[1] or row[0] in present))
            )
        return tuple(found)

    def _topics_in(self, broker_id: int, directory: str) -> set[str]:
        dirs, topics = self._controller.state.replica_dirs, self._controller.state.topics
        return {
            name
            for name, topic in topics.items()
            if any(_placed(dirs, topic, range(len(topic.partitions)), broker_id, directory))
        }

    @step()
    def move(self, broker_id: int, tp: TopicPartition, directory: str) -> ErrorCode:
        """Move a replica of this broker into a directory, at once, and return the error; 0 if it is
        there."""
        state = self._controller.state
        broker, dirs = state.brokers[broker_id], state.replica_dirs
        failed = dirs.failed.get(broker_id, frozenset())
        if self._checks_names and len(f"{tp[0]}-{tp[1]}") > _LONGEST_FOLDER:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if directory not in broker.log_dirs:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if directory in failed:
            return ErrorCode.KAFKA_STORAGE_ERROR
        partition = find_partition(state.topics, tp)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if broker_id not in partition.replicas:
            return ErrorCode.REPLICA_NOT_AVAILABLE
        if dirs.directory(broker_id, tp) == directory:
            return ErrorCode.NONE
        if failed:
            # A broker creates no second log of a partition while it cannot see all directories.
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._controller.note("alter_replica_log_dirs", ReplicaPlaced(*tp, broker_id, directory))
        return ErrorCode.NONE


def _placed(
    dirs: ReplicaDirs, topic: Topic, indexes: Iterable[int], broker_id: int, directory: str
) -> Iterable[Partition]:
    """The partitions of which the broker has a replica in this directory."""
    for index in indexes:
        partition = topic.partition(index)
        is_here = dirs.directory(broker_id, (topic.name, index)) == directory
        if is_here and partition is not None and broker_id in partition.replicas:
            yield partition


def _replicas(
    topic: str, partitions: Iterable[Partition], size_of: Callable[[TopicPartition], int]
) -> tuple[LogDirReplica, ...]:
    return tuple(LogDirReplica(each.index, size_of((topic, each.index))) for each in partitions)
