"""Quick runs draw some of a test's parameters by the seed, and leave no test out."""

from __future__ import annotations

from itertools import groupby

from tests.support.full import PARAMETERS, some_parameters


def test_some_parameters_of_each_test_are_drawn() -> None:
    tests = [("many", number) for number in range(40)] + [("one", 0)]
    tests += [("few", number) for number in range(PARAMETERS)]
    kept, left_out = some_parameters(tests, name=lambda each: each[0])
    assert sorted(kept + left_out) == sorted(tests)
    assert kept == sorted(kept, key=tests.index)
    counts = {name: len(list(same)) for name, same in groupby(kept, lambda each: each[0])}
    assert counts == {"many": PARAMETERS, "one": 1, "few": PARAMETERS}
    assert some_parameters(tests, name=lambda each: each[0]) == (kept, left_out)
    other, _ = some_parameters(tests, name=lambda each: f"other {each[0]}")
    assert other != kept
