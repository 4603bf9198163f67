"""What the C library does with memory that was given back. Knows nothing of captures."""

from __future__ import annotations

from functools import cache
from typing import Final

__all__ = ["keep_chunks"]

_LARGEST: Final = 8 << 20
"""More than any chunk that is read at a time."""


@cache
def keep_chunks() -> None:
    """Have memory of chunks used again for chunks, from the first one on.

    Blocks of a chunk's size come from the kernel and go back to it, each page of them cleared and
    mapped anew, until a larger one was freed: by that glibc tells what a program is going to need
    again. Which would be when the first row group has been written; then memory grows by what is
    not given back any more, and reading takes a third less. So one is freed that nobody has
    written to, which costs a call. Other C libraries do not mind.
    """
    bytes(_LARGEST)
