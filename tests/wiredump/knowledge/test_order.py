"""Exchanges in the order of their requests, whatever the order they come in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wiredump.knowledge.excerpts import Excerpt
from wiredump.knowledge.order import InOrder


def excerpt(asked: int, took: int, number: int) -> Excerpt:
    return Excerpt(0, number, asked, asked + took, "b", None, None, None, 3, 0, "kafka", {}, {})


exchanges = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 100)), max_size=50).map(
    lambda pairs: [excerpt(asked, took, n) for n, (asked, took) in enumerate(pairs)]
)


@given(exchanges, st.integers(100, 500))
def test_in_order_where_nothing_takes_longer_than_is_waited(items, longest: int) -> None:
    items.sort(key=lambda each: each.completed_ns)
    order = InOrder(longest)
    out = [each for item in items for each in order.add(item)] + list(order.end())
    assert out == sorted(items, key=lambda each: each.order)
    assert order.late == 0


@given(exchanges, st.integers(0, 50), st.integers(1, 30))
def test_nothing_is_lost_and_no_more_is_kept_than_is_allowed(items, longest, weight) -> None:
    order = InOrder(longest, weight)
    out: list[Excerpt] = []
    for item in items:
        out += order.add(item)
        assert order._weight <= weight
    out += order.end()
    assert sorted(each.request_offset for each in out) == list(range(len(items)))
