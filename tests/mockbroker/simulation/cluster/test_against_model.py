"""Calls 45, 46, 43 and Metadata against an independent model, under random names and orders.

Brokers, topics and replica lists are permuted at random; a random walk of requests (good and bad)
and steps is then taken by the cluster and by ``set_model`` side by side, and every result, every
list of what is ongoing and every partition in Metadata must agree.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_parts import Broker
from tests.mockbroker.simulation.cluster.set_model import SetModel

_UNKNOWN_BROKER = 7_777


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[int], dict[str, list[list[int]]]]:
    """Broker ids in a random order, and topics with random replica lists over them. Small, so
    that the steps of a walk meet."""
    ids = draw(st.lists(st.integers(0, 60), min_size=3, max_size=5, unique=True))
    names = draw(
        st.lists(st.text("abz0-", min_size=1, max_size=4), min_size=1, max_size=2, unique=True)
    )
    return ids, {name: draw(st.lists(_some_of(ids), min_size=1, max_size=2)) for name in names}


def _some_of(ids: list[int]) -> st.SearchStrategy[list[int]]:
    """One to four brokers, in any order."""
    return st.permutations(ids).flatmap(
        lambda order: st.integers(1, min(4, len(ids))).map(lambda n: list(order[:n]))
    )


@st.composite
def walks(draw: st.DrawFn) -> tuple[list[int], dict[str, list[list[int]]], list[Any]]:
    ids, topics = draw(clusters())
    known = [(name, i) for name, lists in topics.items() for i in range(len(lists))]
    tp = st.sampled_from(known)
    any_tp = st.one_of(tp, tp, st.tuples(st.sampled_from([*topics, "nosuch"]), st.integers(-1, 2)))
    bad = st.lists(st.sampled_from([*ids, -1, _UNKNOWN_BROKER]), max_size=4)
    # Mostly what can succeed: a walk of refusals would say little.
    good = _some_of(ids)
    target = st.one_of(good, good, good, bad, st.none())
    broker = st.sampled_from(ids)
    command = st.one_of(
        # Every partition once: the model has no state of before the request to decide from.
        st.tuples(
            st.just("alter"),
            st.lists(st.tuples(any_tp, target), max_size=2, unique_by=lambda row: row[0]),
            st.booleans(),
        ),
        st.tuples(st.just("elect"), st.lists(any_tp, max_size=3, unique=True), st.booleans()),
        st.tuples(st.just("elect-all"), st.booleans()),
        st.tuples(st.just("catch-up"), tp),
        st.tuples(st.just("join"), tp, broker),
        st.tuples(st.just("leave"), tp, broker),
        st.tuples(st.just("stop"), broker),
        st.tuples(st.just("start"), broker),
    )
    unclean = [("unclean", name) for name in topics if draw(st.booleans())]
    return ids, topics, unclean + draw(st.lists(command, min_size=5, max_size=30))


class _Pair:
    """The cluster and the model, told the same things."""

    def __init__(self, ids: list[int], topics: dict[str, list[list[int]]]) -> None:
        self.cluster = Cluster([Broker(i) for i in ids], topics=topics.items())
        self.model = SetModel(
            ids, {(name, i): r for name, lists in topics.items() for i, r in enumerate(lists)}
        )

    def alter(self, asked: list[tuple[tuple[str, int], list[int] | None]], guard: bool) -> None:
        got = self.cluster.reassignments.alter(
            [(topic, [(index, target)]) for (topic, index), target in asked],
            allow_replication_factor_change=not guard,
        )
        expected = [
            (topic, index, *self.model.alter(topic, index, target, guard))
            for (topic, index), target in asked
        ]
        rows = [
            (t.name, p.partition_index, p.error_code, p.error_message)
            for t in got.topics
            for p in t.partitions
        ]
        assert rows == expected
        assert (got.error_code, got.error_message) == (0, None if asked else "")
        # A request that names nothing is answered with the response's defaults.
        assert got.allow_replication_factor_change is (not guard or not asked)

    def elect(self, asked: list[tuple[str, int]], unclean: bool) -> None:
        got = self.cluster.elections.elect(
            int(unclean), [(topic, [index]) for topic, index in asked]
        )
        expected = [
            (topic, index, *self.model.elect(topic, index, unclean)) for topic, index in asked
        ]
        assert _rows(got) == expected

    def elect_all(self, unclean: bool) -> None:
        got = self.cluster.elections.elect(int(unclean), None)
        outcomes = [
            (topic, index, *self.model.elect(topic, index, unclean))
            for topic, index in sorted(self.model.P)
        ]
        assert _rows(got) == [row for row in outcomes if row[2] != 84]
        assert [t.name for t in got.topics] == sorted({topic for topic, _ in self.model.P})

    def step(self, name: str, tp: tuple[str, int], broker: int) -> None:
        possible = getattr(self.model, name)(tp, broker)
        try:
            getattr(Operations(self.cluster), f"{name}_isr")(tp, broker)
        except ClusterError:
            assert not possible
        else:
            assert possible

    def catch_up(self, tp: tuple[str, int]) -> None:
        """The first replica that is out of sync, if any, joins."""
        partition = self.model.P[tp]
        for broker in partition.R:
            if broker not in partition.I:
                self.step("join", tp, broker)
                return

    def switch(self, name: str, broker: int) -> None:
        try:
            getattr(Operations(self.cluster), f"{name}_broker")(broker)
        except ClusterError:
            assert (broker in self.model.live) == (name == "start")
        else:
            getattr(self.model, name)(broker)

    def allow_unclean(self, topic: str) -> None:
        operation = ("unclean.leader.election.enable", 0, "true")
        (result,) = self.cluster.config_changes.alter_incrementally([(2, topic, [operation])])
        assert result.error_code == 0
        self.model.unclean.add(topic)

    def check(self) -> None:
        listed = self.cluster.reassignments.list_ongoing(None)
        assert {
            (t.name, p.partition_index): (
                list(p.replicas),
                set(p.adding_replicas),
                set(p.removing_replicas),
            )
            for t in listed.topics
            for p in t.partitions
        } == self.model.ongoing()
        for broker_id in self.cluster.brokers:
            view = self.cluster.controller.metadata_view(broker_id)
            assert {b.broker_id for b in view.live_brokers()} == self.model.live
            seen = {
                (name, p.index): (list(p.replicas), set(p.isr), p.leader, p.leader_epoch)
                for name, topic in view.topics.items()
                for p in topic.partitions
            }
            assert seen == {tp: (p.R, p.I, p.leader, p.epoch) for tp, p in self.model.P.items()}
            for name, topic in view.topics.items():
                for p in topic.partitions:
                    gone = [b for b in p.replicas if b not in self.model.live]
                    assert list(view.offline_replicas(topic, p)) == gone
                    offline = self.model.P[name, p.index].leader == -1
                    assert view.partition_error(p) == (5 if offline else 0)


def _rows(result: Any) -> list[tuple[str, int, int, str | None]]:
    return [
        (t.name, p.partition_index, p.error_code, p.error_message)
        for t in result.topics
        for p in t.partitions
    ]


@given(walks())
def test_every_answer_agrees_with_the_model(walk):
    ids, topics, commands = walk
    pair = _Pair(ids, topics)
    pair.check()
    for command in commands:
        match command:
            case ("alter", asked, guard):
                pair.alter(asked, guard)
            case ("elect", asked, unclean):
                pair.elect(asked, unclean)
            case ("elect-all", unclean):
                pair.elect_all(unclean)
            case ("catch-up", tp):
                pair.catch_up(tp)
            case ("join" | "leave" as name, tp, broker):
                pair.step(name, tp, broker)
            case ("stop" | "start" as name, broker):
                pair.switch(name, broker)
            case ("unclean", topic):
                pair.allow_unclean(topic)
        pair.check()
