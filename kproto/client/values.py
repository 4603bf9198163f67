"""Arguments and results of ``Admin`` as plain values. This module knows no messages and no sockets.

Names are those of Kafka's Admin in snake_case. If a proposal's draft uses another name
(``target_brokers`` for ``target_replicas``), both names can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple
from uuid import UUID

from kproto.client.errors import InvalidTopicError

__all__ = [
    "UNTHROTTLED",
    "AlterConfigOp",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigResourceType",
    "ElectionType",
    "NewPartitionReassignment",
    "NewTopic",
    "Node",
    "PartitionDescription",
    "PartitionReassignment",
    "Reassignment",
    "ReassignmentDescription",
    "TopicDescription",
    "TopicPartition",
]

UNTHROTTLED: Final = 2**63 - 1
"""The throttle, in bytes per second, of a broker without a throttle (KIP-240)."""

_MAX_NAME: Final = 2**15 - 1
"""The size of the longest string that a message without flexible versions can carry, in bytes."""


class TopicPartition(NamedTuple):
    """Equal to the plain tuple ``("foo", 0)``, which is accepted wherever this is."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def unrepresentable_topic(topic: object) -> InvalidTopicError | None:
    """Return the error of a topic name that no request can carry; None for any other."""
    if isinstance(topic, str) and 0 < len(topic.encode(errors="replace")) <= _MAX_NAME:
        return None
    shown = topic if topic is None or not isinstance(topic, str) else topic[:80]
    return InvalidTopicError(f"The given topic name '{shown}' cannot be represented in a request.")


def unrepresentable(partition: TopicPartition) -> InvalidTopicError | None:
    """Return the error of a partition that no request can carry; None for any other."""
    problem = unrepresentable_topic(partition.topic)
    if problem is None and partition.partition < 0:
        return InvalidTopicError(f"The given partition index {partition.partition} is not valid.")
    return problem


# ---- reassignments (KIP-455) --------------------------------------------------------------------


class NewPartitionReassignment:
    """The target replicas of a partition, preferred leader first. Raises ValueError if there are
    none.

    ``Admin`` also accepts a plain list of broker ids.
    """

    __slots__ = ("target_replicas",)

    target_replicas: list[int]

    def __init__(self, target_replicas: Iterable[int]) -> None:
        self.target_replicas = list(target_replicas)
        if not self.target_replicas:
            raise ValueError("Cannot create a new partition reassignment without any replicas")

    @property
    def target_brokers(self) -> list[int]:
        """``target_replicas`` under its name in KIP-455."""
        return self.target_replicas

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NewPartitionReassignment):
            return NotImplemented
        return self.target_replicas == other.target_replicas

    def __hash__(self) -> int:
        return hash(tuple(self.target_replicas))

    def __repr__(self) -> str:
        return f"NewPartitionReassignment({self.target_replicas})"


@dataclass(frozen=True)
class PartitionReassignment:
    """A reassignment in progress.

    ``replicas`` are the brokers that hold the partition now, including those being added and
    removed. ``target_replicas`` are those it will have. In released Kafka they are ``replicas``
    without ``removing_replicas``; the drafts of KIP-455 send them, and the replicas added and
    removed follow from them.
    """

    replicas: list[int]
    adding_replicas: list[int] = field(default_factory=list)
    removing_replicas: list[int] = field(default_factory=list)
    target_replicas: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.target_replicas:
            kept = [each for each in self.replicas if each not in self.removing_replicas]
            object.__setattr__(self, "target_replicas", kept)

    @classmethod
    def towards(cls, current: list[int], target: list[int]) -> PartitionReassignment:
        """Make it from the two lists of a draft."""
        return cls(
            replicas=current,
            adding_replicas=[each for each in target if each not in current],
            removing_replicas=[each for each in current if each not in target],
            target_replicas=target,
        )

    @property
    def current_brokers(self) -> list[int]:
        """``replicas`` under its name in KIP-455."""
        return self.replicas

    @property
    def target_brokers(self) -> list[int]:
        """``target_replicas`` under its name in KIP-455."""
        return self.target_replicas


