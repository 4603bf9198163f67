"""Which case runs which line of the reference client, with several cases played at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, Final, TypeAlias

from kspec.holes.mutant_client import MODULES, path_of

__all__ = ["Lines", "current_case", "recorded"]

Lines: TypeAlias = dict[str, set[tuple[str, int]]]
"""The modules and lines that each case runs."""

current_case: Final[ContextVar[str | None]] = ContextVar("current_case", default=None)
"""The case that is being played. Its tasks inherit it."""

_FILES: Final = {str(path_of(module)): module for module in MODULES}


@contextmanager
def recorded(lines: Lines) -> Iterator[None]:
    """Add to ``lines`` what ``current_case`` runs in this thread."""
    before = sys.gettrace()
    sys.settrace(_tracer(lines))
    try:
        yield
    finally:
        sys.settrace(before)


def _tracer(lines: Lines) -> Callable[[FrameType, str, Any], Any]:
    def on_call(frame: FrameType, _event: str, _argument: Any) -> Any:
        module = _FILES.get(frame.f_code.co_filename)
        case = current_case.get() if module is not None else None
        if module is None or case is None:
            return None
        found = lines.setdefault(case, set())

        def on_line(frame: FrameType, _event: str, _argument: Any) -> Any:
            found.add((module, frame.f_lineno))
            return on_line

        return on_line(frame, _event, _argument)

    return on_call
