"""The optional C extension, which reads the usual packets of captures in bulk.

It is used if it was built, unless ``KPROTO_ENGINE=pure`` selects Python. The results are equal to
the last row: the extension returns everything unusual to Python (``wiredump.sources.quick``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

import kproto

__all__ = ["INTERFACE", "built", "quick", "using"]

INTERFACE: Final = 4
"""That of the extension, counted up with each change (``native/wire.h``)."""

_chosen: list[ModuleType | None] = []


def built() -> ModuleType | None:
    """Return the extension; None if it was not built, does not load or was built from other
    sources, which an editable install does not notice."""
    try:
        from wiredump.native import _quick
    except ImportError:
        return None
    return _quick if getattr(_quick, "INTERFACE", 1) == INTERFACE else None


def quick() -> ModuleType | None:
    """Return the extension if it is in use; None if everything runs in Python."""
    if not _chosen:
        _chosen.append(None if kproto.engine == "pure" else built())
    return _chosen[-1]


@contextmanager
def using(module: ModuleType | None) -> Iterator[None]:
    """Use this extension, or for None Python alone, until the block ends."""
    _chosen.append(module)
    try:
        yield
    finally:
        _chosen.pop()
