"""Assignments: what every one must have, and known ones of Kafka's own tests."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.tools.assignment import assign_replicas, place_replicas, rack_alternated
from kproto.tools.errors import ToolError


@st.composite
def clusters(draw: st.DrawFn) -> tuple[dict[int, str | None], int, int]:
    """Brokers with racks, or all without; partitions; a replication factor they can carry."""
    ids = draw(st.lists(st.integers(0, 1000), min_size=1, max_size=12, unique=True))
    names = st.sampled_from("abcd") if draw(st.booleans()) else st.none()
    return (
        {each: draw(names) for each in ids},
        draw(st.integers(1, 40)),
        draw(st.integers(1, len(ids))),
    )


@given(clusters(), st.integers())
def test_every_assignment_spreads_replicas_leaders_and_racks(cluster, seed):
    brokers, partitions, factor = cluster
    lists = assign_replicas(brokers, partitions, factor, random.Random(seed))
    assert lists == assign_replicas(brokers, partitions, factor, random.Random(seed))
    assert len(lists) == partitions
    for replicas in lists:
        assert len(set(replicas)) == len(replicas) == factor
        assert set(replicas) <= brokers.keys()
        used = Counter(brokers[each] for each in replicas)
        if None not in used:
            racks = set(brokers.values())
            # A second replica in a rack only once each has one.
            assert len(used) == min(factor, len(racks))
    leaders = Counter(replicas[0] for replicas in lists)
    assert max(leaders.values()) - min(leaders[each] for each in brokers) <= 1


def test_without_racks_as_kafka_places_them():
    # The example in the comment of Kafka's AdminUtils: ten partitions, five brokers.
    lists = place_replicas(dict.fromkeys(range(5)), 10, 3, 0, 0)
    assert lists == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


def test_with_racks_as_kafka_places_them():
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    assert rack_alternated(racks) == [0, 3, 1, 5, 4, 2]
    assert place_replicas(racks, 7, 3, 0, 0) == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    ]


@pytest.mark.parametrize(
    ("brokers", "partitions", "factor", "text"),
    [
        ({1: None}, 0, 1, "Number of partitions must be larger than 0."),
        ({1: None}, 1, 0, "Replication factor must be larger than 0."),
        ({1: None, 2: None}, 1, 3, "Replication factor: 3 larger than available brokers: 2."),
        ({1: "a", 2: None}, 1, 1, "Not all brokers have rack information"),
    ],
)
def test_what_cannot_be_assigned(brokers, partitions, factor, text):
    with pytest.raises(ToolError, match=f"^{text}"):
        assign_replicas(brokers, partitions, factor, random.Random(0))