class ElectionType(IntEnum):
    """Which replica may become leader (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


# ---- reassignments with an identity (KIP-240) ---------------------------------------------------


class Reassignment:
    """One reassignment of a partition while it is in progress; from ``Admin.list_reassignments``.

    Two of the same partition are equal only if they are the same reassignment. The id that
    distinguishes them is stored here and never shown.
    """

    __slots__ = ("_id", "topic_partition")

    topic_partition: TopicPartition

    def __init__(self, topic_partition: TopicPartition, reassignment_id: int) -> None:
        self.topic_partition = topic_partition
        self._id = reassignment_id

    def __eq__(self, other: object) -> bool:
        return self._id == other._id if isinstance(other, Reassignment) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        return f"Reassignment({self.topic_partition})"


def reassignment_id(reassignment: Reassignment) -> int:
    """The id in requests, which users of a reassignment have no use for."""
    return reassignment._id


@dataclass(frozen=True)
class ReassignmentDescription:
    """The state of a reassignment.

    ``start_time`` is in ms since the Unix epoch and never changes. Throttles are in bytes per
    second, ``UNTHROTTLED`` for none. ``new_assigned_brokers`` is in order, preferred leader first,
    and ``new_assigned_throttles`` has exactly these keys.
    """

    start_time: int
    current_leader: int
    leader_throttle: int
    new_assigned_brokers: list[int]
    new_assigned_throttles: dict[int, int]


# ---- the cluster and its topics -----------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """A broker and the address at which clients reach it."""

    id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


@dataclass(frozen=True)
class ClusterDescription:
    """``controller_id`` is -1 if no controller is known. A KRaft broker names any live broker."""

    cluster_id: str | None
    controller_id: int
    nodes: list[Node]


@dataclass(frozen=True)
class PartitionDescription:
    """``leader`` is -1 if there is none. ``eligible_leader_replicas`` and ``last_known_elr`` are
    None if the broker does not report them (KIP-966)."""

    index: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline_replicas: list[int]
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None


@dataclass(frozen=True)
class TopicDescription:
    """Partitions are in ascending order. ``topic_id`` is None from a broker without topic ids."""

    name: str
    topic_id: UUID | None
    is_internal: bool
    partitions: list[PartitionDescription]


@dataclass(frozen=True)
class NewTopic:
    """A topic to create: by numbers (None: the broker's default, from CreateTopics v4 on), or by
    ``replica_assignments``, partition index -> broker ids."""

    name: str
    num_partitions: int | None = None
    replication_factor: int | None = None
    replica_assignments: Mapping[int, list[int]] | None = None
    configs: Mapping[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = (self.num_partitions, self.replication_factor)
        if self.replica_assignments is not None and numbers != (None, None):
            raise ValueError(
                f"topic {self.name!r}: give replica_assignments or numbers of partitions and "
                "replicas, not both"
            )


# ---- configs ------------------------------------------------------------------------------------


class ConfigResourceType(IntEnum):
    """Kafka's codes."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8


class ConfigResource(NamedTuple):
    """A configured entity. A broker's name is its id; ``""`` is the default of all brokers."""

    type: ConfigResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        """The resource of a topic."""
        return cls(ConfigResourceType.TOPIC, name)

    @classmethod
    def broker(cls, broker_id: int | None) -> ConfigResource:
        """The resource of a broker; None is the default of all brokers."""
        return cls(ConfigResourceType.BROKER, "" if broker_id is None else str(broker_id))

    @property
    def broker_id(self) -> int | None:
        """The only broker that can respond for this resource; None if any can."""
        if self.type in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER) and self.name:
            return int(self.name)
        return None


class ConfigOperation(IntEnum):
    """Kafka's codes (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(NamedTuple):
    """One change. ``value`` is None for DELETE."""

    name: str
    value: str | None
    operation: ConfigOperation = ConfigOperation.SET


@dataclass(frozen=True)
class ConfigEntry:
    """``source`` is Kafka's code: 1 topic, 2 broker, 3 all brokers, 4 static, 5 default; -1 if the
    broker does not report it. ``value`` is None if it is sensitive."""

    name: str
    value: str | None
    source: int
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
