"""What one broker knows of the cluster, which may be older than what the controller knows.

Metadata and DescribeTopicPartitions are answered from the view of the broker that was asked, while
ListPartitionReassignments is always the controller's: the race of KIP-860. A view is immutable;
this file knows nothing of how it comes to be outdated.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from kproto.error_codes import ErrorCode
from mockbroker.model import NO_LEADER, Broker, Partition, Topic

__all__ = ["MetadataView"]


@dataclass(frozen=True, slots=True)
class MetadataView:
    """A broker's picture of the cluster.

    ``offset`` is the length of the action log it reflects: equal offsets mean equal content.
    ``controller_id`` is the actual controller; what Metadata shows is ``shown_controller_id``.
    """

    offset: int
    cluster_id: str
    controller_id: int
    brokers: Mapping[int, Broker]
    topics: Mapping[str, Topic]
    _names: Mapping[uuid.UUID, str] = field(repr=False, compare=False)

    def live_brokers(self) -> tuple[Broker, ...]:
        """The brokers Metadata lists, ids ascending."""
        return tuple(broker for broker in self.brokers.values() if broker.live)

    def topic_by_id(self, topic_id: uuid.UUID) -> Topic | None:
        name = self._names.get(topic_id)
        return None if name is None else self.topics[name]

    def shown_controller_id(self, *, forwarding: bool) -> int:
        """Metadata's ``controller_id``; -1 when there is none.

        With forwarding (KRaft) any live broker will do, as each passes on what is the controller's:
        the controller itself when it is live, else the first that is.
        """
        if self._is_live(self.controller_id):
            return self.controller_id
        live = self.live_brokers()
        return live[0].broker_id if forwarding and live else -1

    def offline_replicas(self, partition: Partition) -> tuple[int, ...]:
        """The replicas on brokers that are not live, in replica order."""
        return tuple(replica for replica in partition.replicas if not self._is_live(replica))

    def partition_error(self, partition: Partition) -> ErrorCode:
        """The partition's error code in Metadata: LEADER_NOT_AVAILABLE while it is offline."""
        if partition.leader == NO_LEADER or not self._is_live(partition.leader):
            return ErrorCode.LEADER_NOT_AVAILABLE
        return ErrorCode.NONE

    def _is_live(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.live
