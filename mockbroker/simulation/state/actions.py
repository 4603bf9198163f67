"""Everything that can happen to a cluster, as typed values.

This module defines what a change consists of, not when it may happen. ``cluster_state`` keeps the
log of actions and applies them; the same actions in the same order give an equal state. Those with
a field that is not compared are dataclasses, since structs have none.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, get_args

import msgspec

from kproto.znodes import Stat
from mockbroker.simulation.state.cluster_parts import (
    Broker,
    DelegationToken,
    Partition,
    ScramCredential,
    Topic,
    Voter,
)
from mockbroker.simulation.state.results import AclBinding

__all__ = [
    "KINDS",
    "AclAdded",
    "AclRemoved",
    "Action",
    "AutoProgressChanged",
    "BrokerChanged",
    "BrokerRegistered",
    "Change",
    "ClientQuotaChanged",
    "ConfigChanged",
    "ControllerChanged",
    "DataActionsDropped",
    "DelegationTokenChanged",
    "ElectionEnqueued",
    "ElectionProcessed",
    "ElectionsHeld",
    "ElectionsReleased",
    "FeatureChanged",
    "LeaderAndIsrSent",
    "LiveBrokersSent",
    "LogDirFailed",
    "LogDirMended",
    "LogDirReported",
    "LogStartMoved",
    "MetadataHeld",
    "MetadataReleased",
    "PartitionChanged",
    "PartitionsAdded",
    "PropagationChanged",
    "RecordsLost",
    "RemoteStorageChanged",
    "ReplicaPlaced",
    "ReplicasMoved",
    "ScramCredentialChanged",
    "SentRequest",
    "StopReplicaSent",
    "TopicCreated",
    "TopicDeleted",
    "UpdateMetadataSent",
    "VotersChanged",
    "Warned",
    "ZnodeWritten",
]


class BrokerRegistered(msgspec.Struct, frozen=True):
    """A broker joined the cluster."""

    broker: Broker


class BrokerChanged(msgspec.Struct, frozen=True):
    """A broker stopped, started, or got another endpoint or other software."""

    before: Broker
    after: Broker


class ControllerChanged(msgspec.Struct, frozen=True):
    """Another broker became the controller. ``before`` and ``after`` are broker ids, -1 for none;
    ``epoch`` is the new controller epoch."""

    before: int
    after: int
    epoch: int


class TopicCreated(msgspec.Struct, frozen=True):
    """A topic was created with all of its partitions."""

    topic: Topic


class TopicDeleted(msgspec.Struct, frozen=True):
    """A topic and its configs were deleted."""

    name: str
    topic_id: uuid.UUID


class PartitionsAdded(msgspec.Struct, frozen=True):
    """Partitions were added to a topic."""

    topic: str
    partitions: tuple[Partition, ...]


class PartitionChanged(msgspec.Struct, frozen=True):
    """The replicas, ISR, leader or reassignment of one partition changed."""

    topic: str
    before: Partition
    after: Partition


class ConfigChanged(msgspec.Struct, frozen=True):
    """A config of a topic or broker changed; None means that it is not set."""

    resource_type: int
    resource_name: str
    name: str
    before: str | None
    after: str | None


class AclAdded(msgspec.Struct, frozen=True):
    """An access rule was created."""

    binding: AclBinding


class AclRemoved(msgspec.Struct, frozen=True):
    """An access rule was deleted."""

    binding: AclBinding


class ClientQuotaChanged(msgspec.Struct, frozen=True):
    """A quota of an entity changed; None means that there is none. ``entity`` has (type, name)
    pairs; the name None is the default."""

    entity: tuple[tuple[str, str | None], ...]
    key: str
    before: float | None
    after: float | None


class ScramCredentialChanged(msgspec.Struct, frozen=True):
    """The SCRAM credential of a user changed; None means that there is none."""

    user: str
    mechanism: str
    before: ScramCredential | None
    after: ScramCredential | None


class DelegationTokenChanged(msgspec.Struct, frozen=True):
    """A delegation token was created, renewed, shortened or removed; None means that there is
    none."""

    token_id: str
    before: DelegationToken | None
    after: DelegationToken | None


class FeatureChanged(msgspec.Struct, frozen=True):
    """A feature of the cluster has another finalized level; 0 is off."""

    feature: str
    before: int
    after: int


class VotersChanged(msgspec.Struct, frozen=True):
    """The metadata quorum has other voters."""

    before: tuple[Voter, ...]
    after: tuple[Voter, ...]


class MetadataHeld(msgspec.Struct, frozen=True):
    """The metadata of a broker is frozen."""

    broker_id: int


class MetadataReleased(msgspec.Struct, frozen=True):
    """The metadata of a broker follows the cluster again."""

    broker_id: int


class PropagationChanged(msgspec.Struct, frozen=True):
    """The delay until brokers learn of changes was set; 0 stands for no delay."""

    delay_ms: int


class ElectionEnqueued(msgspec.Struct, frozen=True):
    """An election was added to the controller's queue; with KIP-183 the flag is set. ``topics`` is
    None for the content of ``/admin/preferred_replica_election`` at its turn."""

    election: int
    election_type: int
    topics: tuple[tuple[str, tuple[int, ...]], ...] | None


class ElectionProcessed(msgspec.Struct, frozen=True):
    """An election was held; with KIP-183 the flag is cleared. ``preempted``: the controller
    resigned before it was held."""

    election: int
    preempted: bool = False


class ElectionsHeld(msgspec.Struct, frozen=True):
    """The controller leaves elections in its queue from now on."""


class ElectionsReleased(msgspec.Struct, frozen=True):
    """The controller processes the elections in its queue again."""


class AutoProgressChanged(msgspec.Struct, frozen=True):
    """The interval at which a replica joins an ISR by itself was set; None is never."""

    interval_ms: int | None


class ZnodeWritten(msgspec.Struct, frozen=True):
    """A znode was written, created or deleted; a text of None means that it does not exist.
    ``stat`` is its new stat, whose ``czxid`` differs each time the path is created; None if
    deleted."""

    path: str
    before: str | None
    after: str | None
    stat: Stat | None = None


@dataclass(frozen=True, slots=True)
class LeaderAndIsrSent:
    """A LeaderAndIsr with the state of one partition. ``target_replicas`` is null outside a
    reassignment, and exists in the drafts of KIP-455 only; ``adding`` and ``removing`` exist since
    Kafka 2.4.

    This and the requests below have one entry for each partition, although one request carries many
    (``mockbroker.simulation.brokers.inter_broker.requests``). ``versions`` has the version sent to
    each broker of ``to``, or -1 if both ends know no common version, so that nothing is sent. It is
    filled in when the entry is recorded, and not compared."""

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
    recovering: bool = False
    versions: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class StopReplicaSent:
    """A StopReplica for one partition. ``delete``: its data is deleted, too. ``leader_epoch`` None
    is that of the partition; -2 means that the topic is being deleted (KIP-570)."""

    to: tuple[int, ...]
    topic: str
    index: int
    delete: bool
    leader_epoch: int | None = None
    versions: tuple[int, ...] = field(default=(), compare=False)


class ReplicasMoved(msgspec.Struct, frozen=True):
    """Replicas of one partition entered a state of the controller's replica state machine, named as
    in Kafka ("OfflineReplica"). Only the controllers of KIP-236's drafts log these."""

    topic: str
    index: int
    replicas: tuple[int, ...]
    state: str


