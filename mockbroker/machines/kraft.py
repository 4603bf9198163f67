"""Kafka's own machine, as KRaft controllers have it: ``reassignment`` and ``partition_change``.

Every partition carries its reassignment along, and each change of it completes what it can. So
nothing is left to do afterwards, nor when the controller moves.
"""

from __future__ import annotations

from collections.abc import Sequence

from kproto.znodes import WatchedEvent
from mockbroker import reassignment
from mockbroker.actions import Change, PartitionChanged
from mockbroker.controller import Controller
from mockbroker.model import Partition, TopicPartition
from mockbroker.results import AlterReassignmentsResult, ListReassignmentsResult

__all__ = ["KRaft"]


class KRaft:
    name = "kraft"
    keeps_znodes = False

    def last_epoch(self, controller: Controller) -> int:
        return 0

    def start(self, controller: Controller) -> None:
        pass

    def alter(
        self,
        controller: Controller,
        topics: Sequence[tuple[str, Sequence[tuple[int, Sequence[int] | None]]]],
        *,
        allow_replication_factor_change: bool,
    ) -> AlterReassignmentsResult:
        return reassignment.alter(
            controller, topics, allow_replication_factor_change=allow_replication_factor_change
        )

    def list_ongoing(
        self, controller: Controller, topics: Sequence[tuple[str, Sequence[int]]] | None
    ) -> ListReassignmentsResult:
        return reassignment.list_ongoing(controller, topics)

    def store(self, controller: Controller, cause: str, change: Change) -> None:
        pass

    def announce(self, controller: Controller, cause: str, change: Change) -> None:
        pass

    def react(self, controller: Controller, event: WatchedEvent) -> None:
        pass

    def change_partition(
        self, controller: Controller, cause: str, change: PartitionChanged
    ) -> None:
        controller.record(cause, change)

    def settle(self, controller: Controller, cause: str, tp: TopicPartition) -> Partition:
        return controller.state.topics[tp[0]].partitions[tp[1]]

    def broker_started(self, controller: Controller, cause: str, broker_id: int) -> None:
        pass

    def take_over(self, controller: Controller, cause: str) -> None:
        pass
