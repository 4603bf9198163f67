"""Have the garbage collector run seldom while a command reads captures, and not at its end."""

from __future__ import annotations

import atexit
import gc
from functools import cache

__all__ = ["collect_seldom"]

_THRESHOLDS = (100_000, 20, 100)


def collect_seldom() -> None:
    """Exempt what was imported from collections, and collect less often. Reading makes millions of
    rows and hardly any cycles, and looking for those takes a tenth of the time."""
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    _freeze_at_exit()


@cache
def _freeze_at_exit() -> None:
    """Leave what there is to the operating system: looking through it once more takes a tenth of a
    second."""
    atexit.register(gc.disable)
    atexit.register(gc.freeze)
