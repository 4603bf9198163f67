"""Any commands in any order on KIP-236's newer revision, and what must hold after each."""

import json
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from kproto.znodes.kafka_znodes import partition_state_path, topic_path
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.reassignment.kip_236_new.plans import PendingPartition, pending
from mockbroker.simulation.state.actions import PartitionChanged, StopReplicaSent
from mockbroker.simulation.state.cluster_parts import NO_LEADER
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.simulation.reassignment.cancelling import (
    CANCEL,
    NEW,
    PLAN,
    QUEUE,
    entry,
    plan,
)
from tests.mockbroker.simulation.reassignment.commands import (
    BROKERS,
    TARGETS,
    TPS,
    AnyCommands,
    cluster_of,
    has_controller,
)

_BAD = st.sampled_from([[], [1, 1], [9], [2, 3, 9]])
_ENTRIES = st.builds(
    entry,
    st.one_of(TARGETS, TARGETS, TARGETS, _BAD),
    st.one_of(st.none(), st.none(), st.none(), TARGETS, _BAD),
    st.one_of(TPS, TPS, TPS, st.just(("no", 3))),
)
_PLANS = st.one_of(
    st.lists(_ENTRIES, min_size=1, max_size=4).map(lambda entries: plan(*entries)),
    st.sampled_from(["", "{", plan(), '{"version":1,"partitions":[{"topic":"foo"}]}']),
)


class Commands(AnyCommands):
    @initialize()
    def start(self) -> None:
        self.cluster = cluster_of(NEW)
        self.seen = 0
        self.tampered = False

    # ---- commands ----------------------------------------------------------------------------

    @rule(text=_PLANS)
    def submit(self, text: str) -> None:
        """Only where there is no plan: what else is written there is ``tamper``'s."""
        if self.cluster.znodes.read(PLAN) is None:
            self.perhaps(lambda: Operations(self.cluster).write_znode(PLAN, text))

    @rule(text=_PLANS)
    def queue(self, text: str) -> None:
        self.perhaps(lambda: Operations(self.cluster).write_znode(QUEUE, text))

    @precondition(has_controller)
    @rule()
    def cancel(self) -> None:
        before = {tp: self.cluster.topics.partition(*tp) for tp in pending(self.cluster.controller)}
        tampered = self.tampered
        if not self.perhaps(lambda: Operations(self.cluster).write_znode(CANCEL, "")):
            return
        self.tampered = False
        if tampered:
            return
        for tp, was in before.items():
            after = self.cluster.topics.partition(*tp)
            assert isinstance(was, PendingPartition)
            if after.reassigning:
                assert after == was
                assert was.original_replicas is None or self.would_go_offline(was)
            else:
                assert after.replicas == was.original_replicas

    def would_go_offline(self, was: PendingPartition) -> bool:
        live = {each.broker_id for each in self.cluster.brokers.values() if each.live}
        return not live & {*(was.original_replicas or ())} & {*was.isr} and bool(
            live & {*was.new_replicas}
        )

    @rule(text=st.one_of(st.none(), _PLANS))
    def tamper(self, text: str | None) -> None:
        if self.cluster.znodes.read(PLAN) is not None:
            self.tampered = True
            self.perhaps(lambda: Operations(self.cluster).write_znode(PLAN, text))

    @rule(tp=TPS, asked=st.one_of(TARGETS, st.none()))
    def alter(self, tp: tuple[str, int], asked: list[int] | None) -> None:
        def ask() -> None:
            (topic,) = self.cluster.reassignments.alter([(tp[0], [(tp[1], asked)])]).topics
            partition, code = self.cluster.topics.partition(*tp), topic.partitions[0].error_code
            assert code in (0, 39, 85)
            if asked is None:
                assert partition.reassigning is (code == 39)
            elif code == 0:
                assert (partition.target or partition.replicas) == tuple(asked)

        self.perhaps(ask)

    @rule(tp=TPS)
    def join_all(self, tp: tuple[str, int]) -> None:
        for broker in self.cluster.topics.partition(*tp).target or ():
            self.perhaps(partial(Operations(self.cluster).join_isr, tp, broker))

    @rule(broker=BROKERS)
    def fail_over(self, broker: int) -> None:
        self.perhaps(lambda: Operations(self.cluster).failover(broker))

    @rule(changes=st.integers(0, 60))
    def doom(self, changes: int) -> None:
        Operations(self.cluster).kill_controller_after(changes)

    def succeeded(self) -> None:
        """The successor has read the plan, as tampered with as it may have been."""
        self.tampered = False

    # ---- what must hold ----------------------------------------------------------------------

    @precondition(has_controller)
    @invariant()
    def partitions_make_sense(self) -> None:
        for each in self.partitions():
            assert each.leader == NO_LEADER or each.leader in each.replicas
            # The last one in sync may be no replica any more: rolled back with all down.
            assert set(each.isr) <= set(each.replicas) or (
                len(each.isr) == 1 and each.leader == NO_LEADER
            )
            if each.reassigning:
                target = set(each.target or ())
                assert target <= set(each.replicas)
                live = any(self.cluster.controller.broker(b).live for b in target)
                assert not (live and target <= set(each.isr))

    @precondition(has_controller)
    @invariant()
    def what_is_pending_is_on_record(self) -> None:
        if not any(broker.live for broker in self.cluster.brokers.values()):
            return  # the last one may have died with something half-done, and nobody is there
        assert self.cluster.znodes.read(CANCEL) is None
        assert self.cluster.znodes.read(QUEUE) is None
        if self.tampered:
            return
        found = self.cluster.znodes.read(PLAN)
        recorded = [] if found is None else json.loads(found[0])["partitions"]
        remembered = [
            entry(planned.replicas, planned.original_replicas, tp)
            for tp, planned in pending(self.cluster.controller).items()
        ]
        assert sorted(recorded, key=str) == sorted(remembered, key=str)
        assert found is None or recorded

    @precondition(has_controller)
    @invariant()
    def znodes_hold_what_the_controller_remembers(self) -> None:
        for name, topic in self.cluster.topics.items():
            said = json.loads(self.cluster.state.znodes[topic_path(name)])
            replicas = {str(each.index): list(each.replicas) for each in topic.partitions}
            assert said["partitions"] == replicas
            for each in topic.partitions:
                state = json.loads(
                    self.cluster.state.znodes[partition_state_path(name, each.index)]
                )
                assert (state["isr"], state["leader_epoch"]) == (list(each.isr), each.leader_epoch)

    @invariant()
    def nobody_in_use_is_told_to_stop(self) -> None:
        for action in self.cluster.log.since(self.seen):
            change = action.change
            if isinstance(change, PartitionChanged):
                assert change.after.leader_epoch >= change.before.leader_epoch
            elif isinstance(change, StopReplicaSent):
                known = replay("c", list(self.cluster.log)[: action.offset]).topics
                partition = known[change.topic].partitions[change.index]
                assert not set(change.to) & set(partition.replicas)
                assert not set(change.to) & {partition.leader}
        self.seen = len(self.cluster.log)


TestCommands = pytest.mark.requirement("K236-09", "K236-25", "K236-40")(Commands.TestCase)
TestCommands.settings = settings(stateful_step_count=30)
