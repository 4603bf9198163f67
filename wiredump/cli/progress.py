"""Progress on standard error, if that is a terminal: a bar over the bytes of files, or what is
being done. rich is imported only when there is something to draw."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Bar", "reading", "status"]

_QUIET_SECONDS: Final = 1.0
"""The bar is shown after this long without output."""


@contextmanager
def reading(paths: Sequence[str]) -> Iterator[Callable[[int], object]]:
    """Yield a function to call with the number of bytes read so far, of all files."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    with _bar() as progress:
        task = progress.add_task("reading", total=_size(paths))
        yield lambda count: progress.update(task, completed=count)


@contextmanager
def status(text: str) -> Iterator[None]:
    """Show what is being done meanwhile."""
    if not sys.stderr.isatty():
        yield
        return
    from kproto.cli.console import Console

    with Console(stderr=True).status(text):
        yield


class Bar:
    """The bar of a command that also writes lines: shown after a second without a line, and hidden
    before the next one.

    There is no bar if the lines go to a pipe, whose reader may be a pager on the same terminal.
    ``clock`` returns seconds.
    """

    def __init__(
        self, paths: Sequence[str], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wanted = bool(paths) and sys.stderr.isatty() and _is_terminal_or_file()
        self._clock = clock
        self._paths = paths
        self._written = clock()
        self._progress: Progress | None = None
        self._shown = False

    def update(self, count: int) -> None:
        """Show that ``count`` bytes of all files were read so far."""
        if not self._wanted:
            return
        if not self._shown:
            if self._clock() - self._written < _QUIET_SECONDS:
                return
            if self._progress is None:
                self._progress = _bar()
                self._progress.add_task("reading", total=_size(self._paths))
            sys.stdout.flush()
            self._progress.start()
            self._shown = True
        assert self._progress is not None
        self._progress.update(self._progress.task_ids[0], completed=count)

    def hide(self) -> None:
        """Hide the bar before something is written."""
        if self._wanted:
            self._written = self._clock()
            if self._shown and self._progress is not None:
                self._progress.stop()
                self._shown = False

    def close(self) -> None:
        """Hide the bar for good."""
        self.hide()
        self._wanted = False


def _bar() -> Progress:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from kproto.cli.console import Console

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _is_terminal_or_file() -> bool:
    """Whether standard output is a terminal or a file."""
    if sys.stdout.isatty():
        return True
    try:
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _size(paths: Sequence[str]) -> int | None:
    """Return the size of all files, or None if one has no known size."""
    try:
        sizes = [os.stat(path).st_size if os.path.isfile(path) else None for path in paths]
    except OSError:
        return None
    return None if None in sizes else sum(size or 0 for size in sizes)
