"""Which engine runs a stage: Python alone, or the extension."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.wiredump.quickly import require_quick
from wiredump import native

__all__ = ["ENGINES", "running_on"]

ENGINES: Final = ("python", "quick")


@contextmanager
def running_on(engine: str) -> Iterator[None]:
    """Stages run on it. Skips where that is not built."""
    if engine != "python":
        require_quick()
    with native.using(None if engine == "python" else native.built()):
        yield
