"""How the C library handles freed memory. Knows nothing about captures."""

from __future__ import annotations

from functools import cache
from typing import Final

__all__ = ["keep_chunks"]

_LARGEST: Final = 31 << 20
"""Nearly the most that glibc takes as that sign; buffers of row groups grow to 32 MB."""


@cache
def keep_chunks() -> None:
    """Make the allocator reuse the memory of chunks and of row groups, from the first one on.

    glibc gets blocks of a chunk's size from the kernel and returns them, so that every page is
    mapped and cleared again, until a larger block has been freed; it takes that as a sign of what
    the program will need. Without this call that happens when the first row group is written:
    reading takes a third longer until then, and memory grows afterwards. So this frees one block
    that was never written to. Other C libraries are not affected.
    """
    bytes(_LARGEST)
