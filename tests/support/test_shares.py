"""Each share of a run begins with slow tests, as many as the others, and units stay together."""

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from tests.support.shares import in_shares

TESTS = st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=200).map(
    lambda drawn: [
        (f"unit {unit}", slow, number)
        for number, (unit, slow) in enumerate(sorted(drawn, key=lambda pair: pair[0]))
    ]
)


def ordered(tests: list[tuple[str, bool, int]], shares: int) -> list[tuple[str, bool, int]]:
    return in_shares(tests, shares, unit=lambda test: test[0], weight=lambda test: int(test[1]))


@given(TESTS, st.integers(1, 6))
def test_every_test_runs_once_and_units_are_cut_at_the_ends_of_shares_alone(tests, shares):
    found = ordered(tests, shares)
    assert sorted(found, key=lambda test: test[2]) == tests
    pieces = [unit for unit, _ in groupby(found, lambda test: test[0])]
    assert len(pieces) < len(set(pieces)) + 2 * shares


def test_slow_units_come_first_in_each_share_and_are_spread_evenly():
    tests = [
        (f"unit {unit:02}", unit in (3, 4, 5, 6), number)
        for unit in range(20)
        for number in range(10)
    ]
    found = ordered(tests, 4)
    for share in range(4):
        part = found[50 * share : 50 * (share + 1)]
        assert [slow for _, slow, _ in part] == [True] * 10 + [False] * 40
