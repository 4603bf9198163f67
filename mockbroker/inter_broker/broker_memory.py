"""What brokers keep of the requests a controller has sent them. No rules but those of the requests.

This is a broker's own side of the story: made of bytes that came over a socket, forgotten when it
stops, and no part of the action log. ``mockbroker.apis`` reads requests into it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kproto.error_codes import ErrorCode
from mockbroker.state.model import TopicPartition

__all__ = ["BrokerMemory", "HostedReplica", "KnownPartition"]

_NO_EPOCH = -1
_DURING_DELETE = -2


@dataclass(frozen=True, slots=True)
class HostedReplica:
    """A partition it leads or follows, as LeaderAndIsr had it. ``target_replicas`` is null outside
    a reassignment, and in all but the drafts of KIP-455 at version 3."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    target_replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownPartition:
    """A partition it can tell clients about, as UpdateMetadata had it."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


@dataclass
class BrokerMemory:
    """``live_brokers``: id -> (host, port). ``controller_id`` is -1 before anything has come."""

    controller_id: int = -1
    controller_epoch: int = 0
    replicas: dict[TopicPartition, HostedReplica] = field(default_factory=dict)
    partitions: dict[TopicPartition, KnownPartition] = field(default_factory=dict)
    live_brokers: dict[int, tuple[str, int]] = field(default_factory=dict)

    def refusal(self, controller_epoch: int, broker_epoch: int, own_epoch: int) -> ErrorCode | None:
        """Why nothing of a request is done: it was meant for an earlier life of this broker (an
        epoch of -1 is none), or comes from a controller that was succeeded."""
        if broker_epoch != _NO_EPOCH and broker_epoch < own_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        return None

    def obey(self, controller_id: int, controller_epoch: int) -> None:
        self.controller_id, self.controller_epoch = controller_id, controller_epoch

    def host(self, broker_id: int, tp: TopicPartition, replica: HostedReplica) -> ErrorCode:
        """Lead or follow a partition. The leader epoch has to be new; a broker that finds itself
        neither among the replicas nor, where it can read them, among the target replicas takes no
        notice."""
        known = self.replicas.get(tp)
        if known is not None and replica.leader_epoch <= known.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if broker_id not in (*replica.replicas, *(replica.target_replicas or ())):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.replicas[tp] = replica
        return ErrorCode.NONE

    def stop(self, tp: TopicPartition, leader_epoch: int = _NO_EPOCH) -> ErrorCode:
        """Stop a replica; what there is none of is stopped already."""
        known = self.replicas.get(tp)
        named = leader_epoch not in (_NO_EPOCH, _DURING_DELETE)
        if named and known is not None and leader_epoch < known.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        self.replicas.pop(tp, None)
        return ErrorCode.NONE

    def learn(self, tp: TopicPartition, partition: KnownPartition) -> None:
        """A leader of -2 stands for a topic that is being deleted."""
        if partition.leader == _DURING_DELETE:
            self.partitions.pop(tp, None)
        else:
            self.partitions[tp] = partition
