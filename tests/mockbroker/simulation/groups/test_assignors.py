"""The assignors of the broker: balanced, sticky, and the same for the same members."""

import uuid
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.simulation.groups.consumer.partition_assignors import (
    ASSIGNORS,
    Subscriber,
    range_,
    uniform,
)
from mockbroker.simulation.groups.modern.partitions import Assignment

FOO, BAR, FAR, BAZ = (uuid.UUID(int=number) for number in range(1, 5))
BOTH = frozenset({FOO, BAR})


def of(topic: uuid.UUID, *indexes: int) -> Assignment:
    return frozenset((topic, index) for index in indexes)


def members(topics: frozenset[uuid.UUID], *names: str) -> dict[str, Subscriber]:
    return {name: Subscriber(topics) for name in names}


def again(
    given: Mapping[str, Subscriber], targets: Mapping[str, Assignment]
) -> dict[str, Subscriber]:
    return {
        name: Subscriber(each.topics, each.instance_id, targets.get(name, frozenset()))
        for name, each in given.items()
    }


@pytest.mark.requirement("DP-ASSIGN-01")
def test_range_deals_like_topics_alike() -> None:
    found = range_(members(BOTH, "b", "a"), {BAR: 3, FOO: 3})
    assert found == {"a": of(FOO, 0, 1) | of(BAR, 0, 1), "b": of(FOO, 2) | of(BAR, 2)}
    found = range_({**members(BOTH, "a", "b"), "c": Subscriber(of_topics(FOO))}, {BAR: 2, FOO: 3})
    assert found == {
        "a": of(FOO, 0) | of(BAR, 0), "b": of(FOO, 1) | of(BAR, 1), "c": of(FOO, 2),
    }  # fmt: skip


def of_topics(*topics: uuid.UUID) -> frozenset[uuid.UUID]:
    return frozenset(topics)


@pytest.mark.requirement("DP-ASSIGN-01")
def test_range_puts_static_members_first_by_instance() -> None:
    topics = of_topics(FOO)
    found = range_(
        {"a": Subscriber(topics), "b": Subscriber(topics, "two"), "c": Subscriber(topics, "one")},
        {FOO: 4},
    )
    assert found == {"c": of(FOO, 0, 1), "b": of(FOO, 2), "a": of(FOO, 3)}


@pytest.mark.requirement("DP-ASSIGN-01")
def test_range_leaves_members_without_partitions() -> None:
    assert range_(members(of_topics(FOO), "a", "b"), {FOO: 1}) == {
        "a": of(FOO, 0), "b": frozenset(),
    }  # fmt: skip


@pytest.mark.requirement("DP-ASSIGN-02")
def test_uniform_shares_alike() -> None:
    group = members(BOTH, "a", "b", "c")
    found = uniform(group, {BAR: 3, FOO: 4})
    assert {name: len(each) for name, each in found.items()} == {"a": 2, "b": 2, "c": 3}
    assert uniform(again(group, found), {BAR: 3, FOO: 4}) == found
    # b leaves: the others keep what they have.
    rest = {name: each for name, each in again(group, found).items() if name != "b"}
    after = uniform(rest, {BAR: 3, FOO: 4})
    assert all(found[name] <= after[name] for name in rest)
    assert sorted(map(len, after.values())) == [3, 4]


@pytest.mark.requirement("DP-ASSIGN-02")
def test_uniform_takes_no_more_than_the_surplus() -> None:
    group = members(of_topics(FOO), "a")
    found = uniform(group, {FOO: 7})
    after = uniform({**again(group, found), **members(of_topics(FOO), "b", "c")}, {FOO: 7})
    assert {name: len(each) for name, each in after.items()} == {"a": 3, "b": 2, "c": 2}
    assert after["a"] == of(FOO, 0, 1, 2)


