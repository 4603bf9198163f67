"""What a cluster consists of, as immutable values: brokers, topics, partitions.

This file knows no rules of change and no wire format. Because every value is frozen, a snapshot of
the cluster is a copy of two dictionaries, which is what makes a broker with stale metadata cheap.
Sequences are tuples in protocol order: the first replica is the preferred leader.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = [
    "INTERNAL_TOPICS",
    "NO_CONTROLLER",
    "NO_LEADER",
    "Broker",
    "Partition",
    "TargetedPartition",
    "Topic",
    "TopicPartition",
]

NO_LEADER: Final = -1
"""The leader id of a partition that is offline."""

NO_CONTROLLER: Final = -1
"""The controller's id while there is none (ZooKeeper only)."""

INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state"}
)

TopicPartition: TypeAlias = tuple[str, int]
"""Topic name and partition index."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A registered broker. ``live`` is the opposite of what KRaft calls fenced.

    ``host`` and ``port`` are what Metadata tells clients to dial; the server fills them in.
    ``apis`` is where its software differs from that of the cluster: api key, lowest and highest
    version it serves; -1 as the highest for a key that it lacks.
    """

    broker_id: int
    host: str = "127.0.0.1"
    port: int = 0
    rack: str | None = None
    live: bool = True
    apis: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as the controller knows it (KRaft's partition registration).

    ``leader`` is in ``isr`` or is -1; ``isr`` is never empty: as in a cluster without eligible
    leader replicas (KIP-966), the last in-sync replica stays listed while the partition is offline.
    ``leader_epoch`` counts changes of leadership, ``partition_epoch`` every change.
    """

    index: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def reassigning(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...] | None:
        """The replicas once the reassignment completes; None when there is none."""
        if not self.reassigning:
            return None
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0]

    @property
    def hosts(self) -> tuple[int, ...]:
        """The brokers that hold, or are told to make, a copy: who may join the ISR."""
        return self.replicas


@dataclass(frozen=True, slots=True)
class TargetedPartition(Partition):
    """A partition under reassignment in the drafts of KIP-455, where ``replicas`` holds only what
    is there already.

    ``target_replicas`` is T, as in the state znode. ``whole_target`` is what was asked for, as far
    as the controller knows: the older draft takes brokers out of T on the way, and a controller
    that finds such a T cannot know what it was (None).
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
        """Whether Kafka itself keeps state in it (Metadata's ``is_internal``)."""
        return self.name in INTERNAL_TOPICS

    def partition(self, index: int) -> Partition | None:
        return self.partitions[index] if 0 <= index < len(self.partitions) else None
