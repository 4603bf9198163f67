"""Kinds of options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import click

from kproto.errors import KprotoError
from mockbroker.errors import ClusterError
from mockbroker.topics.spec import parse_milliseconds

__all__ = ["ParsedOption", "duration_or_off", "json_option", "parse_size"]

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


def duration_or_off(text: str) -> int | None:
    """Milliseconds; None for ``off``. Raises ClusterError for less than a millisecond."""
    if text == "off":
        return None
    milliseconds = parse_milliseconds(text)
    if milliseconds < 1:
        raise ClusterError("must be at least 1ms; use off to disable it")
    return milliseconds


def parse_size(text: str) -> int:
    """Read bytes: ``1048576``, ``64MiB``. Raises ClusterError."""
    found = re.fullmatch(r"([0-9]{1,15})(|KiB|MiB|GiB)", text)
    if found is None or not int(found[1]):
        raise ClusterError(f"{text!r} is not a size; use bytes, or a unit as in 64MiB or 1GiB")
    return int(found[1]) * _SIZES[found[2]]
