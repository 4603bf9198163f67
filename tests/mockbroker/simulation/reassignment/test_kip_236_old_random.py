"""Any commands in any order on the older draft of KIP-236, and what must hold after each."""

import json
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from mockbroker.errors import NotControllerError
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.reassignment.kip_236_old.requested_partitions import RequestedPartition
from mockbroker.simulation.state.actions import PartitionChanged
from mockbroker.simulation.state.cluster_parts import NO_CONTROLLER, NO_LEADER
from tests.mockbroker.simulation.reassignment.commands import (
    BROKERS,
    TARGETS,
    TPS,
    AnyCommands,
    cluster_of,
    has_controller,
)
from tests.mockbroker.simulation.reassignment.requesting import (
    CANCEL,
    EXTRA,
    LEGACY,
    REQUESTS,
    child,
    children,
    in_flight,
    legacy,
    plan,
    plan_text,
    submit,
)


class Commands(AnyCommands):
    @initialize(literal=st.booleans())
    def start(self, literal: bool) -> None:
        self.literal = literal
        reassignment = "kip-236-old-literal" if literal else "kip-236-old"
        self.cluster = cluster_of(reassignment)
        self.seen = len(self.cluster.log)

    @rule(tp=TPS, asked=TARGETS)
    def request(self, tp: Any, asked: list[int]) -> None:
        self.perhaps(lambda: submit(self.cluster, asked, tp))

    @rule(tp=TPS, asked=TARGETS)
    def ask_by_plan(self, tp: Any, asked: list[int]) -> None:
        self.perhaps(lambda: legacy(self.cluster, asked, tp))

    @rule(asked=st.dictionaries(TPS, TARGETS, max_size=3))
    def ask_by_extra(self, asked: dict[Any, list[int]]) -> None:
        self.perhaps(lambda: Operations(self.cluster).write_znode(EXTRA, plan_text(asked)))

    @precondition(has_controller)
    @rule(tp=TPS, asked=st.one_of(TARGETS, st.none()))
    def alter(self, tp: Any, asked: list[int] | None) -> None:
        try:
            result = self.cluster.reassignments.alter([(tp[0], [(tp[1], asked)])])
        except NotControllerError:
            assert self.cluster.state.controller_id == NO_CONTROLLER
            return
        (row,) = result.topics[0].partitions
        if asked is None and row.error_code == 0:
            assert not self.cluster.topics.partition(*tp).reassigning

    @rule()
    def switch(self) -> None:
        there = self.cluster.znodes.read(CANCEL) is not None
        self.perhaps(lambda: Operations(self.cluster).write_znode(CANCEL, None if there else ""))

    @rule(broker=BROKERS)
    def fail_over(self, broker: int) -> None:
        before = in_flight(self.cluster)
        if self.perhaps(lambda: Operations(self.cluster).failover(broker)):
            assert in_flight(self.cluster) <= before

    @rule(tp=TPS, asked=TARGETS, changes=st.integers(0, 30))
    def die_of_a_plan(self, tp: Any, asked: list[int], changes: int) -> None:
        Operations(self.cluster).kill_controller_after(changes)
        self.perhaps(lambda: legacy(self.cluster, asked, tp))
        Operations(self.cluster).kill_controller_after(1_000_000)

    @precondition(has_controller)
    @invariant()
    def partitions_make_sense(self) -> None:
        disabled = self.cluster.znodes.read(CANCEL) is not None
        for each in self.partitions():
            assert set(each.isr) <= set(each.replicas)
            if isinstance(each, RequestedPartition):
                assert set(each.target_replicas) <= set(each.replicas)
                assert each.top >= 1
                caught_up = set(each.target_replicas) <= set(each.isr)
                assert disabled or not caught_up or each.leader == NO_LEADER

    @precondition(has_controller)
    @invariant()
    def what_is_on_record_is_what_is_in_flight(self) -> None:
        if not any(broker.live for broker in self.cluster.brokers.values()):
            return  # the last one may have died with a plan just written, and nobody is there
        assert children(self.cluster) == in_flight(self.cluster)
        assert self.cluster.znodes.children(REQUESTS) == []
        assert self.cluster.znodes.read(EXTRA) is None
        planned = plan(self.cluster)
        for tp in in_flight(self.cluster):
            partition = self.cluster.topics.partition(*tp)
            assert isinstance(partition, RequestedPartition)
            assert child(self.cluster, tp) == {
                "version": 1,
                "replicas": list(partition.target_replicas),
                "legacy": partition.legacy,
                "top": partition.top,
            }
            if tp in planned:
                assert partition.legacy
        assert set(planned) <= in_flight(self.cluster)
        assert (self.cluster.znodes.read(LEGACY) is None) == (planned == {})
        for name, topic in self.cluster.topics.items():
            text = json.loads(self.cluster.state.znodes[f"/brokers/topics/{name}"])
            found = {index: tuple(ids) for index, ids in text["partitions"].items()}
            assert found == {str(each.index): each.replicas for each in topic.partitions}

    @invariant()
    def no_leader_moves_for_want_of_a_dropped_replica(self) -> None:
        """A reassignment changed on its way needs no election (K236-65)."""
        for action in self.cluster.log.since(self.seen):
            change = action.change
            if isinstance(change, PartitionChanged):
                assert change.after.leader_epoch >= change.before.leader_epoch
                both = change.before.reassigning and change.after.reassigning
                if both and change.before.target != change.after.target:
                    assert change.after.leader == change.before.leader
        self.seen = len(self.cluster.log)


_SHOWN = pytest.mark.requirement("K236-56", "K236-65")

TestCommands = _SHOWN(Commands.TestCase)
TestCommands.settings = settings(stateful_step_count=20)
