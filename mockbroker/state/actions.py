"""Everything that can happen to the cluster, as typed values, and the log that keeps their order.

This file knows what a change is made of, not when it may happen. ``controller`` applies an action;
the same actions in the same order give the same state.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, overload

from kproto.znodes import Stat
from mockbroker.state.model import Broker, Partition, Topic
from mockbroker.state.results import AclBinding

__all__ = [
    "AclAdded",
    "AclRemoved",
    "Action",
    "ActionLog",
    "AutoProgressChanged",
    "BrokerChanged",
    "BrokerRegistered",
    "Change",
    "ConfigChanged",
    "ControllerChanged",
    "ElectionEnqueued",
    "ElectionProcessed",
    "ElectionsHeld",
    "ElectionsReleased",
    "LeaderAndIsrSent",
    "LiveBrokersSent",
    "MetadataHeld",
    "MetadataReleased",
    "PartitionChanged",
    "PartitionsAdded",
    "PropagationChanged",
    "ReplicasMoved",
    "StopReplicaSent",
    "TopicCreated",
    "TopicDeleted",
    "UpdateMetadataSent",
    "Warned",
    "ZnodeWritten",
]


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """A broker joined the cluster."""

    broker: Broker


@dataclass(frozen=True, slots=True)
class BrokerChanged:
    """Stopped, started, or given an endpoint."""

    before: Broker
    after: Broker


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """Broker ids of the former controller and the new one; -1 for none. ``epoch`` is the new one's
    controller epoch."""

    before: int
    after: int
    epoch: int


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """A topic with all of its partitions."""

    topic: Topic


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """The topic's configs go with it."""

    name: str
    topic_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """The new partitions of a topic."""

    topic: str
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    """Replicas, ISR, leader or reassignment of one partition."""

    topic: str
    before: Partition
    after: Partition


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    """None means not set, before or after."""

    resource_type: int
    resource_name: str
    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class AclAdded:
    """An access rule was created."""

    binding: AclBinding


@dataclass(frozen=True, slots=True)
class AclRemoved:
    """An access rule was deleted."""

    binding: AclBinding


@dataclass(frozen=True, slots=True)
class MetadataHeld:
    """What a broker answers to Metadata is frozen."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class MetadataReleased:
    """A broker's metadata follows the cluster again."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class PropagationChanged:
    """How long every broker takes to hear of a change; 0 is not at all."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class ElectionEnqueued:
    """An election is the controller's to hold; with KIP-183, the flag is set. ``topics`` is None
    for what ``/admin/preferred_replica_election`` will say when its turn comes."""

    election: int
    election_type: int
    topics: tuple[tuple[str, tuple[int, ...]], ...] | None


@dataclass(frozen=True, slots=True)
class ElectionProcessed:
    """With KIP-183, the flag is cleared. ``preempted``: the controller went before it was held."""

    election: int
    preempted: bool = False


@dataclass(frozen=True, slots=True)
class ElectionsHeld:
    """The controller lets elections lie in its queue."""


@dataclass(frozen=True, slots=True)
class ElectionsReleased:
    """The controller holds the elections in its queue."""


@dataclass(frozen=True, slots=True)
class AutoProgressChanged:
    """How often a replica joins an ISR by itself; None for never."""

    interval_ms: int | None


@dataclass(frozen=True, slots=True)
class ZnodeWritten:
    """A znode's text; None where there was, or is now, no such znode. ``stat`` is the znode's then
    (its ``czxid`` tells one life of a path from the next), None where it is gone."""

    path: str
    before: str | None
    after: str | None
    stat: Stat | None = None


@dataclass(frozen=True, slots=True)
class LeaderAndIsrSent:
    """One partition's state, told to brokers. ``target_replicas`` is null outside a reassignment,
    and exists in the drafts of KIP-455 only; ``adding`` and ``removing`` since Kafka 2.4.

    This and its like below: one entry a partition, however many one request carries on the wire
    (``mockbroker.inter_broker.requests``). ``versions`` are those it went out at, one for each of
    ``to``; -1 where there is none that both ends know, and nothing was sent. Set by whoever records
    it, and no part of what is said."""

    to: tuple[int, ...]
    topic: str
    index: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zk_version: int
    replicas: tuple[int, ...]
    target_replicas: tuple[int, ...] | None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    is_new: bool = False
    versions: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class StopReplicaSent:
    """``delete``: the data goes too. ``leader_epoch`` None is the partition's own; -2 says that the
    topic is being deleted (KIP-570)."""

    to: tuple[int, ...]
    topic: str
    index: int
    delete: bool
    leader_epoch: int | None = None
    versions: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class ReplicasMoved:
    """Replicas of one partition entered a state of the controller's replica state machine, by
    Kafka's name of it ("OfflineReplica"). Only the controllers of KIP-236's drafts log these."""

    topic: str
    index: int
    replicas: tuple[int, ...]
    state: str


@dataclass(frozen=True, slots=True)
class UpdateMetadataSent:
    """One partition's state in an UpdateMetadata to brokers."""

    to: tuple[int, ...]
    topic: str
    index: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    zk_version: int = 0
    versions: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class LiveBrokersSent:
    """An UpdateMetadata without partitions: which brokers are live, as each of them says too."""

    to: tuple[int, ...]
    versions: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Warned:
    """What the controller wrote to its own log."""

    text: str


