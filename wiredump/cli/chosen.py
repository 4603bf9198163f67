"""Which tables a command is to write, and what it says of those it wrote."""

from __future__ import annotations

import click
from rich.table import Table as Shown

from wiredump.rows.schema import TABLES, UNDECODED

__all__ = ["chosen_tables", "counts"]


def chosen_tables(wanted: str | None, bodies: bool) -> tuple[str, ...]:
    """``--tables`` to names. Raises click.BadParameter."""
    possible = tuple(TABLES) if bodies else UNDECODED
    if wanted is None:
        return possible
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    for name in names:
        if name not in TABLES:
            problem = f"no table {name!r}; there are {', '.join(TABLES)}"
        elif name not in possible:
            problem = f"{name} takes bodies, which --no-bodies leaves out"
        else:
            continue
        raise click.BadParameter(problem, param_hint="--tables")
    if not names:
        raise click.BadParameter("name at least one table", param_hint="--tables")
    return tuple(name for name in TABLES if name in names)


def counts(title: str, numbers: dict[str, int]) -> Shown:
    """Names with numbers, as a table."""
    shown = Shown("", title, box=None, show_edge=False)
    shown.columns[1].justify = "right"
    for name, count in numbers.items():
        shown.add_row(name, f"{count:,}")
    return shown
