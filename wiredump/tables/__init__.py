"""Write tables as Parquet files, and read them, in one process or several. Needs the extra
``tables`` (pyarrow).

This module imports nothing, so that ``require_pyarrow`` can report a missing pyarrow.
"""

from __future__ import annotations

import importlib.util

from kproto.errors import MissingExtraError

__all__ = ["require_pyarrow"]


def require_pyarrow() -> None:
    """Raise MissingExtraError if pyarrow is not installed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtraError("tables need pyarrow", extra="wiredump")