@pytest.mark.requirement("DP-ASSIGN-02")
def test_who_has_the_larger_share_keeps_it() -> None:
    topics = of_topics(FOO)
    group = {
        "a": Subscriber(topics, current=of(FOO, 0)),
        "b": Subscriber(topics, current=of(FOO, 1, 2)),
    }
    assert uniform(group, {FOO: 3}) == {"a": of(FOO, 0), "b": of(FOO, 1, 2)}


@pytest.mark.requirement("DP-ASSIGN-02")
def test_topics_that_nobody_wants_any_more_are_dropped() -> None:
    group = {"a": Subscriber(of_topics(FOO), current=of(BAR, 0) | of(FOO, 0))}
    assert uniform(group, {FOO: 2}) == {"a": of(FOO, 0, 1)}
    assert uniform({}, {}) == {}
    assert uniform(members(frozenset(), "a"), {}) == {"a": frozenset()}


@pytest.mark.requirement("DP-ASSIGN-03")
def test_uniform_balances_members_that_differ() -> None:
    group = {"a": Subscriber(BOTH), "b": Subscriber(of_topics(FOO)), "c": Subscriber(BOTH)}
    found = uniform(group, {BAR: 4, FOO: 2})
    assert {name: len(each) for name, each in found.items()} == {"a": 2, "b": 2, "c": 2}
    assert found["b"] == of(FOO, 0, 1)


@pytest.mark.requirement("DP-ASSIGN-03")
def test_uniform_moves_partitions_to_balance_members_that_differ() -> None:
    group = {"a": Subscriber(BOTH, current=of(FOO, 0, 1, 2, 3)), "b": Subscriber(of_topics(FOO))}
    found = uniform(group, {BAR: 2, FOO: 4})
    assert {name: len(each) for name, each in found.items()} == {"a": 3, "b": 3}
    assert found["a"] >= of(BAR, 0, 1)


COUNTS = {BAR: 3, BAZ: 1, FAR: 4, FOO: 6}
SUBSCRIPTIONS = st.dictionaries(
    st.sampled_from("abcdef"), st.frozensets(st.sampled_from(list(COUNTS))), min_size=1
)


@pytest.mark.requirement("DP-ASSIGN-01", "DP-ASSIGN-02", "DP-ASSIGN-03", "DP-ASSIGN-04")
@pytest.mark.parametrize("name", ASSIGNORS)
@given(first=SUBSCRIPTIONS, second=SUBSCRIPTIONS)
def test_every_partition_has_one_subscriber(name, first, second):
    """After a first target, members and subscriptions change."""
    before = ASSIGNORS[name]({m: Subscriber(topics) for m, topics in first.items()}, COUNTS)
    group = {
        m: Subscriber(topics, current=before.get(m, frozenset())) for m, topics in second.items()
    }
    found = ASSIGNORS[name](group, COUNTS)
    assert found.keys() == second.keys()
    given_out = [tp for each in found.values() for tp in each]
    wanted = {topic for topics in second.values() for topic in topics}
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == {(topic, i) for topic in wanted for i in range(COUNTS[topic])}
    assert all(tp[0] in second[m] for m, each in found.items() for tp in each)
    assert ASSIGNORS[name](dict(reversed(group.items())), COUNTS) == found, "the same each run"
    settled = {m: Subscriber(each.topics, current=found[m]) for m, each in group.items()}
    assert ASSIGNORS[name](settled, COUNTS) == found, "nothing moves without a cause"


@pytest.mark.requirement("DP-ASSIGN-02")
@given(names=st.frozensets(st.sampled_from("abcdefgh"), min_size=1), count=st.integers(0, 20))
def test_shares_differ_by_one_at_most(names: frozenset[str], count: int) -> None:
    sizes = sorted(map(len, uniform(members(of_topics(FOO), *names), {FOO: count}).values()))
    assert sizes[-1] - sizes[0] <= 1
    assert sum(sizes) == count


@pytest.mark.requirement("DP-ASSIGN-05")
def test_racks_are_no_argument() -> None:
    assert not hasattr(Subscriber(frozenset()), "rack_id")
