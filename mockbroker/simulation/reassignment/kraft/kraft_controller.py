"""KRaft's reassignment controller: which table a request is decided by (``kraft_rules``).

Every partition carries its reassignment along, and each change of it completes what it can
(``elections.partition_change``). So nothing is left to do afterwards, nor when the controller
moves: most hooks of ``ReassignmentController`` are empty here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mockbroker.simulation.configs.effective import UNCLEAN_ELECTION
from mockbroker.simulation.reassignment.identities import ReassignmentIdentity, identities_in_log
from mockbroker.simulation.reassignment.kraft.kraft_rules import (
    COMPLETION,
    GUARDED,
    ON_ALTER,
    ON_CANCEL,
)
from mockbroker.simulation.reassignment.reassignment_controller import Dependencies
from mockbroker.simulation.reassignment.reassignment_requests import (
    RequestedTargets,
    alter_each,
    find_in,
    list_each,
    shipped_lists,
)
from mockbroker.simulation.reassignment.transitions import Brokers, run_first
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import rows_of_release
from mockbroker.simulation.state.actions import Change, PartitionChanged
from mockbroker.simulation.state.cluster_parts import Partition, PartitionsByTopic, TopicPartition
from mockbroker.simulation.state.results import AlterReassignmentsResult, ListReassignmentsResult
from mockbroker.simulation.state.turns import step
from mockbroker.simulation.topics.assignments import check_assignment

__all__ = ["KRaftController"]

_CAUSE: Final = "alter_partition_reassignments"


class KRaftController:
    name = "kraft"
    keeps_znodes = False

    def __init__(self, dependencies: Dependencies) -> None:
        self.controller = dependencies.controller
        self.turns = self.controller.turns
        self._dependencies = dependencies
        dependencies.release.follow(self._use_release)

    def _use_release(self, release: Release) -> None:
        self._on_alter = rows_of_release(ON_ALTER, release)
        self._on_cancel = rows_of_release(ON_CANCEL, release)

    def retire(self) -> None:
        """Nothing reacts here but what the cluster calls."""

    @step(by_controller=True)
    def alter(
        self, topics: RequestedTargets, *, allow_replication_factor_change: bool = True
    ) -> AlterReassignmentsResult:
        """Every row is decided on from the state before the request, so a partition named twice is
        changed twice over."""
        if not topics:
            # Kafka answers before it consults the controller, with the response's defaults.
            return AlterReassignmentsResult(0, "", True, ())
        before = dict(self.controller.state.topics)

        def alter_one(tp: TopicPartition, target: Brokers | None) -> None:
            partition = find_in(before, tp)
            if target is None:
                unclean = self._dependencies.configs.unclean_election_enabled(tp[0])
                facts = {UNCLEAN_ELECTION: unclean}
                run_first(
                    self.controller, _CAUSE, tp, self._on_cancel, before=partition, facts=facts
                )
                return
            check_assignment(self.controller, target)
            run_first(
                self.controller,
                _CAUSE,
                tp,
                self._on_alter,
                before=partition,
                requested_replicas=target,
                facts={
                    GUARDED: not allow_replication_factor_change,
                    COMPLETION: self._dependencies.completion,
                },
            )

        return alter_each(
            topics, alter_one, allow_replication_factor_change=allow_replication_factor_change
        )

    def list_ongoing(self, topics: PartitionsByTopic | None) -> ListReassignmentsResult:
        with self.turns.reading(by_controller=True):
            return list_each(self.controller.state.topics, topics, shipped_lists)

    def identities(self) -> Mapping[TopicPartition, ReassignmentIdentity]:
        """Return the identity of every reassignment in progress, by topic and partition."""
        return identities_in_log(self.controller.log)

    def change_partition(self, cause: str, change: PartitionChanged) -> None:
        self.controller.record(cause, change)

    def settle(self, cause: str, tp: TopicPartition) -> Partition:
        return self.controller.partition(tp)

    def after_election(self, cause: str, tp: TopicPartition) -> None:
        """The election's own change completed the reassignment if it could."""

    def last_epoch(self) -> int:
        return 0

    def start(self) -> None:
        pass

    def store(self, cause: str, change: Change) -> None:
        pass

    def broker_started(self, cause: str, broker_id: int) -> None:
        pass

    def take_over(self, cause: str) -> None:
        pass
