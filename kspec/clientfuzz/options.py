"""Command-line options and arguments that several fuzzing commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from kproto import Dialect
from kproto.cli.completing import api_names
from kproto.cli.dialect_option import dialect_option, named_dialect
from kproto.errors import KprotoError
from kspec.api_keys import api_key as find_api_key

__all__ = ["api_key", "chosen_dialect", "frame_options", "split_names"]

_OPTIONS: Final = (
    click.option("--seed", type=int, default=0, show_default=True,
                 help="Seed of the mutations."),
    click.option("--api", "apis", multiple=True, shell_complete=api_names,
                 help="API key or name to fuzz. Repeat it for several; the default is all."),
    dialect_option,
    click.option("--version", "version", type=int, help="API version to fuzz; the default is all."),
    click.option("--only", type=click.IntRange(min=0), help="Play only the case of this number."),
    click.option("--known", is_flag=True, help="Also show expected differences."),
    click.option("--json", "to_json", is_flag=True, help="Print the result as JSON."),
)  # fmt: skip


def frame_options(cases: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options about a seed's frames.

    ``cases`` is the default number of cases.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(_OPTIONS):
            command = option(command)
        return click.option(
            "--cases", type=click.IntRange(min=1), default=cases, show_default=True,
            help="Number of cases to play.",
        )(command)  # fmt: skip

    return add


def api_key(text: str, dialect: Dialect) -> int:
    """Return the API key of a number or name. Raises click.UsageError if there is no such API."""
    found = find_api_key(int(text) if text.isdigit() else text, dialect)
    if found is None:
        raise click.UsageError(f"--api: {text!r} is not an API of the dialect {dialect.name}")
    return found


def split_names(text: str) -> list[str]:
    """Split a comma-separated list and drop empty parts."""
    return [part for part in (each.strip() for each in text.split(",")) if part]


def chosen_dialect(name: str) -> Dialect:
    """Return a dialect by name, or of a folder. Raises click.UsageError."""
    try:
        return named_dialect(name)
    except KprotoError as error:
        raise click.UsageError(str(error)) from None
