"""The interface between a cluster and its reassignment controller. It states no rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from mockbroker.simulation.brokers.brokers import Brokers
from mockbroker.simulation.brokers.log_dir_failures import LogDirFailures
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.elections.partition_change import CompletionRows
from mockbroker.simulation.elections.queue import ElectionQueue
from mockbroker.simulation.reassignment.identities import ReassignmentIdentity
from mockbroker.simulation.reassignment.reassignment_requests import RequestedTargets
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.actions import (
    BrokerChanged,
    BrokerRegistered,
    ConfigChanged,
    ControllerChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from mockbroker.simulation.state.cluster_parts import PartitionsByTopic, TopicPartition
from mockbroker.simulation.state.controller import Controller, PartitionReactions
from mockbroker.simulation.state.results import AlterReassignmentsResult, ListReassignmentsResult
from mockbroker.simulation.topics.administration import Topics

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
    reassignments.
    """

    controller: Controller
    configs: EffectiveConfigs
    topics: Topics
    elections: ElectionQueue
    brokers: Brokers
    log_dir_failures: LogDirFailures
    completion: CompletionRows
    release: Release


class ReassignmentController(PartitionReactions, Protocol):
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

    def retire(self) -> None:
        """React to nothing from now on: another controller has taken over."""
        ...

    def last_epoch(self) -> int:
        """The epoch of the last controller before this cluster came up; 0 if there was none."""
        ...

    def start(self) -> None:
        """The cluster comes up: brokers and the controller are recorded; no topics are yet."""
        ...

    def alter(
        self, topics: RequestedTargets, *, allow_replication_factor_change: bool = True
    ) -> AlterReassignmentsResult:
        """Start, change or (None) cancel reassignments, as one step. Returns one row a requested
        partition, in order."""
        ...

    def list_ongoing(self, topics: PartitionsByTopic | None) -> ListReassignmentsResult:
        """The reassignments in progress as the controller remembers them; None requests all."""
        ...

    def identities(self) -> Mapping[TopicPartition, ReassignmentIdentity]:
        """Return the identity of every reassignment in progress, by topic and partition."""
        ...
