"""kspec's errors.

::

    KprotoError
    └── KspecError
        ├── CaseError        a case file is invalid; has the file, line and place
        └── AdapterError     the client's process died or hung
            └── AdapterFault the adapter failed: an error of the run, not a verdict

A client that cannot run on this machine is ``kproto.errors.AbsentError``.
"""

from __future__ import annotations

import traceback

from kproto.errors import KprotoError
from kproto.os_errors import os_error_text

__all__ = ["AdapterError", "AdapterFault", "CaseError", "KspecError", "own_failure"]


class KspecError(KprotoError):
    """The root of the errors that this package raises."""


class CaseError(KspecError):
    """An invalid case file. ``where`` is ``file:line``, ``place`` a path such as
    ``steps[1].call``."""

    def __init__(self, where: str, place: str, problem: str) -> None:
        super().__init__(f"{where}: {place + ': ' if place else ''}{problem}")
        self.where = where
        self.place = place
        self.problem = problem


class AdapterError(KspecError):
    """The client's process is no longer usable. ``hung`` is True if it was killed for not
    answering."""

    def __init__(self, message: str, *, hung: bool = False) -> None:
        super().__init__(message)
        self.hung = hung


class AdapterFault(AdapterError):
    """The adapter failed rather than the client.

    It reported an error of its own, did not start, or wrote a line that is not part of the
    protocol. Nothing is known about the client.
    """


def own_failure(error: Exception) -> str:
    """Return an error, or the first of a group, in one line. One that is neither ours nor the
    system's is a defect of kspec and has its place in the source."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, KprotoError):
        return " ".join(str(error).split())
    if isinstance(error, OSError):
        return os_error_text(error) or type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    at = f" at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return f"kspec failed: {text}{at}"
