"""The work that a request takes grows with its length, at most with a logarithm beside it."""

import pytest

from mockbroker.profiles import profile
from tests.mockbroker.growth.grown_requests import LongArray, long_arrays
from tests.support.steps import MOST_GROWTH, growth_of

PROFILES = {name: profile(name) for name in ("kafka-4.4", "kafka-2.4")}
ARRAYS = [(name, array) for name, each in PROFILES.items() for array in long_arrays(each)]


@pytest.mark.parametrize(
    ("name", "array"), ARRAYS, ids=[f"{name}: {each}" for name, each in ARRAYS]
)
def test_steps_grow_with_the_length_of_an_array(name: str, array: LongArray) -> None:
    growth = growth_of(array.asked(PROFILES[name]), 60)
    assert growth.factor <= MOST_GROWTH, growth
