"""Any commands in any order on the two drafts of KIP-455, and what must hold after each."""

import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from kproto.znodes.kafka_znodes import partition_state_path, topic_path
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.reassignment.kip_455.kip_455_controller import Kip455Controller
from mockbroker.simulation.state.actions import PartitionChanged, StopReplicaSent
from mockbroker.simulation.state.cluster_parts import NO_LEADER, Partition
from tests.mockbroker.simulation.reassignment.commands import (
    BROKERS,
    TARGETS,
    TPS,
    AnyCommands,
    cluster_of,
    has_controller,
)


class Commands(AnyCommands):
    reassignment = ""

    @initialize()
    def start(self) -> None:
        self.cluster = cluster_of(self.reassignment)
        self.seen = 0
        self.known: dict[tuple[str, int], Partition] = {}
        for name, topic in self.cluster.topics.items():
            self.known |= {(name, each.index): each for each in topic.partitions}

    @precondition(has_controller)
    @rule(tp=TPS, asked=st.one_of(TARGETS, TARGETS, st.none()))
    def alter(self, tp: tuple[str, int], asked: list[int] | None) -> None:
        result = self.cluster.reassignments.alter([(tp[0], [(tp[1], asked)])])
        assert result.topics[0].partitions[0].error_code == 0
        partition = self.cluster.topics.partition(*tp)
        if asked is None:
            assert not partition.reassigning
        else:
            assert partition.reassigning or partition.replicas == tuple(asked)

    @rule(broker=BROKERS)
    def fail_over(self, broker: int) -> None:
        before = self.cluster.reassignments.list_ongoing(None)
        if (
            self.perhaps(lambda: Operations(self.cluster).failover(broker))
            and self.reassignment == "kip-455-new"
        ):
            assert self.cluster.reassignments.list_ongoing(None) == before

    @precondition(has_controller)
    @invariant()
    def partitions_make_sense(self) -> None:
        for each in self.partitions():
            assert set(each.isr) <= set(each.replicas)
            target = set(each.target or ())
            if self.reassignment == "kip-455-old":
                assert not target & set(each.isr)
            elif each.reassigning and each.leader != NO_LEADER:
                assert not target <= set(each.isr)

    @precondition(has_controller)
    @invariant()
    def znodes_hold_what_the_controller_remembers(self) -> None:
        reassignment = self.cluster.reassignments
        assert isinstance(reassignment, Kip455Controller)
        for name, topic in self.cluster.topics.items():
            text = self.cluster.state.znodes[topic_path(name)]
            assert text == reassignment.topic_text(topic)
            for each in topic.partitions:
                text = self.cluster.state.znodes[partition_state_path(name, each.index)]
                written = json.loads(text)
                epoch = written["controller_epoch"]
                assert epoch <= self.cluster.state.controller_epoch
                if written.get("targetReplicas") == [] and not each.reassigning:
                    # The older draft's last step, found by a new controller: no reassignment.
                    del written["targetReplicas"]
                assert written == json.loads(reassignment.state_text(each, epoch))

    @invariant()
    def each_change_is_one_the_page_allows(self) -> None:
        for action in self.cluster.log.since(self.seen):
            change = action.change
            if isinstance(change, PartitionChanged):
                self.check(change, action.cause)
                self.known[change.topic, change.after.index] = change.after
            elif isinstance(change, StopReplicaSent):
                partition = self.known[change.topic, change.index]
                assert not set(change.to) & {*partition.replicas, *partition.isr}
        self.seen = len(self.cluster.log)

    def check(self, change: PartitionChanged, cause: str) -> None:
        before, after = change.before, change.after
        assert after.leader_epoch >= before.leader_epoch
        lost = set(before.replicas) - set(after.replicas)
        if lost or (before.reassigning and not after.reassigning and cause == "join_isr"):
            # The end of a reassignment, and of nothing else.
            assert before.reassigning
            assert not after.reassigning
            assert set(before.target or ()) <= set(before.isr)
            assert after.leader_epoch == before.leader_epoch + 1


class Newer(Commands):
    reassignment = "kip-455-new"


class Older(Commands):
    reassignment = "kip-455-old"


_SETTINGS = settings(stateful_step_count=30)

TestNewer = pytest.mark.requirement("K455-37")(Newer.TestCase)
TestNewer.settings = _SETTINGS
TestOlder = pytest.mark.requirement("K455-31")(Older.TestCase)
TestOlder.settings = _SETTINGS