@dataclass(frozen=True, slots=True)
class UpdateMetadataSent:
    """An UpdateMetadata with the state of one partition."""

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
    """An UpdateMetadata without partitions, which only lists the live brokers."""

    to: tuple[int, ...]
    versions: tuple[int, ...] = field(default=(), compare=False)


class LogDirFailed(msgspec.Struct, frozen=True):
    """A log directory of a broker failed: the broker does not serve the replicas in it."""

    broker_id: int
    log_dir: str


class LogDirReported(msgspec.Struct, frozen=True):
    """The controller learned that a log directory failed: the replicas in it are offline."""

    broker_id: int
    log_dir: str


class LogDirMended(msgspec.Struct, frozen=True):
    """A log directory that had failed works again."""

    broker_id: int
    log_dir: str


class ReplicaPlaced(msgspec.Struct, frozen=True):
    """A broker with several log directories put its replica of a partition into one of them."""

    topic: str
    index: int
    broker_id: int
    log_dir: str


class Warned(msgspec.Struct, frozen=True):
    """The controller logged a warning."""

    text: str


class LogStartMoved(msgspec.Struct, frozen=True):
    """The first offset of a partition's log rose from ``before`` to ``after``: the records between
    them are gone."""

    topic: str
    index: int
    before: int
    after: int


