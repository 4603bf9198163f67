"""A progress bar on standard error, where that is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

__all__ = ["reading"]


@contextmanager
def reading(paths: Sequence[str]) -> Iterator[Callable[[int], object]]:
    """To be called with the bytes read of all of them so far."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=_size(paths))
        yield lambda count: progress.update(task, completed=count)


def _size(paths: Sequence[str]) -> int | None:
    """None where one of them has no size that is known beforehand."""
    try:
        sizes = [os.stat(path).st_size if os.path.isfile(path) else None for path in paths]
    except OSError:
        return None
    return None if None in sizes else sum(size or 0 for size in sizes)
