"""The flags of cluster options, from their declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import click

from mockbroker.cli.option_types import ParsedOption
from mockbroker.cli.profiles import profile_names
from mockbroker.errors import ClusterError
from mockbroker.simulation.state.option_declarations import Option, options_of
from mockbroker.simulation.state.option_types import FLAG

__all__ = ["Flag", "flags_of", "values_of"]

Flag: TypeAlias = Callable[[Any], Any]
"""A decorator of a command."""

_COMPLETIONS: Final = {"profile": profile_names}


def flags_of(cls: Any, group: str) -> list[Flag]:
    """The flags of a group of the options that ``cls`` declares."""
    return [_flag(each) for each in options_of(cls) if each.group == group]


def _flag(option: Option) -> Flag:
    kind = option.type
    if kind is FLAG:
        return click.option(option.flag, option.name, is_flag=True, help=option.help)
    if kind.collect is not None:
        return click.option(
            option.flag, option.name, type=ParsedOption(kind.metavar, kind.from_text),
            multiple=True, help=f"{option.help} Repeatable.",
        )  # fmt: skip
    default = kind.to_text(option.default)
    return click.option(
        option.flag, option.name, type=_click_type(option), default=default or None,
        show_default=bool(default), help=option.help,
        shell_complete=_COMPLETIONS.get(option.name),
    )  # fmt: skip


def _click_type(option: Option) -> Any:
    kind = option.type
    if kind.words:
        return click.Choice(kind.words)
    if kind.bounds is not None and not kind.metavar:
        return click.IntRange(*kind.bounds)
    return ParsedOption(kind.metavar, kind.from_text)


def values_of(cls: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """The options that ``cls`` declares, from the parameters of a command with their flags. Raises
    ClusterError for flags that contradict each other."""
    return {each.name: _value(each, params[each.name]) for each in options_of(cls) if each.group}


def _value(option: Option, given: Any) -> Any:
    kind = option.type
    if kind.words and given is not None:
        return kind.from_text(given)
    if kind.collect is None:
        return given
    try:
        return kind.collect(given)
    except ClusterError as error:
        raise ClusterError(f"{option.flag}: {error}") from None
