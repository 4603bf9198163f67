"""A test that Spark gave no time is repeated once."""

import pytest

from tests.wiredump.spark.starved import STARVED

TIMES: dict[str, int] = {}


@pytest.fixture
def times(request: pytest.FixtureRequest) -> int:
    name = request.node.name
    TIMES[name] = TIMES.get(name, 0) + 1
    return TIMES[name]


def test_a_starved_test_is_repeated(times: int) -> None:
    if times == 1:
        raise RuntimeError(f"the query failed: {STARVED}. SQLSTATE: XXKST")
    assert times == 2


def test_another_test_is_not(times: int) -> None:
    assert times == 1
