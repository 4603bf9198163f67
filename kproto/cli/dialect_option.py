"""The option ``--dialect`` of many commands."""

from __future__ import annotations

from pathlib import Path

import click

from kproto.cli.completing import dialect_names
from kproto.dialects import DIALECTS, Dialect, dialect, load_dialect

__all__ = ["dialect_option", "named_dialect"]

dialect_option = click.option(
    "--dialect",
    "dialect_name",
    default="kafka",
    show_default=True,
    metavar="NAME|DIR",
    shell_complete=dialect_names,
    help=f"One of {', '.join(DIALECTS)}, or a folder of your own schemas, which override kafka's.",
)


def named_dialect(name: str) -> Dialect:
    """Return a dialect by name, or from a folder. Raises UnknownNameError or SchemaError."""
    if name not in DIALECTS and Path(name).is_dir():
        return load_dialect(name)
    return dialect(name)
