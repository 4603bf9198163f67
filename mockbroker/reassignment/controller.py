"""What the rest of the cluster asks of a machine. No rules here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kproto.znodes import WatchedEvent
from mockbroker.state.actions import Change, PartitionChanged
from mockbroker.state.model import Partition, TopicPartition
from mockbroker.state.results import AlterReassignmentsResult, ListReassignmentsResult

if TYPE_CHECKING:
    from mockbroker.state.controller import Controller

__all__ = ["ReassignmentController"]


class ReassignmentController(Protocol):
    """Stateless. Each hook is called where partitions react, and records what follows."""

    @property
    def name(self) -> str: ...

    @property
    def keeps_znodes(self) -> bool:
        """Whether it needs a ZooKeeper."""
        ...

    def last_epoch(self, controller: Controller) -> int:
        """Of the controllers there have been before this cluster came up; 0 for none."""
        ...

    def start(self, controller: Controller) -> None:
        """The cluster comes up: brokers and controller are on record, and no topic is."""
        ...

    def alter(
        self,
        controller: Controller,
        topics: Sequence[tuple[str, Sequence[tuple[int, Sequence[int] | None]]]],
        *,
        allow_replication_factor_change: bool,
    ) -> AlterReassignmentsResult:
        """Start, change or (None) cancel; one row a requested partition, in order."""
        ...

    def list_ongoing(
        self, controller: Controller, topics: Sequence[tuple[str, Sequence[int]]] | None
    ) -> ListReassignmentsResult:
        """What is in progress as the controller remembers it; None asks for all."""
        ...

    def store(self, controller: Controller, cause: str, change: Change) -> None:
        """Called before every change is logged: write what must be on record first."""
        ...

    def announce(self, controller: Controller, cause: str, change: Change) -> None:
        """Called after every change was made: tell the brokers what they have to know."""
        ...

    def react(self, controller: Controller, event: WatchedEvent) -> None:
        """Somebody, perhaps this controller itself, changed a znode that is watched."""
        ...

    def change_partition(
        self, controller: Controller, cause: str, change: PartitionChanged
    ) -> None:
        """Record a change that something else than a reassignment made: an ISR, a leader."""
        ...

    def settle(self, controller: Controller, cause: str, tp: TopicPartition) -> Partition:
        """A partition's ISR or leader may have changed: do all that can be done now about its
        reassignment. Returns what it is then."""
        ...

    def broker_started(self, controller: Controller, cause: str, broker_id: int) -> None:
        """A broker is live again, and partitions without a leader have one where they can."""
        ...

    def take_over(self, controller: Controller, cause: str) -> None:
        """Another broker has become the controller."""
        ...
