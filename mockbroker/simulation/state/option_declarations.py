"""How an option of a cluster is declared: once, as a field of a dataclass.

``option`` gives a field its default, how its value is written, its help and its group. The flags of
``mockbroker serve``, the body of ``POST /clusters`` with its OpenAPI schema, and the tables of the
documentation derive from that. Nothing here knows a command line or HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from functools import cache
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

__all__ = ["Option", "OptionType", "option", "options_of"]

T = TypeVar("T")


class OptionType(msgspec.Struct, frozen=True):
    """How the value of an option is written. The functions that read one raise ClusterError.

    ``schema`` describes it as JSON; ``from_json`` takes the member's name and the JSON value.
    ``from_text`` reads it on a command line, where ``metavar`` stands for it and ``to_text`` shows
    the default; ``words`` are all texts, if these are few. ``bounds`` are the lowest and the
    highest integer, None for no highest one. A flag with ``collect`` can be repeated: ``collect``
    makes the value from what ``from_text`` returned for each use.
    """

    schema: Mapping[str, Any]
    from_json: Callable[[str, Any], Any]
    metavar: str = ""
    from_text: Callable[[str], Any] = str
    to_text: Callable[[Any], str] = lambda value: "" if value is None else str(value)
    words: tuple[str, ...] = ()
    bounds: tuple[int, int | None] | None = None
    collect: Callable[[Iterable[Any]], Any] | None = None


class Option(msgspec.Struct, frozen=True):
    """An option with its name in Python and JSON. ``group`` is the heading of its flag in the help
    of ``mockbroker serve``; without a group, ``flag`` sets several options or does not exist.
    ``json_help`` replaces the help where the value has another form in JSON."""

    name: str
    type: OptionType
    default: Any
    help: str
    group: str = ""
    flag: str = ""
    json_help: str = ""


def option(
    default: T, type: OptionType, help: str, group: str = "", *, flag: str = "", json_help: str = ""
) -> T:
    """The field of an option. The flag is by default the field's name without ``_ms``: durations
    have a unit on a command line."""
    declared = {"": Option("", type, default, help, group, flag, json_help)}
    if isinstance(default, dict):
        return cast(T, field(default_factory=default.copy, metadata=declared))
    return field(default=default, metadata=declared)


@cache
def options_of(cls: type) -> tuple[Option, ...]:
    """The options that a dataclass and its bases declare; its own come first."""
    declared = {each.name: each.metadata[""] for each in fields(cls) if each.metadata}
    names = [name for base in cls.__mro__ for name in vars(base).get("__annotations__", {})]
    return tuple(_named(declared[name], name) for name in names if name in declared)


def _named(option: Option, name: str) -> Option:
    flag = "--" + name.removesuffix("_ms").replace("_", "-") if option.group else ""
    return replace(option, name=name, flag=option.flag or flag)
