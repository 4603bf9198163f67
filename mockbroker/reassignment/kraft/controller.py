"""Kafka's own machine, as KRaft controllers have it: what is asked of which table (``kraft_rows``).

Every partition carries its reassignment along, and each change of it completes what it can
(``partition_change``). So nothing is left to do afterwards, nor when the controller moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kproto.znodes import WatchedEvent
from mockbroker.configs.effective import unclean_election_enabled
from mockbroker.errors import Refusal
from mockbroker.reassignment.answers import find_in, refused
from mockbroker.reassignment.kraft.tables import GUARDED, ON_ALTER, ON_CANCEL, UNCLEAN_ALLOWED
from mockbroker.reassignment.transitions import run_first
from mockbroker.state.actions import Change, PartitionChanged
from mockbroker.state.controller import Controller
from mockbroker.state.model import Partition, Topic, TopicPartition
from mockbroker.state.results import (
    AlterReassignmentsResult,
    ListReassignmentsResult,
    OngoingReassignment,
    OngoingTopic,
    PartitionResult,
    TopicResult,
)
from mockbroker.topics.assignments import check_assignment

__all__ = ["KRaftController"]

_CAUSE: Final = "alter_partition_reassignments"


class KRaftController:
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
        """Each partition stands alone: a refused one stops no other. Every row is decided on from
        the state before the request, so a partition named twice is changed twice over."""
        known = dict(controller.state.topics)
        facts = {GUARDED: not allow_replication_factor_change}
        results = tuple(
            TopicResult(
                name,
                tuple(
                    _alter_one(controller, known, (name, index), target, facts)
                    for index, target in partitions
                ),
            )
            for name, partitions in topics
        )
        if not results:
            # Answered before the machine is asked, with the response's defaults.
            return AlterReassignmentsResult(0, "", True, ())
        return AlterReassignmentsResult(0, None, allow_replication_factor_change, results)

    def list_ongoing(
        self, controller: Controller, topics: Sequence[tuple[str, Sequence[int]]] | None
    ) -> ListReassignmentsResult:
        """Only what is in progress; None asks for all, names ascending."""
        known = controller.state.topics
        wanted: Iterable[tuple[Topic, Iterable[int]]]
        if topics is None:
            wanted = ((known[name], range(len(known[name].partitions))) for name in sorted(known))
        else:
            wanted = ((known[name], indexes) for name, indexes in topics if name in known)
        rows = (OngoingTopic(topic.name, _ongoing(topic, indexes)) for topic, indexes in wanted)
        return ListReassignmentsResult(0, None, tuple(row for row in rows if row.partitions))

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


def _alter_one(
    controller: Controller,
    known: Mapping[str, Topic],
    tp: TopicPartition,
    target: Sequence[int] | None,
    facts: Mapping[str, Any],
) -> PartitionResult:
    name, index = tp
    try:
        before = find_in(known, tp)
        unclean = unclean_election_enabled(controller.state, name)
        facts = {**facts, UNCLEAN_ALLOWED: unclean}
        if target is None:
            run_first(controller, _CAUSE, tp, ON_CANCEL, before=before, facts=facts)
        else:
            check_assignment(controller, target)
            asked = tuple(target)
            run_first(
                controller,
                _CAUSE,
                tp,
                ON_ALTER,
                before=before,
                requested_replicas=asked,
                facts=facts,
            )
    except Refusal as refusal:
        return refused(index, refusal)
    return PartitionResult(index)


def _ongoing(topic: Topic, indexes: Iterable[int]) -> tuple[OngoingReassignment, ...]:
    found = (topic.partition(index) for index in indexes)
    return tuple(
        OngoingReassignment(p.index, p.replicas, p.adding, p.removing)
        for p in found
        if p is not None and p.reassigning
    )
