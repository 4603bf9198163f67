"""What one broker knows of the cluster, which may be older than what the controller knows.

Metadata and DescribeTopicPartitions are answered from the view of the broker that was asked, while
ListPartitionReassignments is always the controller's: the race of KIP-860. A view is immutable;
this file knows nothing of how it comes to be outdated.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kproto.error_codes import ErrorCode
from mockbroker.state.model import NO_LEADER, Broker, Partition, Topic

__all__ = ["MetadataView", "ViewHistory"]


@dataclass(frozen=True, slots=True)
class MetadataView:
    """A broker's picture of the cluster.

    ``offset`` is the length of the action log it reflects: equal offsets mean equal content.
    ``controller_id`` is the last controller that there was; what Metadata shows is
    ``shown_controller_id``.
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


@dataclass(slots=True)
class ViewHistory:
    """What the cluster was at moments that some broker may still be at, while changes take
    ``delay_ms`` of the virtual clock to come to every broker. Without a delay nothing is kept.

    Of the changes of one millisecond only the last counts. No broker forgets: when the delay grows,
    what was known stays known.
    """

    delay_ms: int = 0
    _known: MetadataView | None = None
    """What every broker knew when the delay was set last."""
    _past: list[tuple[int, MetadataView]] = field(default_factory=list)
    """(when it came to be, what it was), oldest first; the present is not among them."""
    _changed_ms: int = 0
    """When the present came to be."""

    def set_delay(self, delay_ms: int, now_ms: int, current: MetadataView) -> None:
        """From now on. Goes into effect as the change of a moment like any other."""
        known = self.view(now_ms) or current
        self._past = [each for each in self._past if each[0] + self.delay_ms > now_ms]
        self.delay_ms, self._known = delay_ms, known if delay_ms else None
        if not delay_ms:
            self._past = []

    def before_change(self, at_ms: int, current: Callable[[], MetadataView]) -> None:
        """The present is about to become the past."""
        if self.delay_ms and at_ms > self._changed_ms:
            self._past.append((self._changed_ms, current()))
            arrived = [when for when, _ in self._past if when + self.delay_ms <= at_ms]
            if arrived:
                del self._past[: len(arrived) - 1]
                self._known = self._past[0][1]
        self._changed_ms = at_ms

    def view(self, now_ms: int) -> MetadataView | None:
        """What every broker knows by now; None for the present."""
        horizon = now_ms - self.delay_ms
        if not self.delay_ms or self._changed_ms <= horizon:
            return None
        arrived = [view for when, view in self._past if when <= horizon]
        return arrived[-1] if arrived else self._known

    def next_arrival(self, now_ms: int) -> int | None:
        """When brokers next hear of something; None when they know the present."""
        if self.view(now_ms) is None:
            return None
        changes = (*(when for when, _ in self._past), self._changed_ms)
        return min(when + self.delay_ms for when in changes if when + self.delay_ms > now_ms)
