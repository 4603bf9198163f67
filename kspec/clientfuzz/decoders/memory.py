"""Limit and watch the memory of a process that decodes mutated frames.

Where ``kspec.clientfuzz.process_usage`` is not available (not on Linux), there is no limit and no
verdict.
"""

from __future__ import annotations

import re
from typing import Final

from kspec.clientfuzz.process_usage import Watch

__all__ = ["GROWTH", "MOST_MEMORY", "Memory", "is_out_of_memory"]

MOST_MEMORY: Final = 2 << 30
"""Memory limit of a decoder, so that one that trusts a count of 2147483647 fails."""
GROWTH: Final = 128 << 20
"""Growth allowed between the first few frames and many small frames later."""
_FIRST_FEW: Final = 3
_EVERY: Final = 10
"""Number of frames between measurements, each of which takes longer than a small frame."""

_OUT_OF_MEMORY: Final = re.compile(
    r"MemoryError|OutOfMemory|out of memory|bad_alloc|cannot allocate"
    r"|Array buffer allocation failed|RangeError: Invalid (array|string) length|RecursionError"
    r"|StackOverflow|Maximum call stack",
    re.I,
)


def is_out_of_memory(text: str) -> bool:
    """Return whether an error is about memory or stack, which is a failed attempt and not a
    rejection."""
    return _OUT_OF_MEMORY.search(text) is not None


class Memory:
    """A process that leads a session: limits its memory, and tells whether it has grown since the
    first few frames."""

    def __init__(self, pid: int) -> None:
        self._watch = Watch(pid, most_memory=MOST_MEMORY)
        self._seen = 0
        self._first = 0

    def has_grown(self) -> bool:
        """Measure the process if due. Called after each frame."""
        self._seen += 1
        if self._seen > _FIRST_FEW and self._seen % _EVERY:
            return False
        now = self._watch.usage().resident
        if self._seen <= _FIRST_FEW:
            self._first = max(self._first, now)
            return False
        return now - self._first > GROWTH
