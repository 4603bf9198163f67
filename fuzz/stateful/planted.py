"""Deliberate defects in the cluster, one at a time, to show that the machine finds them.

Each is a plausible mistake: an epoch not increased, an action not logged, a guard without effect.
``found`` returns whether the machine finds one within a number of examples of a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from msgspec.structs import force_setattr, replace

from fuzz.stateful.machine import machine_of
from fuzz.stateful.planted_data import DATA_DEFECTS as _OF_DATA
from fuzz.stateful.transaction_rules import data_machine_of
from mockbroker.apis import Session
from mockbroker.profiles import profile
from mockbroker.serving.delivery import ResponseCache
from mockbroker.simulation.elections import elect as elections
from mockbroker.simulation.elections import partition_change
from mockbroker.simulation.elections.partition_change import CompletionRows, Election
from mockbroker.simulation.reassignment.kraft import kraft_rules as kraft_rows
from mockbroker.simulation.reassignment.kraft.kraft_controller import KRaftController
from mockbroker.simulation.reassignment.transitions import Transition, write_state_znode
from mockbroker.simulation.reassignment.zookeeper_controller import ZooKeeperController
from mockbroker.simulation.releases.rows import Effect, Row
from mockbroker.simulation.state.actions import Action, PartitionChanged, TopicDeleted
from mockbroker.simulation.state.cluster_parts import Partition
from mockbroker.simulation.state.cluster_state import ClusterState
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.results import ListReassignmentsResult
from scripts.mutate_rows import all_rules

__all__ = ["DATA_DEFECTS", "DEFECTS", "Defect", "found"]


@dataclass(frozen=True, slots=True)
class Defect:
    """``says`` describes the defect, which is present while ``plant`` is entered. ``of_data``:
    producers, consumers and groups are needed to find it."""

    name: str
    says: str
    profile: str
    plant: Callable[[], AbstractContextManager[object]]
    of_data: bool = False


def found(bug: Defect, *, number: int, examples: int) -> str | None:
    """Return the machine's failure for the defect, None if it finds nothing."""
    made = data_machine_of if bug.of_data else machine_of
    machine = seed(number)(made(profile(bug.profile)))
    limits = settings(
        max_examples=examples,
        stateful_step_count=30,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with bug.plant():
        try:
            run_state_machine_as_test(machine, settings=limits)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return None


@contextmanager
def _effect_replaced(effect: Effect[Any], wrong: Effect[Any]) -> Iterator[None]:
    """Replace an effect in every row that has it."""
    rules = [place.rule for place in all_rules()]
    rows = [(each, each.then) for each in rules if isinstance(each, Row) and effect in each.then]
    for row, effects in rows:
        force_setattr(row, "then", tuple(wrong if own is effect else own for own in effects))
    try:
        yield
    finally:
        for row, effects in rows:
            force_setattr(row, "then", effects)


# ---- the defects ---------------------------------------------------------------------------------


def _epoch_stays() -> AbstractContextManager[object]:
    with_epochs = partition_change.with_epochs

    def wrong(before: Partition, after: Partition) -> Partition:
        return replace(with_epochs(before, after), leader_epoch=before.leader_epoch)

    return patch.object(partition_change, "with_epochs", wrong)


def _isr_keeps_the_removed() -> AbstractContextManager[object]:
    complete = partition_change.complete

    def wrong(partition: Partition, rows: CompletionRows) -> Partition:
        after = complete(partition, rows)
        return after if after is partition else replace(after, isr=partition.isr)

    return patch.object(partition_change, "complete", wrong)


def _not_logged() -> AbstractContextManager[object]:
    record = Controller.record

    def wrong(self: Controller, cause: str, change: Any) -> None:
        if isinstance(change, PartitionChanged) and cause == "leave_isr":
            self.state.apply(Action(len(self.log) - 1, self.now_ms, cause, change))
        else:
            record(self, cause, change)

    return patch.object(Controller, "record", wrong)


def _cancel_keeps_the_added() -> AbstractContextManager[object]:
    def wrong(transition: Transition) -> None:
        transition.now = replace(transition.now, adding=(), removing=())

    return _effect_replaced(kraft_rows.remove_adding, wrong)


def _failover_forgets() -> AbstractContextManager[object]:
    recovered = ZooKeeperController.recovered

    def wrong(self: ZooKeeperController, *arguments: Any) -> Partition:
        return replace(recovered(self, *arguments), adding=(), removing=())

    return patch.object(ZooKeeperController, "recovered", wrong)


@contextmanager
def _guard_is_off() -> Iterator[None]:
    guard = kraft_rows.ON_ALTER[0]
    when = guard.when
    force_setattr(guard, "when", lambda _: False)
    try:
        yield
    finally:
        force_setattr(guard, "when", when)


def _old_answers_stay() -> AbstractContextManager[object]:
    responses = ResponseCache.responses

    def wrong(self: ResponseCache, session: Session) -> Any:
        self._offset = len(self._log)
        return responses(self, session)

    return patch.object(ResponseCache, "responses", wrong)


def _preferred_is_unclean() -> AbstractContextManager[object]:
    next_partition = partition_change.next_partition

    def wrong(*arguments: Any, **named: Any) -> Partition:
        return next_partition(*arguments, **{**named, "election": Election.UNCLEAN})

    return patch.object(elections, "next_partition", wrong)


def _zk_version_stays() -> AbstractContextManager[object]:
    def wrong(transition: Transition) -> None:
        epoch = transition.now.partition_epoch
        write_state_znode(transition)
        transition.now = replace(transition.now, partition_epoch=epoch)

    return _effect_replaced(write_state_znode, wrong)


def _anybody_leads() -> AbstractContextManager[object]:
    elect_leader = partition_change.elect_leader

    def wrong(
        partition: Partition, is_online: Callable[[int], bool], election: Election
    ) -> Partition:
        after = elect_leader(partition, is_online, election)
        live = [each for each in partition.replicas if is_online(each)]
        return replace(after, leader=live[0]) if live and after.leader == -1 else after

    return patch.object(partition_change, "elect_leader", wrong)


def _listing_misses_one() -> AbstractContextManager[object]:
    list_ongoing = KRaftController.list_ongoing

    def wrong(self: KRaftController, topics: Any) -> ListReassignmentsResult:
        result = list_ongoing(self, topics)
        return replace(result, topics=result.topics[:-1])

    return patch.object(KRaftController, "list_ongoing", wrong)


def _deleted_ids_stay() -> AbstractContextManager[object]:
    apply = ClusterState.apply

    def wrong(self: ClusterState, action: Action) -> None:
        apply(self, action)
        if isinstance(action.change, TopicDeleted):
            self.topic_names[action.change.topic_id] = action.change.name

    return patch.object(ClusterState, "apply", wrong)


DEFECTS: Final[Sequence[Defect]] = (
    Defect("epoch-stays", "the leader epoch does not increase", "kafka-4.4", _epoch_stays),
    Defect("isr-keeps-removed", "a removed replica stays in the ISR", "kafka-4.1",
            _isr_keeps_the_removed),
    Defect("not-logged", "replicas that fall behind leave no action", "kafka-3.9", _not_logged),
    Defect("cancel-keeps-added", "a cancellation keeps the added replicas", "kafka-4.4",
            _cancel_keeps_the_added),
    Defect("failover-forgets", "a new controller does not know any reassignment", "kafka-3.9-zk",
            _failover_forgets),
    Defect("guard-off", "the replication factor changes despite the guard", "kip-860",
            _guard_is_off),
    Defect("old-answers-stay", "cached responses outlive changes of the cluster", "kafka-4.4",
            _old_answers_stay),
    Defect("preferred-unclean", "a preferred election takes any live replica", "kafka-3.0",
            _preferred_is_unclean),
    Defect("zk-version-stays", "the state znode's version does not increase", "kafka-2.4",
            _zk_version_stays),
    Defect("anybody-leads", "a leader that is not in the ISR", "kip-236-new", _anybody_leads),
    Defect("listing-misses-one", "a listing lacks its last topic", "kafka-4.1",
            _listing_misses_one),
    Defect("deleted-ids-stay", "the id of a deleted topic is still known", "kafka-4.4",
            _deleted_ids_stay),
)  # fmt: skip

DATA_DEFECTS: Final[Sequence[Defect]] = tuple(Defect(*each, of_data=True) for each in _OF_DATA)
