"""Tests of the C engine run on it, and are skipped where it is not built (not in CI)."""

import gc
from collections.abc import Iterator

import pytest

from tests.support import engines


@pytest.fixture(scope="module", autouse=True)
def _alone() -> None:
    """Tests here ask for collections by the thousand: none looks at what other files left."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def engine() -> Iterator[str]:
    engines.require_native()
    with engines.running("native"):
        yield "native"
