"""What a call may cost: memory in proportion to what it was given.

``allocating`` measures a call with ``tracemalloc``, which makes it several times as slow. So a
process that fuzzes measures one input in ``MEASURED``, chosen by its checksum: the same ones every
time. Everybody else (``replay``, pytest) measures each. The same goes for whatever else costs more
than what it is to check (``is_due``). What no measure is needed for holds for every input of every
process: a reservation of gigabytes is a MemoryError under the address space that ``worker`` leaves
itself, and no target accepts that.
"""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any, Final

__all__ = ["MEASURED", "TooMuchMemory", "allocating", "is_due", "save_time"]

MEASURED: Final = 32

_saves_time = False


class TooMuchMemory(AssertionError):
    """A call reserved more than its input explains."""


def save_time() -> None:
    """From now on do what is dear for some inputs only."""
    global _saves_time
    _saves_time = True


def is_due(data: bytes, one_in: int) -> bool:
    """Whether what is dear is to be done: for every input, or one in so many."""
    return not _saves_time or zlib.crc32(data) % one_in == 0


def allocating(
    call: Callable[[], Any], data: bytes, *, a_byte: int, besides: int = 64 * 1024
) -> Any:
    """What ``call`` returns. Where that is due it is called once more, now that
    codecs are made and modules imported, and may reserve ``besides`` bytes and ``a_byte`` for each
    byte of ``data``. Raises TooMuchMemory, and what ``call`` raises."""
    result = call()
    if not is_due(data, MEASURED):
        return result
    limit = besides + a_byte * len(data)
    nested = tracemalloc.is_tracing()
    if nested:
        tracemalloc.reset_peak()
    else:
        tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        call()
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        if not nested:
            tracemalloc.stop()
    if peak > limit:
        raise TooMuchMemory(f"{peak} bytes reserved for {len(data)} of input; {limit} may be")
    return result
