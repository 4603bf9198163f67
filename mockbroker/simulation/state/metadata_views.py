"""The metadata of one broker, which may be older than the controller's state.

Metadata and DescribeTopicPartitions are answered from the view of the broker that receives the
request, ListPartitionReassignments always from the controller's state; this is the race of KIP-860.
A view is immutable.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.state.cluster_parts import NO_LEADER, Broker, Partition, Topic
from mockbroker.simulation.state.replica_dirs import ReplicaDirs

__all__ = ["MetadataView", "ViewHistory"]


@dataclass(frozen=True, slots=True)
class MetadataView:
    """The state of the cluster as one broker knows it.

    ``offset`` is the length of the action log that it reflects, so equal offsets mean equal
    content. ``controller_id`` is the last controller; Metadata has ``shown_controller_id``.
    """

    offset: int
    cluster_id: str
    controller_id: int
    brokers: Mapping[int, Broker]
    topics: Mapping[str, Topic]
    _names: Mapping[uuid.UUID, str] = field(repr=False, compare=False)
    _replica_dirs: ReplicaDirs = field(repr=False, compare=False)

    def live_brokers(self) -> tuple[Broker, ...]:
        """Return the brokers in Metadata, ids ascending."""
        return tuple(broker for broker in self.brokers.values() if broker.live)

    def registered_brokers(self) -> tuple[Broker, ...]:
        """Return the live and the fenced brokers, ids ascending."""
        return tuple(broker for broker in self.brokers.values() if not broker.unregistered)

    def topic_by_id(self, topic_id: uuid.UUID) -> Topic | None:
        """Return the topic of this id, or None."""
        name = self._names.get(topic_id)
        return None if name is None else self.topics[name]

    def shown_controller_id(self, *, forwarding: bool) -> int:
        """Return Metadata's ``controller_id``, or -1 for none.

        With forwarding (KRaft) any live broker forwards requests to the controller: this is the
        controller if it is live, else the first live broker.
        """
        if self.is_live(self.controller_id):
            return self.controller_id
        live = self.live_brokers()
        return live[0].broker_id if forwarding and live else -1

    def offline_replicas(
        self, topic: str, partition: Partition, listener: str = ""
    ) -> tuple[int, ...]:
        """Return the replicas on brokers that are not live, which clients of the listener do not
        reach, or in directories that have failed, as far as the controller knows, in replica
        order."""
        tp = (topic, partition.index)
        return tuple(
            replica
            for replica in partition.replicas
            if not self.reaches(replica, listener) or self._replica_dirs.is_reported(replica, tp)
        )

    def reaches(self, broker_id: int, listener: str) -> bool:
        """Return whether clients of a listener, "" for the only one, can reach a broker: it is live
        and advertises that listener."""
        broker = self.brokers.get(broker_id)
        return (
            broker is not None and broker.live and (not listener or broker.at(listener) is not None)
        )

    def partition_error(self, partition: Partition) -> ErrorCode:
        """Return the error code in Metadata: LEADER_NOT_AVAILABLE for an offline partition."""
        if partition.leader == NO_LEADER or not self.is_live(partition.leader):
            return ErrorCode.LEADER_NOT_AVAILABLE
        return ErrorCode.NONE

    def is_live(self, broker_id: int) -> bool:
        """Return whether a broker of this id is live."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.live


class ViewHistory(msgspec.Struct):
    """Past views that brokers may still have, while changes take ``delay_ms`` of the virtual clock
    to reach them. Without a delay nothing is kept.

    Only the last change of each millisecond counts. When the delay grows, brokers keep what they
    know already.
    """

    delay_ms: int = 0
    _known: MetadataView | None = None
    """The view of every broker when the delay was last set."""
    _past: list[tuple[int, MetadataView]] = []
    """Pairs of (start time, view), oldest first, without the present view."""
    _changed_ms: int = 0
    """The start time of the present view."""

    def set_delay(self, delay_ms: int, now_ms: int, current: MetadataView) -> None:
        """Change the delay from now on."""
        known = self.view(now_ms) or current
        self._past = [each for each in self._past if each[0] + self.delay_ms > now_ms]
        self.delay_ms, self._known = delay_ms, known if delay_ms else None
        self._changed_ms = now_ms
        if not delay_ms:
            self._past = []

    def before_change(self, at_ms: int, current: Callable[[], MetadataView]) -> None:
        """Keep the present view, which is about to change. To be called while there is a delay."""
        if at_ms > self._changed_ms:
            self._past.append((self._changed_ms, current()))
            arrived = [when for when, _ in self._past if when + self.delay_ms <= at_ms]
            if arrived:
                del self._past[: len(arrived) - 1]
                self._known = self._past[0][1]
        self._changed_ms = at_ms

    def view(self, now_ms: int) -> MetadataView | None:
        """Return the view of every broker at this time; None for the present one."""
        horizon = now_ms - self.delay_ms
        if not self.delay_ms or self._changed_ms <= horizon:
            return None
        arrived = [view for when, view in self._past if when <= horizon]
        return arrived[-1] if arrived else self._known

    def next_arrival(self, now_ms: int) -> int | None:
        """Return when the next change reaches brokers; None if they have the present view."""
        if self.view(now_ms) is None:
            return None
        changes = (*(when for when, _ in self._past), self._changed_ms)
        return min(when + self.delay_ms for when in changes if when + self.delay_ms > now_ms)
