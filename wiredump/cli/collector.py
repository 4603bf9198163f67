"""Have the garbage collector run seldom while a command reads captures."""

from __future__ import annotations

import gc

__all__ = ["collect_seldom"]

_THRESHOLDS = (100_000, 20, 100)


def collect_seldom() -> None:
    """Exempt what was imported from collections, and collect less often. Reading makes millions of
    rows and hardly any cycles, and looking for those takes a tenth of the time."""
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
