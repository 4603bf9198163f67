"""Which engine runs a stage: Python alone, the extension, or the extension as eager as it can be,
which lends a connection again behind every packet that is not usual."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from tests.wiredump.quickly import require_quick
from wiredump import native
from wiredump.sources import lent

__all__ = ["ENGINES", "running_on"]

ENGINES: Final = ("python", "quick", "eager")


@contextmanager
def running_on(engine: str) -> Iterator[None]:
    """Stages run on it. Skips where that is not built."""
    if engine != "python":
        require_quick()
    with native.using(None if engine == "python" else native.built()), _eagerly(engine == "eager"):
        yield


@contextmanager
def _eagerly(asked: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if asked:
            patch.setattr(lent, "_LONGEST_WAIT", 0)
        yield
