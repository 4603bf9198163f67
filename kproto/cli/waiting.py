"""Show on standard error what a command is waiting for, if that is a terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from kproto.cli.console import Console
from kproto.cli.terminal import write_columns

__all__ = ["WaitIndicator"]


class WaitIndicator:
    """In ``with``: ``doing`` changes the line, and ``write`` prints to standard output around
    it."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._live: Live | None = None
        self._spinner = Spinner("dots", "connecting")
        if console.is_terminal:
            # Without redirection: standard output may be a file, which does not belong to this
            # console.
            self._live = Live(
                self._spinner,
                console=console,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )

    def doing(self, what: str) -> None:
        self._spinner.update(text=Text(what))

    def write(self, *columns: str) -> None:
        """Write columns as ``kproto.cli.terminal.write_columns`` does."""
        # The line must be cleared before other output: both streams may be the same terminal.
        if self._live is not None:
            self._live.stop()
        write_columns(*columns)
        if self._live is not None:
            self._live.start()

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
