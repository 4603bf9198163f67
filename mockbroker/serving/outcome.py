"""What answering a request can come to. Plain values; who writes what is for ``server``."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, TypeAlias

from mockbroker.faults.delivery import Plan

__all__ = ["CLOSE", "Close", "Outcome"]


class Close:
    """The answer that is none: close the connection, as brokers do."""


CLOSE: Final = Close()

Outcome: TypeAlias = bytes | Close | Awaitable[bytes | Close | Plan]
"""Bytes to write (perhaps none), or CLOSE, or either of them later; or, later, a rule's plan."""
