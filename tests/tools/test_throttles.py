"""Throttles: who sends, who receives, and how Kafka writes it."""

from hypothesis import given
from hypothesis import strategies as st

from kproto.client import PartitionReassignment, TopicPartition
from kproto.tools.throttles import (
    Move,
    follower_throttles,
    leader_throttles,
    moving_brokers,
    proposed_moves,
)

FOO = [TopicPartition("foo", index) for index in range(11)]
ids = st.lists(st.integers(0, 8), min_size=1, max_size=4, unique=True)


def test_a_move_of_an_idle_partition_and_of_one_in_flight():
    ongoing = {
        FOO[1]: PartitionReassignment([4, 1, 2], adding_replicas=[4], removing_replicas=[2]),
        FOO[2]: PartitionReassignment([1, 2, 3], adding_replicas=[3]),
    }
    moves = proposed_moves(ongoing, {FOO[0]: [2, 3], FOO[1]: [5]}, {FOO[0]: [1, 2], FOO[1]: [4, 1]})
    assert moves == {
        FOO[0]: Move(frozenset({1, 2}), frozenset({3})),
        # From where the ongoing move takes it, not from the brokers that are only being added.
        FOO[1]: Move(frozenset({1, 2}), frozenset({5})),
        FOO[2]: Move(frozenset({1, 2}), frozenset({3})),
    }


def test_texts_are_sorted_as_texts_and_may_be_empty():
    moves = {
        FOO[2]: Move(frozenset({1, 10}), frozenset()),
        FOO[10]: Move(frozenset({1}), frozenset()),
    }
    assert leader_throttles(moves) == {"foo": "10:1,2:1,2:10"}
    assert follower_throttles(moves) == {"foo": ""}
    assert moving_brokers(moves) == [1, 10]


@given(st.dictionaries(st.sampled_from(FOO), st.tuples(ids, ids)))
def test_every_broker_of_a_move_is_throttled_once(proposed):
    current = {key: old for key, (old, _) in proposed.items()}
    moves = proposed_moves({}, {key: new for key, (_, new) in proposed.items()}, current)
    sent = leader_throttles(moves).get("foo", "").split(",")
    received = follower_throttles(moves).get("foo", "").split(",")
    expected = {f"{k.partition}:{b}" for k, (old, _) in proposed.items() for b in old}
    assert set(filter(None, sent)) == expected
    assert not (set(filter(None, received)) & expected)
    assert {int(each.split(":")[1]) for each in sent + received if each} == {*moving_brokers(moves)}
