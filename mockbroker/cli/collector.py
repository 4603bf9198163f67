"""When Python's garbage collector runs: seldom while a command starts, less seldom in a server."""

from __future__ import annotations

import gc
from typing import Final

__all__ = ["collect_seldom", "keep_what_is_loaded"]

_STARTING: Final = 100_000
"""New objects after which the collector runs. An import makes thousands that all stay: with 700, as
in Python, a tenth of the time of a start went into collections."""
_SERVING: Final = 20_000


def collect_seldom() -> None:
    """Let imports make many objects before a collection looks for garbage among them."""
    _collect_after(_STARTING)


def keep_what_is_loaded() -> None:
    """Leave out what exists now from collections, which from now on are more frequent.

    Modules and rows stay for good. A full collection that looks at them, too, takes 50 ms, in which
    no request is answered.
    """
    gc.freeze()
    _collect_after(_SERVING)


def _collect_after(objects: int) -> None:
    gc.set_threshold(objects, *gc.get_threshold()[1:])
