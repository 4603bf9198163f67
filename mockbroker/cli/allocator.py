"""What a server asks of the C library's allocator."""

from __future__ import annotations

import ctypes
import sys
from typing import Final

__all__ = ["reuse_freed_memory"]

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_LARGEST_REUSED: Final = 32 << 20
"""glibc takes no larger one."""
_MOST_KEPT: Final = 128 << 20


def reuse_freed_memory() -> bool:
    """Keep the memory that an answer releases for the next one, up to 128 MiB.

    An answer to Fetch has megabytes. By default glibc returns them to the kernel, and each page of
    the next answer costs a fault: more time than all else that a large Fetch takes. Returns False
    where the allocator has no such setting, that is without glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # The first one switches off that glibc adapts both, so both are set.
    return bool(
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_REUSED) and mallopt(_M_TRIM_THRESHOLD, _MOST_KEPT)
    )
