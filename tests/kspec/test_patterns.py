"""Patterns fit what they were made of, and say what differs and where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.patterns import mismatch, parse_range

WORDS = {"any_of", "not", "unordered", "contains", "length", "absent"}
plain_text = st.text(max_size=5).filter(lambda text: text != "*" and not text.startswith("/"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | plain_text,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(plain_text.filter(lambda key: key not in WORDS), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values)
def test_a_value_fits_itself_and_everything_fits_the_star(value):
    assert mismatch(value, value) is None
    assert mismatch("*", value) is None
    assert mismatch({"any_of": [value]}, value) is None
    assert mismatch({"not": value}, value) is not None


@given(st.lists(values, max_size=4), st.randoms(use_true_random=False))
def test_unordered_fits_any_order(items, random):
    shuffled = list(items)
    random.shuffle(shuffled)
    assert mismatch({"unordered": items}, shuffled) is None
    assert mismatch({"unordered": items}, [*shuffled, 1]) is not None
    assert all(mismatch({"contains": item}, shuffled) is None for item in items)


@given(
    st.dictionaries(st.sampled_from("abc"), values), st.dictionaries(st.sampled_from("xyz"), values)
)
def test_a_mapping_fits_one_with_more_keys_and_not_one_with_fewer(pattern, more):
    assert mismatch(pattern, pattern | more) is None
    if pattern:
        assert mismatch(pattern, more) is not None


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 12))
def test_ranges_hold_both_ends(low, high, number):
    if low > high:
        with pytest.raises(ValueError, match="empty"):
            parse_range(f"{low}-{high}")
        return
    inside = low <= number <= high
    assert (number in parse_range(f"{low}-{high}")) == inside
    assert (mismatch(f"{low}-{high}", number) is None) == inside
    assert (number in parse_range(f"{low}+")) == (number >= low)
    assert number in parse_range(number)


@pytest.mark.parametrize(
    ("pattern", "value", "told"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "a[1].b is 3, not 2"),
        ({"a": 1}, {}, "a is absent"),
        ({"a": {"absent": True}}, {"a": 1}, "a is present: 1"),
        ("/^no/", "yes", "it is 'yes', not '/^no/'"),
        (True, 1, "it is 1, not True"),
        ([1], [1, 2], "it is [1, 2], not [1]"),
        ({"length": "2+"}, [1], "it is [1], not at least 2 items"),
        ({"a": {}}, [], "it is [], not a mapping"),
    ],
)
def test_what_differs_is_told_with_its_path(pattern, value, told):
    assert mismatch(pattern, value) == told


@pytest.mark.parametrize("text", ["", "x", "..3", "3-", "-1", "1-2-3", "1.5"])
def test_what_is_no_range_is_refused(text):
    with pytest.raises(ValueError, match="is not a range"):
        parse_range(text)
