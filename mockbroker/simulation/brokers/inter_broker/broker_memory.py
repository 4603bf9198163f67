"""What a broker keeps of the requests that controllers sent it, and how it checks them.

This is the broker's own view: it is built from received requests, lost when the broker stops, and
not part of the action log. The handlers in ``mockbroker.apis`` fill it.
"""

from __future__ import annotations

import msgspec

from kproto.error_codes import ErrorCode
from kproto.znodes.kafka_znodes import broker_path
from mockbroker.simulation.state.cluster_parts import TopicPartition
from mockbroker.simulation.state.cluster_state import ClusterState

__all__ = ["BrokerMemories", "BrokerMemory", "HostedReplica", "KnownPartition"]

_NO_EPOCH = -1
_DURING_DELETE = -2


class HostedReplica(msgspec.Struct, frozen=True):
    """A partition that the broker hosts, as in the last LeaderAndIsr.

    ``target_replicas`` is None outside a reassignment, and in every version but version 3 of the
    drafts of KIP-455.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    target_replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


class KnownPartition(msgspec.Struct, frozen=True):
    """A partition in the broker's metadata, as in the last UpdateMetadata."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


class BrokerMemory(msgspec.Struct):
    """What one broker knows.

    ``live_brokers`` maps ids to (host, port). ``controller_id`` is -1 before the first request.
    """

    controller_id: int = -1
    controller_epoch: int = 0
    replicas: dict[TopicPartition, HostedReplica] = msgspec.field(default_factory=dict)
    partitions: dict[TopicPartition, KnownPartition] = msgspec.field(default_factory=dict)
    live_brokers: dict[int, tuple[str, int]] = msgspec.field(default_factory=dict)

    def refusal(self, controller_epoch: int, broker_epoch: int, own_epoch: int) -> ErrorCode | None:
        """Return the error if the whole request is refused, or None.

        A request is refused if it was meant for an earlier registration of this broker (epoch -1 is
        not checked), or if its controller has been replaced.
        """
        if broker_epoch != _NO_EPOCH and broker_epoch < own_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        return None

    def accept(self, controller_id: int, controller_epoch: int) -> None:
        """Note the controller whose request is accepted."""
        self.controller_id, self.controller_epoch = controller_id, controller_epoch

    def host(self, broker_id: int, tp: TopicPartition, replica: HostedReplica) -> ErrorCode:
        """Lead or follow a partition; return an error code.

        The leader epoch has to be new, and the broker has to be a replica or, where the request has
        target replicas, a target.
        """
        known = self.replicas.get(tp)
        if known is not None and replica.leader_epoch <= known.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if broker_id not in (*replica.replicas, *(replica.target_replicas or ())):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.replicas[tp] = replica
        return ErrorCode.NONE

    def stop(self, tp: TopicPartition, leader_epoch: int = _NO_EPOCH) -> ErrorCode:
        """Stop a replica; return an error code. A missing replica is not an error."""
        known = self.replicas.get(tp)
        named = leader_epoch not in (_NO_EPOCH, _DURING_DELETE)
        if named and known is not None and leader_epoch < known.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        self.replicas.pop(tp, None)
        return ErrorCode.NONE

    def learn(self, tp: TopicPartition, partition: KnownPartition) -> None:
        """Update the metadata of a partition. The leader -2 means that the topic is being
        deleted."""
        if partition.leader == _DURING_DELETE:
            self.partitions.pop(tp, None)
        else:
            self.partitions[tp] = partition


class BrokerMemories:
    """What each broker of one cluster received from controllers since it started."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._memories: dict[int, tuple[int, BrokerMemory]] = {}

    def epoch(self, broker_id: int) -> int:
        """Return the czxid of the broker's znode, which differs after each start; -1 without
        one."""
        stat = self._state.znode_stats.get(broker_path(broker_id))
        return -1 if stat is None else stat.czxid

    def __getitem__(self, broker_id: int) -> BrokerMemory:
        epoch = self.epoch(broker_id)
        kept = self._memories.get(broker_id)
        if kept is None or kept[0] != epoch:
            kept = self._memories[broker_id] = (epoch, BrokerMemory())
        return kept[1]
