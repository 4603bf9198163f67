"""Tables as Parquet files, written and read by one process. Needs the extra ``tables`` (pyarrow).

Nothing is imported here, so that ``require_pyarrow`` can say what is missing.
"""

from __future__ import annotations

import importlib.util

from kproto.errors import MissingExtraError

__all__ = ["require_pyarrow"]


def require_pyarrow() -> None:
    """Raise MissingExtraError where pyarrow is not installed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtraError("tables need pyarrow", extra="tables")
