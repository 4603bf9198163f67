"""Errors of the tools and the stream that each text goes to. Knows nothing of brokers.

::

    KprotoError
    ├── ToolUsageError      invalid combination of options; nothing was sent
    └── ToolError           the operation failed; ``str()`` is the text for stderr
"""

from __future__ import annotations

from kproto.errors import KprotoError

__all__ = ["ToolError", "ToolUsageError"]


class ToolUsageError(KprotoError, ValueError):
    """Options that Kafka's tool refuses too, with its text."""


class ToolError(KprotoError):
    """An operation that failed.

    ``printed`` is what Kafka's tool writes about it to standard output (possibly several lines), or
    None if it writes nothing there.
    """

    def __init__(self, message: str, *, printed: str | None = None) -> None:
        super().__init__(message)
        self.printed = printed
