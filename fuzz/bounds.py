"""Bounds on the memory of a call, in proportion to its input.

``allocating`` measures a call with ``tracemalloc``, which makes it several times slower. A fuzzing
process therefore measures one input in ``MEASURED``, always the same ones, chosen by checksum.
``replay`` and pytest measure every input. Other expensive checks work the same way (``is_due``).
One check applies to every input: a reservation of gigabytes is a MemoryError under the address
space limit of ``worker``, and no target accepts that.
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
    """A call reserved more memory than its input explains."""


def save_time() -> None:
    """From now on run expensive checks for some inputs only."""
    global _saves_time
    _saves_time = True


def is_due(data: bytes, one_in: int) -> bool:
    """Return whether to run an expensive check: always, or for one input in so many."""
    return not _saves_time or zlib.crc32(data) % one_in == 0


def allocating(
    call: Callable[[], Any], data: bytes, *, a_byte: int, besides: int = 64 * 1024
) -> Any:
    """Return what ``call`` returns.

    If due, the call is repeated with codecs and modules already loaded, and may then reserve
    ``besides`` bytes plus ``a_byte`` for each byte of ``data``. Raises TooMuchMemory, and what
    ``call`` raises.
    """
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
        raise TooMuchMemory(f"{peak} bytes reserved for {len(data)} of input; the limit is {limit}")
    return result
