"""Errors of the tools and the stream that each text goes to. Knows nothing of brokers.

::

    KprotoError
    ├── ToolUsageError      invalid combination of options; nothing was sent
    └── ToolError           the operation failed; ``str()`` is the text for stderr
"""

from __future__ import annotations

from collections.abc import Sequence

from kproto.errors import KprotoError

__all__ = ["ToolError", "ToolUsageError"]


class ToolUsageError(KprotoError, ValueError):
    """Options that Kafka's tool refuses too, with its text."""


class ToolError(KprotoError):
    """An operation that failed.

    ``printed`` is the line that Kafka's tool writes about it to standard output, or None if it
    writes nothing there; ``details`` are the lines below it.
    """

    def __init__(
        self, message: str, *, printed: str | None = None, details: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.printed = printed
        self.details = details
