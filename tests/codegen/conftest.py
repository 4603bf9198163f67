"""Every test of a codec runs on each engine there is."""

from collections.abc import Iterator

import pytest

from tests.support import engines


@pytest.fixture(params=engines.BUILT, autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    name: str = request.param
    with engines.running(name):
        yield name
