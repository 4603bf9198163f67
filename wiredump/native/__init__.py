"""The quick way through captures: what is usual in them, in bulk, by an extension in C. Optional.

It runs where it was built, unless ``KPROTO_ENGINE=pure`` has everything run in Python. What comes
out is the same to the last row: it does the usual, and hands what is not back to Python
(``wiredump.sources.quick``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import kproto

__all__ = ["built", "quick", "using"]

_chosen: list[ModuleType | None] = []


def built() -> ModuleType | None:
    """The extension, None where it was not built or does not load."""
    try:
        from wiredump.native import _quick
    except ImportError:
        return None
    return _quick


def quick() -> ModuleType | None:
    """The extension in use; None: everything runs in Python."""
    if not _chosen:
        _chosen.append(None if kproto.engine == "pure" else built())
    return _chosen[-1]


@contextmanager
def using(module: ModuleType | None) -> Iterator[None]:
    """This one, or Python alone, until the block ends."""
    _chosen.append(module)
    try:
        yield
    finally:
        _chosen.pop()
