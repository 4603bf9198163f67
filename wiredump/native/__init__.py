"""The quick way through captures: what is usual in them, in bulk, by an extension in C. Optional.

It runs where it was built, unless ``KPROTO_ENGINE=pure`` has everything run in Python. What comes
out is the same to the last row: it does the usual, and hands what is not back to Python
(``wiredump.sources.quick``).
"""

from __future__ import annotations

from types import ModuleType

import kproto

__all__ = ["quick"]


def quick() -> ModuleType | None:
    """The extension, None where it is not built or not wanted."""
    if kproto.engine == "pure":
        return None
    try:
        from wiredump.native import _quick
    except ImportError:
        return None
    return _quick
