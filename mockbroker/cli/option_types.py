"""Kinds of options that several commands share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kproto.errors import KprotoError
from mockbroker.errors import ClusterError
from mockbroker.serving.endpoints import parse_endpoint
from mockbroker.simulation.topics.spec import parse_milliseconds

if TYPE_CHECKING:
    from kproto.dialects import Dialect

__all__ = [
    "DURATION",
    "ParsedOption",
    "dialect_of",
    "duration_or_off",
    "feature_level",
    "json_option",
    "listen_address",
    "name_and_value",
    "parse_members",
    "parse_size",
]

_SIZES: Final = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

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


def duration_or_off(text: str) -> int | None:
    """Milliseconds; None for ``off``. Raises ClusterError for less than a millisecond."""
    if text == "off":
        return None
    milliseconds = parse_milliseconds(text)
    if milliseconds < 1:
        raise ClusterError("must be at least 1ms; use off to disable it")
    return milliseconds


def name_and_value(text: str, example: str) -> tuple[str, str]:
    """Split ``NAME=VALUE``. Raises ClusterError with an example."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ClusterError(f"{text!r}: use NAME=VALUE, such as {example}")
    return name, value


def feature_level(text: str) -> tuple[str, int]:
    """Split ``NAME=LEVEL``. Raises ClusterError."""
    name, level = name_and_value(text, "transaction.version=1")
    if not (level.isascii() and level.isdigit()) or int(level) > 32767:
        raise ClusterError(f"{text!r}: use NAME=LEVEL, such as transaction.version=1")
    return name, int(level)


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


def parse_size(text: str) -> int:
    """Read bytes: ``1048576``, ``64MiB``. Raises ClusterError."""
    found = re.fullmatch(r"([0-9]{1,15})(|KiB|MiB|GiB)", text)
    if found is None or not int(found[1]):
        raise ClusterError(f"{text!r} is not a size; use bytes, or a unit as in 64MiB or 1GiB")
    return int(found[1]) * _SIZES[found[2]]


def listen_address(text: str) -> tuple[str, int]:
    """Split ``HOST:PORT``. Raises ClusterError, also without a port."""
    host, port = parse_endpoint(text)
    if port is None:
        raise ClusterError(f"{text!r} has no port; use HOST:PORT, where port 0 takes a free one")
    return host, port


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
