"""``wiredump spark --follow``: how often to look for files, and how to stop."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import click

from kproto.durations import DurationError, parse_duration

__all__ = ["cores_of", "seconds", "stopping"]

_TASKS: Final = 32
"""If the number of cores is unknown."""


def seconds(ctx: click.Context, option: click.Parameter, value: str) -> float:
    """Parse a duration: 500ms, 10s, 2m, 1h. Raises click.BadParameter."""
    try:
        return parse_duration(value) / 10**9
    except DurationError as error:
        raise click.BadParameter(str(error), ctx, option) from None


def cores_of(master: str) -> int:
    """Return how many tasks share the connections by default."""
    found = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", master)
    if found is None:
        return _TASKS
    cores = found[1] or "1"
    return (os.cpu_count() or 1) if cores == "*" else max(1, int(cores))


@contextmanager
def stopping(pause: float, say: Callable[[str], object]) -> Iterator[Callable[[], bool]]:
    """Yield a function that waits for ``pause`` seconds and returns whether to go on.

    The first SIGINT or SIGTERM makes it return False, so that the current batch is finished; the
    second raises KeyboardInterrupt.
    """
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()
        say("stopping after this batch; interrupt again to stop at once")

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: not stopped.wait(pause)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