Change: TypeAlias = (
    BrokerRegistered
    | BrokerChanged
    | ControllerChanged
    | TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | PartitionChanged
    | ConfigChanged
    | AclAdded
    | AclRemoved
    | MetadataHeld
    | MetadataReleased
    | PropagationChanged
    | ElectionEnqueued
    | ElectionProcessed
    | ElectionsHeld
    | ElectionsReleased
    | AutoProgressChanged
    | ZnodeWritten
    | LeaderAndIsrSent
    | StopReplicaSent
    | ReplicasMoved
    | UpdateMetadataSent
    | LiveBrokersSent
    | Warned
)


@dataclass(frozen=True, slots=True)
class Action:
    """One entry of the log.

    ``offset`` counts from 0, ``at_ms`` is the virtual clock, ``cause`` names the call or step that
    led to it ("alter_partition_reassignments", "join_isr", "auto_progress", ...).
    """

    offset: int
    at_ms: int
    cause: str
    change: Change

    @property
    def kind(self) -> str:
        """The name of the change's type: "PartitionChanged"."""
        return type(self.change).__name__

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the entry's fields, ``kind``, and those of the change under its own names."""
        return {
            "offset": self.offset,
            "at_ms": self.at_ms,
            "cause": self.cause,
            "kind": self.kind,
            **_plain(dataclasses.asdict(self.change)),
        }


def _plain(value: Any) -> Any:
    """Tuples as lists and ids as text, all the way down."""
    if isinstance(value, Stat):
        return value._asdict()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, uuid.UUID) else value


class ActionLog:
    """The ordered log: append-only, readable as a sequence."""

    def __init__(self) -> None:
        self._actions: list[Action] = []

    def append(self, at_ms: int, cause: str, change: Change) -> Action:
        action = Action(len(self._actions), at_ms, cause, change)
        self._actions.append(action)
        return action

    def since(self, offset: int) -> tuple[Action, ...]:
        """The actions from this offset on; ``len(log)`` now is the offset to ask for later."""
        return tuple(self._actions[offset:])

    def partition_changes(self, topic: str, index: int) -> tuple[PartitionChanged, ...]:
        """What happened to one partition, oldest first."""
        return tuple(
            action.change
            for action in self._actions
            if isinstance(action.change, PartitionChanged)
            and (action.change.topic, action.change.after.index) == (topic, index)
        )

    def __len__(self) -> int:
        return len(self._actions)

    def __iter__(self) -> Iterator[Action]:
        return iter(self._actions)

    @overload
    def __getitem__(self, key: int) -> Action: ...
    @overload
    def __getitem__(self, key: slice) -> list[Action]: ...
    def __getitem__(self, key: int | slice) -> Action | list[Action]:
        return self._actions[key]
