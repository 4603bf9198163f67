"""Brokers of one cluster, whoever tells of them and in whatever order."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from wiredump.knowledge.clusters import Clusters
from wiredump.knowledge.excerpts import Excerpt


def told(by: str, brokers: list[str], cluster_id: str | None = None) -> Excerpt:
    rows = [
        {"nodeId": number, "host": broker.rpartition(":")[0], "port": int(broker.split(":")[1])}
        for number, broker in enumerate(brokers)
    ]
    body = {"brokers": rows, "clusterId": cluster_id}
    return Excerpt(0, 0, 0, 1, by, None, None, None, 3, 12, "kafka", {}, body)


@given(
    st.lists(
        st.lists(st.integers(0, 12), min_size=1, max_size=4, unique=True), min_size=1, max_size=8
    ),
    st.randoms(use_true_random=False),
)
def test_whoever_is_named_together_is_one_cluster(sets, rng: random.Random) -> None:
    clusters = Clusters()
    groups: list[set[int]] = []
    for numbers in sets:
        joined = set(numbers).union(*[group for group in groups if group & set(numbers)])
        groups = [group for group in groups if not group & joined] + [joined]
        brokers = [f"h:{number}" for number in numbers]
        united = clusters.learn(told(rng.choice(brokers), brokers))
        assert all(clusters.of(each.gone) == clusters.of(each.kept) for each in united)
    for group in groups:
        known = {clusters.of(f"h:{number}") for number in group}
        assert known == {min(f"h:{number}" for number in group)}
    assert len({clusters.of(f"h:{min(group)}") for group in groups}) == len(groups)


def test_an_id_names_all_of_them_and_does_not_unite_others() -> None:
    clusters = Clusters()
    clusters.learn(told("a:1", ["a:1", "b:1"], "xyz"))
    clusters.learn(told("c:1", ["c:1"], "xyz"))
    assert clusters.name(clusters.of("b:1")) == clusters.name(clusters.of("c:1")) == "xyz"
    assert clusters.of("b:1") != clusters.of("c:1")
    assert clusters.name(clusters.of("elsewhere:1")) == "elsewhere:1"


def test_more_addresses_than_are_kept_stay_alone() -> None:
    clusters = Clusters(most=3)
    clusters.learn(told("a:1", [f"a:{number}" for number in range(1, 9)]))
    assert clusters.of("a:2") == clusters.of("a:1")
    assert clusters.of("a:8") == "a:8"
