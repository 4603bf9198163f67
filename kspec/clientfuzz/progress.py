"""A line on stderr now and then, for runs that take minutes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import click

__all__ = ["Ticker"]

T = TypeVar("T")

SECONDS: Final = 10.0
"""Between two lines."""


class Ticker(Generic[T]):
    """Called with what has come of a run until now, which it keeps: ``so_far`` is None before."""

    def __init__(self, line: Callable[[T], str]) -> None:
        self._line = line
        self._last = time.monotonic()
        self.so_far: T | None = None

    def __call__(self, result: T) -> None:
        self.so_far = result
        now = time.monotonic()
        if now - self._last >= SECONDS:
            self._last = now
            click.echo(self._line(result), err=True)
