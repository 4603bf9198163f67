"""Any commands in any order on the ZooKeeper controller, and what must hold after each."""

import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from kproto.znodes.kafka_znodes import partition_state_path, topic_path
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.reassignment.zookeeper.kafka_zookeeper_controller import (
    KafkaZooKeeperController,
)
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
from tests.mockbroker.simulation.reassignment.zookeeper_story import PLAN, ZK, plan_of, planned


class Commands(AnyCommands):
    @initialize()
    def start(self) -> None:
        self.cluster = cluster_of(ZK)
        self.seen = 0
        self.known: dict[tuple[str, int], Partition] = {}
        for name, topic in self.cluster.topics.items():
            self.known |= {(name, each.index): each for each in topic.partitions}

    @precondition(has_controller)
    @rule(tp=TPS, asked=st.one_of(TARGETS, TARGETS, st.none()))
    def alter(self, tp: tuple[str, int], asked: list[int] | None) -> None:
        before = self.cluster.topics.partition(*tp)
        since = len(self.cluster.log)
        result = self.cluster.reassignments.alter([(tp[0], [(tp[1], asked)])])
        code = result.topics[0].partitions[0].error_code
        partition = self.cluster.topics.partition(*tp)
        if code:
            assert code == (85 if asked is None else 39)
            assert partition == before
            # A text that is no plan, or one of nothing, goes with any request.
            assert not [a for a in self.cluster.log.since(since) if a.kind != "ZnodeWritten"]
        elif asked is None:
            assert not partition.reassigning
            assert set(partition.replicas) == set(before.replicas) - set(before.adding)
        else:
            assert (partition.target or partition.replicas) == tuple(asked)
            assert tp not in (planned(self.cluster) or {})

    @rule(plan=st.dictionaries(TPS, TARGETS, max_size=3))
    def submit(self, plan: dict[tuple[str, int], list[int]]) -> None:
        fresh = PLAN not in self.cluster.state.znodes
        before = self.cluster.reassignments.list_ongoing(None)
        Operations(self.cluster).write_znode(PLAN, plan_of(plan))
        if not fresh:
            assert self.cluster.reassignments.list_ongoing(None) == before

    @rule()
    def delete_the_plan(self) -> None:
        before = self.cluster.reassignments.list_ongoing(None)
        if self.cluster.znodes.read(PLAN) is not None:
            Operations(self.cluster).write_znode(PLAN, None)
        assert self.cluster.reassignments.list_ongoing(None) == before

    @rule(broker=BROKERS)
    def fail_over(self, broker: int) -> None:
        before = self.cluster.reassignments.list_ongoing(None)
        nothing_new = PLAN not in self.cluster.state.znodes
        if self.perhaps(lambda: Operations(self.cluster).failover(broker)) and nothing_new:
            assert self.cluster.reassignments.list_ongoing(None) == before

    @precondition(has_controller)
    @invariant()
    def partitions_make_sense(self) -> None:
        for each in self.partitions():
            replicas = set(each.replicas)
            assert set(each.adding) | set(each.removing) <= replicas
            assert not set(each.adding) & set(each.removing)
            # Only a partition that is offline may remember one that is no replica any more.
            assert set(each.isr) <= replicas or each.leader == NO_LEADER
            if each.reassigning and each.leader != NO_LEADER:
                assert not set(each.target or ()) <= set(each.isr)

    @precondition(has_controller)
    @invariant()
    def znodes_hold_what_the_controller_remembers(self) -> None:
        reassignment = self.cluster.reassignments
        assert isinstance(reassignment, KafkaZooKeeperController)
        for name, topic in self.cluster.topics.items():
            assert self.cluster.state.znodes[topic_path(name)] == reassignment.topic_text(topic)
            for each in topic.partitions:
                text = self.cluster.state.znodes[partition_state_path(name, each.index)]
                epoch = json.loads(text)["controller_epoch"]
                assert epoch <= self.cluster.state.controller_epoch
                assert text == reassignment.state_text(each, epoch)

    @invariant()
    def each_change_is_one_that_kafka_makes(self) -> None:
        for action in self.cluster.log.since(self.seen):
            change = action.change
            if isinstance(change, PartitionChanged):
                before, after = change.before, change.after
                assert after.leader_epoch >= before.leader_epoch
                if after.leader != before.leader:
                    assert after.leader_epoch > before.leader_epoch
                self.known[change.topic, after.index] = after
            elif isinstance(change, StopReplicaSent):
                assert not set(change.to) & set(self.known[change.topic, change.index].replicas)
        self.seen = len(self.cluster.log)


TestCommands = pytest.mark.requirement("K455-42")(Commands.TestCase)
TestCommands.settings = settings(stateful_step_count=30)
