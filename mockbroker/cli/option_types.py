"""Kinds of options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kproto.errors import KprotoError
from mockbroker.errors import ClusterError
from mockbroker.simulation.state.option_types import name_and_value, parse_milliseconds

if TYPE_CHECKING:
    from kproto.dialects import Dialect

__all__ = ["DURATION", "ParsedOption", "dialect_of", "json_option", "parse_members"]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""Give a command the option ``--json``."""


class ParsedOption(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic in newer click
    """An option whose value ``parse`` reads; its ClusterError becomes a usage error."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return self.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except KprotoError as error:
            self.fail(str(error), param, ctx)


DURATION: Final = ParsedOption("DURATION", parse_milliseconds)


def parse_members(
    arguments: Iterable[str], *, strings: Container[str], example: str
) -> Iterator[tuple[str, Any]]:
    """Yield the members that arguments of the form ``NAME=VALUE`` or a JSON object give.

    A value is JSON if it can be read as such, unless its name is one of ``strings``. Raises
    click.UsageError.
    """
    for text in arguments:
        try:
            if text.lstrip().startswith("{"):
                yield from json.loads(text).items()
                continue
        except (ValueError, RecursionError) as error:
            raise click.UsageError(f"{text!r} is not JSON: {error}") from None
        try:
            name, value = name_and_value(text, f"{example}, or a JSON object")
        except ClusterError as error:
            raise click.UsageError(str(error)) from None
        yield name, value if name in strings else _json_or_text(value)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def dialect_of(text: str) -> Dialect:
    """The dialect of a name, or of a folder of schemas. Raises ClusterError."""
    # Importing codecs would slow down --help.
    from kproto.dialects import DIALECTS, dialect, load_dialect

    if Path(text).is_dir():
        return load_dialect(text)
    if text in DIALECTS:
        return dialect(text)
    raise ClusterError(
        f"{text!r} is neither a folder of message schemas nor one of {', '.join(DIALECTS)}"
    )
