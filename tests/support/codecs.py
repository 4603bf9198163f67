"""An install without the library of a compression codec."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from kproto.records import compression

__all__ = ["without"]

_FOUND = (compression._library, compression._decompressor, compression._at_once)
"""What remembers the libraries that were found."""


@contextmanager
def without(module: str) -> Iterator[None]:
    """Behave as if the module, such as ``zstandard``, was not installed."""

    def forget() -> None:
        for each in _FOUND:
            each.cache_clear()

    forget()
    try:
        with patch.dict(sys.modules, {module: None}):  # type: ignore[dict-item]
            yield
    finally:
        forget()
