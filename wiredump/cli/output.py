"""Lines on standard output: coloured on a terminal, plain elsewhere, flushed on request."""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import RenderableType
from rich.table import Table

from kproto.cli.console import Console
from kproto.cli.tables import print_table
from kproto.cli.terminal import echo, unguarded
from kproto.safe_text import printable
from wiredump.show.lines import Line

__all__ = ["Output"]

_WIDE = 160
"""Width of a text, in columns, without a terminal."""
_TEXTS = ("errors", "instead")
"""Columns of tables that may wrap."""


class Output:
    """Writes lines. ``before`` is called before each write."""

    def __init__(self, *, flush: bool = False, before: Callable[[], object] = lambda: None) -> None:
        width = None if sys.stdout.isatty() else _WIDE
        self._console = Console(width=width)
        self.coloured = self._console.color_system is not None
        self._flush = flush
        self._before = before

    def line(self, text: Line) -> None:
        """Write one line, neither wrapped nor cut."""
        if self.coloured:
            self._before()
            self._console.print(text, soft_wrap=True)
        else:
            self.plain(text.plain)

    def plain(self, text: str) -> None:
        self._before()
        if self._flush:
            echo(text)
        else:
            unguarded(sys.stdout).write(f"{printable(text)}\n")

    def end(self) -> None:
        """Flush here, where a reader that has gone away is not an error."""
        sys.stdout.flush()

    def render(self, what: RenderableType) -> None:
        """Write a table, or a text that may be wrapped."""
        self._before()
        if isinstance(what, Table):
            print_table(what, _TEXTS, console=self._console)
        else:
            self._console.print(what)
