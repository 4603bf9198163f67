"""How a tool ends badly. Knows which text goes where, and nothing of brokers.

::

    KprotoError
    ├── ToolUsageError      the options make no sense together: nothing was sent
    └── ToolError           the operation failed; ``str()`` is the text for stderr
"""

from __future__ import annotations

from kproto.errors import KprotoError

__all__ = ["ToolError", "ToolUsageError"]


class ToolUsageError(KprotoError, ValueError):
    """Options that Kafka's tool refuses too, in its words."""


class ToolError(KprotoError):
    """An operation that failed.

    ``printed`` is what Kafka's tool writes to standard output about it (several lines at times), or
    None where it writes there nothing.
    """

    def __init__(self, message: str, *, printed: str | None = None) -> None:
        super().__init__(message)
        self.printed = printed
