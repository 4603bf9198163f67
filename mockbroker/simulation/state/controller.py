"""The controller's state, action log and clock, and the one place that changes the state.

Rules live in the layers above (``topics``, ``elections``, ``reassignment``, ...). They read the
state, decide, and pass a typed change to ``Controller.record``, which logs and applies it. Nothing
else writes, so the log is complete: ``replay`` of the log gives an equal state.

This module imports no rules. Layers above attach themselves through the hooks of ``Controller``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Protocol, TypeAlias

from kproto.znodes import ZnodeStore
from mockbroker.errors import ControllerDiedError, UnknownBrokerError, UnknownPartitionError
from mockbroker.simulation.state.actions import Change, PartitionChanged, SentRequest, ZnodeWritten
from mockbroker.simulation.state.cluster_parts import (
    NO_CONTROLLER,
    Broker,
    Partition,
    TopicPartition,
)
from mockbroker.simulation.state.cluster_state import ActionLog, ClusterState
from mockbroker.simulation.state.controller_znodes import ControllerZnodes
from mockbroker.simulation.state.metadata_views import MetadataView
from mockbroker.simulation.state.timers import Timers
from mockbroker.simulation.state.turns import TakeTurn, Turns, no_wait

__all__ = ["ChangeHook", "Controller", "PartitionReactions"]

ChangeHook: TypeAlias = Callable[[str, Change], None]
"""Called with the cause of a change and the change."""

CompleteRequest: TypeAlias = Callable[[ClusterState, SentRequest], Change]
"""Fills in what the layers above know of a request to brokers before it is logged."""


class PartitionReactions(Protocol):
    """How the reassignment controller changes partitions, and what it does when they change. It
    states no rules; ``reassignment`` has them."""

    def change_partition(self, cause: str, change: PartitionChanged) -> None:
        """Record a change that no reassignment made, such as a new ISR or leader."""
        ...

    def settle(self, cause: str, tp: TopicPartition) -> Partition:
        """A partition's ISR or leader may have changed: take its reassignment as far as it goes
        now. Returns the partition as it is then."""
        ...

    def after_election(self, cause: str, tp: TopicPartition) -> None:
        """A request or a config elected a leader of the partition."""
        ...

    def broker_started(self, cause: str, broker_id: int) -> None:
        """A broker is live again, and partitions without a leader have elected one if they can."""
        ...

    def take_over(self, cause: str) -> None:
        """Another broker has become the controller."""
        ...

    def store(self, cause: str, change: Change) -> None:
        """Called before a hooked change is logged: write the znodes that must precede it."""
        ...


class Controller:
    """The state of a cluster, its action log and its virtual clock.

    ``store`` is the ZooKeeper session of the controller; None in KRaft mode. ``take_turn`` encloses
    each step.

    Hooks (``add_hooks``) run around changes of the kinds they are for, and may record further
    changes. ``reactions`` returns the reassignment controller; only the parts below it change
    partitions through it, and only once it exists.
    """

    def __init__(
        self,
        cluster_id: str,
        static_configs: Mapping[str, str],
        timers: Timers,
        *,
        own_configs: Mapping[int, Mapping[str, str]] = MappingProxyType({}),
        store: ZnodeStore | None = None,
        complete_request: CompleteRequest = lambda state, change: change,
        take_turn: TakeTurn = no_wait,
        reactions: Callable[[], PartitionReactions],
    ) -> None:
        self.state = ClusterState(cluster_id, dict(static_configs), dict(own_configs))
        self.log = ActionLog()
        self.timers = timers
        self.turns = Turns(self.state, timers, take_turn)
        self._complete_request = complete_request
        self._reactions = reactions
        self._before: list[tuple[tuple[type, ...], ChangeHook]] = []
        self._after: list[tuple[tuple[type, ...], ChangeHook]] = []
        self.keeps_znodes = store is not None
        """Whether the controller stores its state in ZooKeeper."""
        if store is not None:
            self.znodes = ControllerZnodes(store, self)
            """The controller's znodes, which exist in ZooKeeper mode only."""
        self._changes_left: int | None = None

    @property
    def reactions(self) -> PartitionReactions:
        """The reassignment controller, as the parts below it see it."""
        return self._reactions()

    @property
    def now_ms(self) -> int:
        """The time of the virtual clock."""
        return self.timers.now_ms

    # ---- changes -----------------------------------------------------------------------------

    def record(self, cause: str, change: Change) -> None:
        """Log a change and apply it, running the hooks around it."""
        if not isinstance(change, ZnodeWritten):  # ControllerZnodes counts it before it writes
            self.count_change()
        if isinstance(change, SentRequest):
            change = self._complete_request(self.state, change)
        for kinds, before in self._before:
            if isinstance(change, kinds):
                before(cause, change)
        self.state.apply(self.log.append(self.timers.now_ms, cause, change))
        for kinds, after in self._after:
            if isinstance(change, kinds):
                after(cause, change)

    def note(self, cause: str, change: Change) -> None:
        """Log and apply a change that a broker makes by itself: a controller that dies after so
        many changes does not count it, and no hook runs."""
        self.state.apply(self.log.append(self.timers.now_ms, cause, change))

    def add_hooks(
        self,
        kinds: tuple[type, ...],
        *,
        before: ChangeHook | None = None,
        after: ChangeHook | None = None,
    ) -> None:
        """Call ``before`` before a change of these kinds is logged, ``after`` once it is applied.

        ``kinds`` are types of changes.
        """
        if before is not None:
            self._before.append((kinds, before))
        if after is not None:
            self._after.append((kinds, after))

    def drop_hooks(self, owner: object) -> None:
        """Drop the hooks that are methods of ``owner``."""
        for hooks in (self._before, self._after):
            hooks[:] = [each for each in hooks if getattr(each[1], "__self__", None) is not owner]

    def change_partition(self, cause: str, topic: str, after: Partition) -> None:
        """Change a partition as the reassignment controller does, unless nothing changes."""
        before = self.partition((topic, after.index))
        if after != before:
            self.reactions.change_partition(cause, PartitionChanged(topic, before, after))

    def die_after(self, changes: int) -> None:
        """Kill the controller once it has made this many more changes."""
        self._changes_left = changes

    def count_change(self) -> None:
        """Count one change that is about to be made.

        Raises ControllerDiedError if ``die_after`` allows no more changes.
        """
        if self._changes_left is None or self.state.controller_id == NO_CONTROLLER:
            return
        if self._changes_left == 0:
            self._changes_left = None
            raise ControllerDiedError(self.state.controller_id)
        self._changes_left -= 1

    # ---- queries -----------------------------------------------------------------------------

    def broker(self, broker_id: int) -> Broker:
        """Return a registered broker. Raises UnknownBrokerError."""
        broker = self.state.brokers.get(broker_id)
        if broker is None:
            known = ", ".join(map(str, self.state.brokers))
            raise UnknownBrokerError(f"there is no broker {broker_id}; the cluster has {known}")
        return broker

    def partition(self, tp: TopicPartition) -> Partition:
        """Return a partition. Raises UnknownPartitionError."""
        topic = self.state.topics.get(tp[0])
        if topic is None:
            raise UnknownPartitionError(f"there is no topic {tp[0]!r}")
        partition = topic.partition(tp[1])
        if partition is None:
            raise UnknownPartitionError(
                f"there is no partition {tp[0]}-{tp[1]}: the topic has {len(topic.partitions)}, "
                "numbered from 0"
            )
        return partition

    def metadata_view(self, broker_id: int) -> MetadataView:
        """Return the view that this broker answers Metadata (3), DescribeTopicPartitions (75) and
        DescribeCluster (60) from: current, held, or delayed by ``propagation_ms``.

        ``view.offset`` changes whenever the content may have changed, so it serves as a cache key.
        """
        return self.state.view(broker_id, self.timers.now_ms)

    def is_live(self, broker_id: int) -> bool:
        """Return whether a broker is registered and live."""
        broker = self.state.brokers.get(broker_id)
        return broker is not None and broker.live

    def is_online(self, tp: TopicPartition, broker_id: int) -> bool:
        """Return whether a broker's replica of a partition can lead, as far as the controller
        knows: the broker is live, and the replica's log directory works."""
        state = self.state
        return broker_id in state.live_ids and not state.replica_dirs.is_reported(broker_id, tp)

    def is_served(self, tp: TopicPartition, broker_id: int) -> bool:
        """Return whether a broker is live and can read and write its replica of a partition."""
        state = self.state
        return broker_id in state.live_ids and not state.replica_dirs.is_failed(broker_id, tp)

    def live_ids(self) -> tuple[int, ...]:
        """Return the ids of the live brokers, ascending."""
        return self.state.live_ids

    def partitions(self) -> Iterator[tuple[str, Partition]]:
        """Yield every partition with its topic, by topic name and index ascending.

        Partitions may be changed during the iteration.
        """
        for name in sorted(self.state.topics):
            for partition in self.state.topics[name].partitions:
                yield name, partition
