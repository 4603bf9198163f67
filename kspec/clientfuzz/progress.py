"""Progress lines on stderr for runs that take minutes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from kproto.cli.terminal import echo

__all__ = ["Progress"]

T = TypeVar("T")

SECONDS: Final = 10.0
"""Time between two lines."""


class Progress(Generic[T]):
    """A callback that keeps the latest result and prints a line about it every ten seconds.

    ``latest`` is None until the first call.
    """

    def __init__(self, line: Callable[[T], str]) -> None:
        self._line = line
        self._last = time.monotonic()
        self.latest: T | None = None

    def __call__(self, result: T) -> None:
        self.latest = result
        now = time.monotonic()
        if now - self._last >= SECONDS:
            self._last = now
            echo(self._line(result), err=True)
