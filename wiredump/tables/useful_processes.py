"""How many processes are worth starting for some captures, and what they share.

Starting them and merging what they set aside takes as long as reading the first few megabytes. And
they cannot share finding frames in the extension: each of them has to find all.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from wiredump.native import quick
from wiredump.sources.kinds import kind_of
from wiredump.storage import Location
from wiredump.tables.work import Work

__all__ = ["divides_connections", "usable_cores", "useful_processes"]

_BYTES_A_PROCESS: Final = 24 << 20
"""Two processes read 48 MB of small messages a fifth faster than one, and of large ones as fast."""
_WITHOUT_BODIES: Final = frozenset({"lineage", "account", "frames"})


def divides_connections(work: Work) -> bool:
    """Whether processes share the exchanges of each connection: where the extension reads it."""
    return quick() is not None and work.keylog is None and "packets" not in work.tables


def useful_processes(work: Work, most: int) -> int:
    """Return the number of processes, at most ``most``. Raises OSError."""
    paths = work.paths.values()
    captures = [path for path in paths if path == "-" or kind_of(path) == "capture"]
    if most < 2 or "-" in captures:
        return most
    decodes = work.bodies and not _WITHOUT_BODIES.issuperset(work.tables)
    if divides_connections(work) and not decodes:
        return 1
    size = sum(Location(path).info().size for path in captures)
    return max(1, min(most, size // _BYTES_A_PROCESS))


def usable_cores() -> int:
    """Return how many processors this process may use."""
    with suppress(AttributeError):  # not available on every platform
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
