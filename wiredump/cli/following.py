"""``wiredump spark --follow``: rotating captures to tables, until stopped or to their end."""

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

__all__ = ["cores_of", "seconds", "stopping"]

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TASKS: Final = 32
"""Where nobody knows how many cores there are."""


def seconds(ctx: click.Context, option: click.Parameter, value: str) -> float:
    """A duration: 500ms, 10s, 2m, 1h. Raises click.BadParameter."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", value.strip())
    if found is None:
        raise click.BadParameter(f"{value!r} is no duration: 500ms, 10s, 2m", ctx, option)
    return float(found[1]) * _UNITS[found[2]]


def cores_of(master: str) -> int:
    """How many tasks share the connections, where nobody says."""
    found = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", master)
    if found is None:
        return _TASKS
    cores = found[1] or "1"
    return (os.cpu_count() or 1) if cores == "*" else max(1, int(cores))


@contextmanager
def stopping(pause: float, say: Callable[[str], object]) -> Iterator[Callable[[], bool]]:
    """A wait of so long, which says False once somebody wants it to end: by SIGINT or SIGTERM, of
    which the first lets the batch under way be finished."""
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        stopped.set()
        say("stopping behind this batch; once more stops at once")

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: not stopped.wait(pause)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
