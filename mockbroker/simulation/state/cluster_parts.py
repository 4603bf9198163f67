"""The parts of a cluster as immutable values: brokers, topics, partitions.

This module has no rules of change and no wire format. Since every value is frozen, a snapshot of
the cluster is a copy of two dictionaries, so a broker with stale metadata is cheap. Sequences are
tuples in protocol order: the first replica is the preferred leader. ``msgspec.structs.replace``
makes a changed copy.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

__all__ = [
    "INTERNAL_TOPICS",
    "LOG_DIR",
    "NEVER",
    "NO_CONTROLLER",
    "NO_LEADER",
    "Broker",
    "BrokerEndpoint",
    "DelegationToken",
    "Partition",
    "PartitionsByTopic",
    "ScramCredential",
    "TargetedPartition",
    "Topic",
    "TopicPartition",
    "Voter",
    "find_partition",
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


class BrokerEndpoint(msgspec.Struct, frozen=True, gc=False):
    """Where clients reach a listener of a broker; ``protocol`` is Kafka's security protocol."""

    listener: str
    protocol: str
    host: str
    port: int


class Broker(msgspec.Struct, frozen=True, gc=False):
    """A registered broker. ``live`` is the opposite of what KRaft calls fenced.

    ``host`` and ``port`` are the endpoint in Metadata; the server fills them in. ``endpoints`` are
    those of all listeners that the broker advertises, if its configs name any: then ``host`` and
    ``port`` are those of the listener for other brokers. ``apis`` lists
    the version ranges that differ from the cluster's: API key, lowest and highest version, with -1
    as the highest version of an API that the broker lacks. ``log_dirs`` are its log directories,
    those that have failed included. ``unregistered``: the controller has forgotten the broker until
    it starts again. ``software`` names the release that it was upgraded to, if it ever was.
    """

    broker_id: int
    host: str = "127.0.0.1"
    port: int = 0
    rack: str | None = None
    live: bool = True
    apis: tuple[tuple[int, int, int], ...] = ()
    log_dirs: tuple[str, ...] = (LOG_DIR,)
    unregistered: bool = False
    software: str = ""
    endpoints: tuple[BrokerEndpoint, ...] = ()

    def at(self, listener: str) -> Broker | None:
        """Return the broker with the address of a listener; None if it does not advertise it. One
        whose configs name no listeners has the same address for all."""
        if not self.endpoints:
            return self
        for each in self.endpoints:
            if each.listener == listener:
                return msgspec.structs.replace(self, host=each.host, port=each.port)
        return None

    def highest_version(self, api_key: int, usual: Mapping[int, int]) -> int:
        """Return the highest version of a request that the broker knows, or ``NEVER``.

        ``usual`` maps API keys to the highest version of the cluster's software.
        """
        for key, lowest, highest in self.apis:
            if key == api_key:
                return highest if highest >= lowest else NEVER
        return usual.get(api_key, NEVER)


class ScramCredential(msgspec.Struct, frozen=True):
    """What a server keeps of a password (RFC 5802); bytes are base64."""

    salt: str
    iterations: int
    stored_key: str
    server_key: str


class DelegationToken(msgspec.Struct, frozen=True):
    """A delegation token (KIP-48). Principals are texts such as ``User:alice``: whom the token
    stands for, who asked for it (KIP-373), and who may renew it besides the owner.

    ``expires_ms`` is not after ``max_ms``, beyond which no renewal moves it.
    """

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int


class Voter(msgspec.Struct, frozen=True):
    """A voter of the metadata quorum. ``listeners`` are (name, host, port)."""

    voter_id: int
    directory_id: uuid.UUID
    listeners: tuple[tuple[str, str, int], ...] = ()


class Partition(msgspec.Struct, frozen=True, gc=False):
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


class TargetedPartition(Partition, frozen=True, gc=False):
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


_CHUNK_BITS: Final = 7
_CHUNK: Final = 1 << _CHUNK_BITS
"""Partitions in a chunk of a topic. A changed topic shares all chunks but one with the former, so
to change each of 10,000 partitions in turn copies 2 million references instead of 100 million."""


class Topic:
    """A topic; ``partitions[i].index == i``."""

    __slots__ = ("_chunks", "_partitions", "name", "topic_id")
    __match_args__ = ("name", "topic_id", "partitions")

    def __init__(self, name: str, topic_id: uuid.UUID, partitions: tuple[Partition, ...]) -> None:
        self.name = name
        self.topic_id = topic_id
        self._partitions: tuple[Partition, ...] | None = partitions
        if len(partitions) <= _CHUNK:
            self._chunks: tuple[tuple[Partition, ...], ...] = (partitions,)
        else:
            starts = range(0, len(partitions), _CHUNK)
            self._chunks = tuple(partitions[start : start + _CHUNK] for start in starts)

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """All partitions. After a change they are collected again, once."""
        if self._partitions is None:
            self._partitions = tuple(itertools.chain.from_iterable(self._chunks))
        return self._partitions

    @property
    def internal(self) -> bool:
        """Whether Kafka stores state of its own in it (Metadata's ``is_internal``)."""
        return self.name in INTERNAL_TOPICS

    def partition(self, index: int) -> Partition | None:
        """Return the partition of this index, or None."""
        if index < 0:
            return None
        try:
            return self._chunks[index >> _CHUNK_BITS][index & (_CHUNK - 1)]
        except IndexError:
            return None

    def with_partition(self, partition: Partition) -> Topic:
        """Return a topic in which this partition replaces the one of the same index."""
        number, at = divmod(partition.index, _CHUNK)
        chunks = self._chunks
        chunk = (*chunks[number][:at], partition, *chunks[number][at + 1 :])
        changed = Topic.__new__(Topic)
        changed.name = self.name
        changed.topic_id = self.topic_id
        changed._chunks = (*chunks[:number], chunk, *chunks[number + 1 :])
        changed._partitions = chunk if len(chunks) == 1 else None
        return changed

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topic):
            return NotImplemented
        return (self.name, self.topic_id, self._chunks) == (
            other.name, other.topic_id, other._chunks,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.name, self.topic_id, self._chunks))

    def __repr__(self) -> str:
        return (
            f"Topic(name={self.name!r}, topic_id={self.topic_id!r}, partitions={self.partitions!r})"
        )


def find_partition(topics: Mapping[str, Topic], tp: TopicPartition) -> Partition | None:
    """Return a partition of these topics; None if it or its topic does not exist."""
    topic = topics.get(tp[0])
    return None if topic is None else topic.partition(tp[1])
