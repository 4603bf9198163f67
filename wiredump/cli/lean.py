"""Clean-up that the process of a command can skip, since the process ends with the command."""

from __future__ import annotations

import os
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
    """Import what writes tables, and leave it to the garbage collector no more; in a process of the
    command's own without numpy.

    pyarrow imports numpy if it is there, which takes longer than the rest of pyarrow, for
    conversions that writing tables has no use for. Its own allocator clears whole huge pages for
    buffers that are smaller; memory of the C library is there already. Nor does that allocator need
    a thread then: a process with a single one can be forked (``wiredump.tables.processes``).
    """
    if _is_own:
        sys.modules.setdefault("numpy", None)  # type: ignore[arg-type]  # importing it fails
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
        os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    yield
    collect_seldom()
