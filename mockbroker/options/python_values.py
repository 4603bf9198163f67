"""The values that options have in Python: read as JSON is where the form is the same, and their
types checked where it is not. The annotation of an option says which. A value without a check
fails in the middle of a cluster's construction, or of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Final

from kproto.schema.versions import Versions
from mockbroker.errors import ClusterError
from mockbroker.simulation.state.cluster_parts import Broker
from mockbroker.simulation.state.option_declarations import Option, options_of

__all__ = ["check_options"]

_AS_IN_JSON: Final = {"int", "bool", "str", "Clock", "DataWaits"}
_AUTHORIZER: Final = "Authorizer | Mapping[str, Any]"
_BROKERS: Final = "int | Iterable[Broker]"
_OBJECTS_AS_IN_JSON: Final = {
    "Mapping[str, str]", "Mapping[str, int]", "Mapping[str, bool]", "Mapping[int, str]",
    "Mapping[int, Mapping[str, str]]",
}  # fmt: skip
_VALUES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "Mapping[int, Level]": lambda value: isinstance(value, str | Mapping),
    "Mapping[int, Versions | str | None]": lambda value: isinstance(value, Versions | str | None),
    "Mapping[int, tuple[str, int]]": lambda value: (
        isinstance(value, tuple) and list(map(type, value)) == [str, int]
    ),
}


def check_options(options: object) -> None:
    """Check the options of a dataclass, and replace texts of durations and sizes by numbers. Raises
    ClusterError."""
    cls: Any = type(options)
    for option, kind, is_optional in _declared(cls):
        value = getattr(options, option.name)
        default = option.default
        if value is default or (type(value) is type(default) and value == default):
            continue
        if is_optional and value is None:
            continue
        if kind in _AS_IN_JSON:
            object.__setattr__(options, option.name, _as_in_json(option, value))
        elif kind.startswith("Mapping["):
            _check_mapping(option, kind, value)
        elif kind.startswith("Iterable["):
            object.__setattr__(options, option.name, _items(option.name, kind, value))
        elif kind == _AUTHORIZER and type(value).__name__ != "Authorizer":
            object.__setattr__(options, option.name, _as_in_json(option, value))
        elif kind == _BROKERS:
            object.__setattr__(options, option.name, _brokers(option, value))


@cache
def _declared(cls: Any) -> tuple[tuple[Option, str, bool], ...]:
    """The options with their annotations, without None, and whether they may be None."""
    annotations = {each.name: str(each.type) for each in fields(cls)}
    kinds = ((each, annotations[each.name]) for each in options_of(cls))
    return tuple(
        (each, kind.removesuffix(" | None"), kind.endswith(" | None")) for each, kind in kinds
    )


def _as_in_json(option: Option, value: Any) -> Any:
    type = option.type
    if isinstance(value, str) and type.bounds is not None and type.metavar:  # with a unit
        value = type.from_text(value)
    return type.from_json(option.name, value)


def _check_mapping(option: Option, kind: str, value: Any) -> None:
    keys = str if kind.startswith("Mapping[str") else int
    if not isinstance(value, Mapping) or not all(isinstance(each, keys) for each in value):
        names = "names" if keys is str else "numbers"
        raise ClusterError(f'"{option.name}" must be a mapping of {names}, not {value!r:.80}')
    is_value = _VALUES.get(kind, lambda _value: True)
    for key, each in value.items():
        if not is_value(each):
            raise ClusterError(
                f'"{option.name}" must be a {kind}, not have {each!r:.80} for {key!r:.80}'
            )
    if kind in _OBJECTS_AS_IN_JSON:
        option.type.from_json(option.name, {str(key): _plain(each) for key, each in value.items()})


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _items(name: str, kind: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ClusterError(f'"{name}" must be a list, not {value!r:.80}')
    items = tuple(value)
    for each in items:
        is_pair = isinstance(each, tuple | list) and len(each) == 2 and "tuple[" in kind
        if not (isinstance(each, str) or is_pair):
            raise ClusterError(f'"{name}" must be a list of strings; {each!r:.80} is none')
    return items


def _brokers(option: Option, value: Any) -> Any:
    if isinstance(value, int):
        option.type.from_json(option.name, value)
        return value
    if isinstance(value, str):
        return option.type.from_json(option.name, value)
    brokers = tuple(value) if isinstance(value, Iterable) else (None,)
    if not all(isinstance(each, Broker) for each in brokers):
        raise ClusterError(f'"{option.name}" must be a number or brokers, not {value!r:.80}')
    return brokers
