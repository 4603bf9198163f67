"""Tests of the C engine run on it, and are skipped where it is not built (not in CI)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import engines


@pytest.fixture(autouse=True)
def engine() -> Iterator[str]:
    engines.require_native()
    with engines.running("native"):
        yield "native"
