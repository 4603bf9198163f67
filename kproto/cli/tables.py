"""Print tables so that nothing is cut: columns keep their width, except those of running text."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Final

from rich.table import Table

from kproto.cli.console import Console

__all__ = ["print_table", "table_width"]

_WIDEST: Final = 10_000


def table_width(table: Table, texts: Collection[str], width: int) -> int:
    """Return the width at which to print a table where ``width`` columns are available.

    Only the columns named in ``texts`` wrap, down to their longest word.
    """
    table.width = None
    wide = Console(width=_WIDEST)
    for column in table.columns:
        column.overflow = "fold"
        if column.header not in texts:
            column.no_wrap = True
            cells = [column.header, *column.cells]
            column.min_width = max(wide.measure(cell).maximum for cell in cells)
    least, most = wide.measure(table)
    return max(least, min(most, width))


def print_table(
    table: Table, texts: Collection[str] = (), *, console: Console | None = None
) -> None:
    """Print a table to standard output, or to a console.

    On a terminal the columns ``texts`` wrap. In a pipe each row is one line.
    """
    terminal = sys.stdout.isatty() if console is None else console.is_terminal
    if console is None:
        console = Console()
    table.width = table_width(table, texts, console.width if terminal else _WIDEST)
    console.print(table, crop=False)
