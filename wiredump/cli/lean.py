"""What the process of a command leaves out, since it ends with the command: what it imports stays
for nobody else."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from wiredump.cli.collector import collect_seldom

__all__ = ["lean_imports", "own_process"]

_is_own = False


def own_process() -> None:
    """Note that this process runs a command and nothing else."""
    global _is_own
    _is_own = True


@contextmanager
def lean_imports() -> Iterator[None]:
    """Import what writes tables without the garbage collector traversing it, now and later, and in
    a process of the command's own without numpy.

    pyarrow imports numpy if it is there, which takes longer than the rest of pyarrow, for
    conversions that writing tables has no use for.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    if _is_own:
        sys.modules.setdefault("numpy", None)  # type: ignore[arg-type]  # importing it fails
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
    collect_seldom()
