"""What is watched of a process that is given damaged frames: it must not take the machine along.

Where ``kspec.clientfuzz.process_usage`` can see nothing (not on Linux), nothing is bounded or said.
"""

from __future__ import annotations

import re
from typing import Final

from kspec.clientfuzz.process_usage import Watch

__all__ = ["GROWTH", "MOST_MEMORY", "Memory", "is_out_of_memory"]

MOST_MEMORY: Final = 2 << 30
"""What a decoder may allocate: one that takes a count of 2147483647 at its word shall fail."""
GROWTH: Final = 128 << 20
"""What a process may hold more after many small frames than after the first few."""
_FIRST_FEW: Final = 3
_EVERY: Final = 10
"""Looking takes longer than a small frame does."""

_OUT_OF_MEMORY: Final = re.compile(
    r"MemoryError|OutOfMemory|out of memory|bad_alloc|cannot allocate"
    r"|Array buffer allocation failed|RangeError: Invalid (array|string) length|RecursionError"
    r"|StackOverflow|Maximum call stack",
    re.I,
)


def is_out_of_memory(text: str) -> bool:
    """Whether an error tells of memory or stack: no refusal, but an attempt that failed."""
    return _OUT_OF_MEMORY.search(text) is not None


class Memory:
    """One process, which leads a session: its memory bounded, and whether it holds much more now
    than after the first few frames."""

    def __init__(self, pid: int) -> None:
        self._watch = Watch(pid, most_memory=MOST_MEMORY)
        self._seen = 0
        self._first = 0

    def has_grown(self) -> bool:
        """Called after each frame."""
        self._seen += 1
        if self._seen > _FIRST_FEW and self._seen % _EVERY:
            return False
        now = self._watch.usage().resident
        if self._seen <= _FIRST_FEW:
            self._first = max(self._first, now)
            return False
        return now - self._first > GROWTH
