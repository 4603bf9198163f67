"""kspec's errors.

::

    KprotoError
    └── KspecError
        ├── CaseError        a case file says what cannot be meant; tells file, line and place
        ├── AdapterError     the client's process died or hung
        │   └── AdapterFault the adapter failed: an error of the run, not a verdict
        └── AbsentError      a client cannot run on this machine; says what is missing
"""

from __future__ import annotations

from kproto.errors import KprotoError

__all__ = ["AbsentError", "AdapterError", "AdapterFault", "CaseError", "KspecError"]


class KspecError(KprotoError):
    """The root of what this package raises."""


class CaseError(KspecError):
    """``where`` is ``file:line``, ``place`` the path inside the file (``steps[1].call``)."""

    def __init__(self, where: str, place: str, problem: str) -> None:
        super().__init__(f"{where}: {place + ': ' if place else ''}{problem}")
        self.where = where
        self.place = place
        self.problem = problem


class AdapterError(KspecError):
    """The client's process is of no use any more. ``hung``: it was killed for its silence."""

    def __init__(self, message: str, *, hung: bool = False) -> None:
        super().__init__(message)
        self.hung = hung


class AdapterFault(AdapterError):
    """The adapter failed, not the client: it reported an error of its own, did not start, or wrote
    what is not a line of the protocol. Nothing is known about the client."""


class AbsentError(KspecError):
    """The client cannot run on this machine; the text says what is missing and how to get it."""
