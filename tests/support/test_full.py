"""Quick runs draw some of a test's parameters by the seed, and leave no test out."""

from itertools import groupby

from tests.support.full import PARAMETERS, SLOW_PARAMETERS, some_parameters


def drawn(
    tests: list[tuple[str, int]], prefix: str = "", shown: tuple[str, ...] = ()
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    return some_parameters(
        tests,
        name=lambda each: prefix + each[0],
        slow=lambda each: each[0] == "slow",
        shows=lambda each: shown if each[1] in (7, 30) else (),
    )


def test_some_parameters_of_each_test_are_drawn() -> None:
    tests = [("many", number) for number in range(40)] + [("one", 0)]
    tests += [("few", number) for number in range(PARAMETERS)]
    tests += [("slow", number) for number in range(40)]
    kept, left_out = drawn(tests)
    assert sorted(kept + left_out) == sorted(tests)
    assert kept == sorted(kept, key=tests.index)
    counts = {name: len(list(same)) for name, same in groupby(kept, lambda each: each[0])}
    assert counts == {"many": PARAMETERS, "one": 1, "few": PARAMETERS, "slow": SLOW_PARAMETERS}
    assert drawn(tests) == (kept, left_out)
    other, _ = drawn(tests, "other ")
    assert other != kept


def test_what_a_sample_does_not_show_is_shown() -> None:
    tests = [("many", number) for number in range(40)]
    kept, _ = drawn(tests)
    assert not {("many", 7), ("many", 30)} & set(kept)
    also, left_out = drawn(tests, shown=("A-01",))
    assert also == sorted([*kept, ("many", 7)])
    assert ("many", 30) in left_out
