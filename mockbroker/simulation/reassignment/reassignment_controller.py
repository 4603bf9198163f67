"""The interface between a cluster and its reassignment controller. It states no rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

import msgspec

from kproto.znodes import WatchedEvent
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.elections.partition_change import CompletionRows
from mockbroker.simulation.elections.queue import ElectionQueue
from mockbroker.simulation.reassignment.identities import ReassignmentIdentity
from mockbroker.simulation.reassignment.reassignment_requests import RequestedTargets
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.actions import (
    BrokerChanged,
    BrokerRegistered,
    Change,
    ConfigChanged,
    ControllerChanged,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from mockbroker.simulation.state.cluster_parts import Partition, PartitionsByTopic, TopicPartition
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.results import AlterReassignmentsResult, ListReassignmentsResult
from mockbroker.simulation.topics.administration import TopicAdministration

__all__ = ["HOOKED_CHANGES", "Dependencies", "ReassignmentController"]

HOOKED_CHANGES: Final = (
    BrokerRegistered,
    BrokerChanged,
    ControllerChanged,
    TopicCreated,
    TopicDeleted,
    PartitionsAdded,
    ConfigChanged,
)
"""The kinds of changes that ``store`` and ``announce`` are called for."""


class Dependencies(msgspec.Struct, frozen=True):
    """The parts of a cluster that a reassignment controller uses.

    ``release`` selects the rows of KRaft's tables, and ``completion`` says when KRaft completes
    reassignments. ``move_controller`` makes a broker the controller; it is called with the broker
    id and a cause. ``report_log_dirs`` lets the controller learn which log directories of a broker
    have failed; it is called with a cause and the broker id.
    """

    controller: Controller
    configs: EffectiveConfigs
    topics: TopicAdministration
    elections: ElectionQueue
    completion: CompletionRows
    release: Release
    move_controller: Callable[[int, str], None]
    report_log_dirs: Callable[[str, int], None]


class ReassignmentController(Protocol):
    """How a controller reassigns partitions.

    It has no state of its own. The cluster calls each hook where partitions may have to react; the
    hook records the changes that follow.
    """

    @property
    def name(self) -> str: ...

    @property
    def keeps_znodes(self) -> bool:
        """Whether it keeps its metadata in ZooKeeper."""
        ...

    def last_epoch(self) -> int:
        """The epoch of the last controller before this cluster came up; 0 if there was none."""
        ...

    def start(self) -> None:
        """The cluster comes up: brokers and the controller are recorded; no topics are yet."""
        ...

    def alter(
        self,
        topics: RequestedTargets,
        *,
        allow_replication_factor_change: bool,
    ) -> AlterReassignmentsResult:
        """Start, change or cancel reassignments. Returns one row a requested partition, in
        order."""
        ...

    def list_ongoing(self, topics: PartitionsByTopic | None) -> ListReassignmentsResult:
        """The reassignments in progress as the controller remembers them; None requests all."""
        ...

    def identities(self) -> Mapping[TopicPartition, ReassignmentIdentity]:
        """Return the identity of every reassignment in progress, by topic and partition."""
        ...

    def store(self, cause: str, change: Change) -> None:
        """Called before a hooked change is logged: write the znodes that must precede it."""
        ...

    def announce(self, cause: str, change: Change) -> None:
        """Called after a hooked change: send brokers what they have to learn of it."""
        ...

    def react(self, event: WatchedEvent) -> None:
        """A watched znode has changed; the controller itself may have written it."""
        ...

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