class RemoteStorageChanged(msgspec.Struct, frozen=True):
    """Records of a partition moved to remote storage: up to ``highest_remote_offset`` it has them,
    before ``local_start_offset`` nothing else has. -1: it has none."""

    topic: str
    index: int
    local_start_offset: int
    highest_remote_offset: int


class RecordsLost(msgspec.Struct, frozen=True):
    """A log was cut: the records from ``first_offset`` to ``last_offset`` are gone.
    ``acknowledged`` of them, the oldest, were below the high watermark."""

    topic: str
    index: int
    first_offset: int
    last_offset: int
    acknowledged: int


class DataActionsDropped(msgspec.Struct, frozen=True):
    """The ring of the events of logs is full: from now on it keeps the newest ``kept``."""

    kept: int


SentRequest: TypeAlias = LeaderAndIsrSent | StopReplicaSent | UpdateMetadataSent | LiveBrokersSent
"""A request that a controller sends to brokers."""

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
    | ClientQuotaChanged
    | ScramCredentialChanged
    | DelegationTokenChanged
    | FeatureChanged
    | VotersChanged
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
    | LogDirFailed
    | LogDirReported
    | LogDirMended
    | ReplicaPlaced
    | Warned
    | LogStartMoved
    | RemoteStorageChanged
    | RecordsLost
    | DataActionsDropped
)

KINDS: Final = tuple(kind.__name__ for kind in get_args(Change))
"""The names of all kinds of changes."""


class Action(msgspec.Struct, frozen=True):
    """One entry of the log.

    ``offset`` counts from 0, ``at_ms`` is the time of the virtual clock, ``cause`` names the
    request or step that caused it ("alter_partition_reassignments", "join_isr", "auto_progress",
    ...).
    """

    offset: int
    at_ms: int
    cause: str
    change: Change

    @property
    def kind(self) -> str:
        """The name of the type of the change, such as "PartitionChanged"."""
        return type(self.change).__name__

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object with the fields of the entry, ``kind`` and the fields of the
        change."""
        found: dict[str, Any] = msgspec.json.decode(self.to_json())
        return found

    def to_json(self) -> bytes:
        """Return the text of that object. A command can have thousands of actions, of which no
        objects are made."""
        entry = {"offset": self.offset, "at_ms": self.at_ms, "cause": self.cause, "kind": self.kind}
        change: Any = self.change
        if isinstance(change, ZnodeWritten) and change.stat is not None:
            change = {**msgspec.structs.asdict(change), "stat": change.stat._asdict()}
        head, rest = msgspec.json.encode(entry), msgspec.json.encode(change, enc_hook=_plain)
        return head if rest == b"{}" else head[:-1] + b"," + rest[1:]


def _plain(value: object) -> dict[str, Any]:
    """Return the fields of the one value in changes that is not a struct."""
    assert isinstance(value, Topic)
    return {"name": value.name, "topic_id": value.topic_id, "partitions": value.partitions}
