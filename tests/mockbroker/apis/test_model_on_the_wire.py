"""45, 46, 43 and Metadata, as bytes, against the independent model, under random permutations.

Broker ids, topics and replica lists are drawn at random; a walk of requests and steps is taken by
a broker behind the codec and by ``set_model`` side by side. Any broker may be asked: with
forwarding the answer is the same.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mockbroker.errors import ClusterError
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_parts import Broker
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.cluster.set_model import SetModel
from tests.support.requests import request_of

BrokerIds = list[int]
Topics = dict[str, list[list[int]]]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[BrokerIds, Topics]:
    ids = draw(st.lists(st.integers(0, 2**31 - 1), min_size=3, max_size=5, unique=True))
    names = draw(st.lists(st.text("ab.-_", min_size=1, max_size=4).filter(legal), min_size=1,
                          max_size=3, unique_by=lambda name: name.replace(".", "_")))  # fmt: skip
    return ids, {name: draw(st.lists(some_of(ids), min_size=1, max_size=3)) for name in names}


def legal(name: str) -> bool:
    return name not in (".", "..")


def some_of(ids: BrokerIds) -> st.SearchStrategy[list[int]]:
    return st.permutations(ids).flatmap(
        lambda order: st.integers(1, len(ids)).map(lambda n: list(order[:n]))
    )


class Both:
    """A broker behind the codec, and the model, told the same things."""

    def __init__(self, ids: BrokerIds, topics: Topics) -> None:
        self.asked = DirectBroker(
            simulated_cluster([Broker(i) for i in ids], topics=topics.items(), release=(4, 2))
        )
        self.model = SetModel(
            ids, {(name, i): r for name, lists in topics.items() for i, r in enumerate(lists)}
        )

    def alter(self, broker_id: int, wanted: Any, guard: bool) -> None:
        body = request_of(
            "AlterPartitionReassignments",
            allow_replication_factor_change=not guard,
            topics=[
                {"name": name, "partition_index": index, "replicas": target}
                for (name, index), target in wanted
            ],
        )
        version = 1 if guard else 0
        answer = self.asked.ask(body, version, broker_id=broker_id)
        got = [
            (topic.name, row.partition_index, row.error_code, row.error_message)
            for topic in answer.responses
            for row in topic.partitions
        ]
        assert got == [
            (name, index, *self.model.alter(name, index, target, guard))
            for (name, index), target in wanted
        ]
        assert (answer.error_code, answer.allow_replication_factor_change) == (0, not guard)

    def elect(self, broker_id: int, wanted: list[tuple[str, int]], unclean: bool) -> None:
        answer = self.asked.ask(
            "ElectLeaders",
            2,
            election_type=int(unclean),
            topic_partitions=[{"topic": name, "partitions": [index]} for name, index in wanted],
            broker_id=broker_id,
        )
        got = {
            (topic.topic, row.partition_id): (row.error_code, row.error_message)
            for topic in answer.replica_election_results
            for row in topic.partition_result
        }
        assert got == {tp: self.model.elect(*tp, unclean) for tp in dict.fromkeys(wanted)}

    def step(self, name: str, *arguments: Any) -> None:
        # Which steps are refused is the cluster's own test; here both must end up the same.
        try:
            getattr(Operations(self.asked.cluster), name)(*arguments)
        except ClusterError:
            return
        getattr(self.model, name.removesuffix("_isr").removesuffix("_broker"))(*arguments)

    def compare(self, broker_id: int) -> None:
        listed = self.asked.ask("ListPartitionReassignments", 0, topics=None, broker_id=broker_id)
        got = {
            (topic.name, p.partition_index): (
                p.replicas, set(p.adding_replicas), set(p.removing_replicas)
            )
            for topic in listed.topics
            for p in topic.partitions
        }  # fmt: skip
        assert got == self.model.ongoing()
        shown = self.asked.ask("Metadata", 12, topics=None, broker_id=broker_id)
        assert {broker.node_id for broker in shown.brokers} == self.model.live
        assert shown.controller_id in self.model.live or not self.model.live
        partitions = {
            (topic.name, p.partition_index): p for topic in shown.topics for p in topic.partitions
        }
        assert partitions.keys() == self.model.P.keys()
        for tp, expected in self.model.P.items():
            p = partitions[tp]
            assert (p.replica_nodes, set(p.isr_nodes)) == (expected.R, expected.I), tp
            assert (p.leader_id, p.leader_epoch) == (expected.leader, expected.epoch), tp
            assert p.error_code == (5 if expected.leader == -1 else 0), tp
            assert set(p.offline_replicas) == set(expected.R) - self.model.live, tp


@given(data=st.data())
def test_a_walk(data: st.DataObject) -> None:
    ids, topics = data.draw(clusters())
    both = Both(ids, topics)
    known = [(name, i) for name, lists in topics.items() for i in range(len(lists))]
    tp, broker = st.sampled_from(known), st.sampled_from(ids)
    bad: list[list[int] | None] = [None, [], [ids[0], -1]]
    target = st.one_of(some_of(ids), some_of(ids), st.sampled_from(bad))
    wanted = st.lists(
        st.tuples(tp, target), min_size=1, max_size=2, unique_by=lambda pair: pair[0][0]
    )
    steps: list[Any] = [
        st.tuples(st.just("alter"), broker, wanted, st.booleans()),
        st.tuples(st.just("alter"), broker, wanted, st.booleans()),
        # Who is named twice is elected twice, which the model does not know.
        st.tuples(
            st.just("elect"),
            broker,
            st.lists(tp, min_size=1, max_size=3, unique=True),
            st.booleans(),
        ),
        st.tuples(st.just("join_isr"), tp, broker),
        st.tuples(st.just("join_isr"), tp, broker),
        st.tuples(st.just("leave_isr"), tp, broker),
        st.tuples(st.just("stop_broker"), broker),
        st.tuples(st.just("start_broker"), broker),
    ]
    for name, *arguments in data.draw(st.lists(st.one_of(steps), max_size=15)):
        if name in ("alter", "elect"):
            getattr(both, name)(*arguments)
        else:
            both.step(name, *arguments)
        both.compare(data.draw(broker))
