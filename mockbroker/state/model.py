"""The parts of a cluster as immutable values: brokers, topics, partitions.

This module has no rules of change and no wire format. Since every value is frozen, a snapshot of
the cluster is a copy of two dictionaries, so a broker with stale metadata is cheap. Sequences are
tuples in protocol order: the first replica is the preferred leader.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = [
    "INTERNAL_TOPICS",
    "LOG_DIR",
    "NEVER",
    "NO_CONTROLLER",
    "NO_LEADER",
    "Broker",
    "Partition",
    "PartitionsByTopic",
    "TargetedPartition",
    "Topic",
    "TopicPartition",
    "Voter",
]

NO_LEADER: Final = -1
"""The leader id of a partition that is offline."""

NO_CONTROLLER: Final = -1
"""The controller's id while there is none (ZooKeeper only)."""

INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state"}
)

LOG_DIR: Final = "/var/lib/kafka/data"
"""The log directory of a broker that has one."""

NEVER: Final = -1
"""The highest version of a request that a broker does not know, so that it is not sent."""

TopicPartition: TypeAlias = tuple[str, int]
"""Topic name and partition index."""
PartitionsByTopic: TypeAlias = Sequence[tuple[str, Sequence[int]]]
"""[(topic name, [partition index])]"""


@dataclass(frozen=True, slots=True)
class Broker:
    """A registered broker. ``live`` is the opposite of what KRaft calls fenced.

    ``host`` and ``port`` are the endpoint in Metadata; the server fills them in. ``apis`` lists
    the version ranges that differ from the cluster's: API key, lowest and highest version, with -1
    as the highest version of an API that the broker lacks. ``log_dirs`` are its log directories,
    those that have failed included. ``unregistered``: the controller has forgotten the broker until
    it starts again.
    """

    broker_id: int
    host: str = "127.0.0.1"
    port: int = 0
    rack: str | None = None
    live: bool = True
    apis: tuple[tuple[int, int, int], ...] = ()
    log_dirs: tuple[str, ...] = (LOG_DIR,)
    unregistered: bool = False

    def highest_version(self, api_key: int, usual: Mapping[int, int]) -> int:
        """Return the highest version of a request that the broker knows, or ``NEVER``.

        ``usual`` maps API keys to the highest version of the cluster's software.
        """
        for key, lowest, highest in self.apis:
            if key == api_key:
                return highest if highest >= lowest else NEVER
        return usual.get(api_key, NEVER)


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter of the metadata quorum. ``listeners`` are (name, host, port)."""

    voter_id: int
    directory_id: uuid.UUID
    listeners: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as the controller knows it (KRaft's partition registration).

    ``leader`` is in ``isr`` or -1. ``isr`` is never empty: as in a cluster without eligible leader
    replicas (KIP-966), the last in-sync replica stays listed while the partition is offline.
    ``leader_epoch`` counts changes of the leader, ``partition_epoch`` all changes. ``recovering``
    says that an unclean election chose the leader, which has not changed the ISR since (KIP-704).
    ``vacated`` says that a live leader lost its replica: a ZooKeeper controller still takes such a
    partition for online, and elects only on request or when a broker fails.
    """

    index: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovering: bool = False
    vacated: bool = False

    @property
    def reassigning(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...] | None:
        """The replicas once the reassignment completes; None without a reassignment."""
        if not self.reassigning:
            return None
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    @property
    def preferred_leader(self) -> int:
        """The first replica."""
        return self.replicas[0]

    @property
    def hosts(self) -> tuple[int, ...]:
        """The brokers that have or create a replica, and so may join the ISR."""
        return self.replicas


@dataclass(frozen=True, slots=True)
class TargetedPartition(Partition):
    """A partition under reassignment in the drafts of KIP-455, where ``replicas`` are only those
    that exist already.

    ``target_replicas`` is T, as in the state znode. ``whole_target`` is the requested target as far
    as the controller knows: the older draft removes brokers from T step by step, so a controller
    that reads such a T does not know the original target (None).
    """

    target_replicas: tuple[int, ...] = ()
    whole_target: tuple[int, ...] | None = None

    @property
    def reassigning(self) -> bool:
        return True

    @property
    def target(self) -> tuple[int, ...] | None:
        return self.target_replicas

    @property
    def hosts(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.replicas + self.target_replicas))


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic; ``partitions[i].index == i``."""

    name: str
    topic_id: uuid.UUID
    partitions: tuple[Partition, ...]

    @property
    def internal(self) -> bool:
        """Whether Kafka stores state of its own in it (Metadata's ``is_internal``)."""
        return self.name in INTERNAL_TOPICS

    def partition(self, index: int) -> Partition | None:
        """Return the partition of this index, or None."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None
