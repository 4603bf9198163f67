"""Describe a plan to the C engine as tuples of names, kinds, flags and defaults.

This module contains no wire rules; see ``kproto.codegen.plan``. It does decide which message
classes the engine may fill and read slot by slot: those that do nothing on construction or
comparison beyond what msgspec does for every ``Struct``. ``UnsupportedPlan`` says why a class does
not qualify; generated Python then handles the message through the class's own methods. The engine
itself checks that members are where their descriptors say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kproto.codec.structs import NO_TAGS, MessageStruct
from kproto.codegen.plan import FieldPlan, MessagePlan, StructPlan
from kproto.native import _engine
from kproto.schema.model import NewStruct

__all__ = ["UnsupportedPlan", "describe"]

KINDS = {name: number for number, name in enumerate(_engine.KINDS)}
_MISSING = object()

FieldRow = tuple[str, int, int, int, int, int, int, int, Any]
"""Name, kind, kind of elements, flags, least size of an element, index of the inner struct or -1,
tag or 0, kind of default, and the default's value."""

StructRow = tuple[
    type, bool, tuple[int, ...], tuple[FieldRow, ...], tuple[FieldRow, ...], tuple[FieldRow, ...]
]
"""Class, whether the struct is flexible, tags of other versions, and its inline, tagged and absent
fields."""


class UnsupportedPlan(Exception):
    """The engine does not support this message. The text says why."""


def describe(
    plan: MessagePlan, classes: Mapping[str, type[MessageStruct]]
) -> tuple[StructRow, ...]:
    """Describe all structs of a message, children first. Raises UnsupportedPlan."""
    index = {item: number for number, item in enumerate(plan.structs)}
    return tuple(_struct(item, classes, index) for item in plan.structs)


def _struct(
    plan: StructPlan, classes: Mapping[str, type[MessageStruct]], index: Mapping[StructPlan, int]
) -> StructRow:
    cls = classes[plan.name]
    _check_class(cls, plan, classes)

    def rows(fields: tuple[FieldPlan, ...]) -> tuple[FieldRow, ...]:
        return tuple(_field(item, index) for item in fields)

    foreign = tuple(sorted(plan.foreign_tags))
    return cls, plan.flexible, foreign, rows(plan.inline), rows(plan.tagged), rows(plan.absent)


def _field(item: FieldPlan, index: Mapping[StructPlan, int]) -> FieldRow:
    flags = item.compact * _engine.COMPACT | item.nullable * _engine.NULLABLE
    flags |= item.ignorable * _engine.IGNORABLE | (item.tag is not None) * _engine.TAGGED
    mode, default = _engine.DEFAULT_VALUE, item.default
    if isinstance(default, NewStruct):
        mode, default = _engine.DEFAULT_STRUCT, None
    elif default == ():
        mode, default = _engine.DEFAULT_LIST, None
    return (
        item.name,
        KINDS[item.kind],
        KINDS[item.element_kind] if item.element_kind is not None else 0,
        flags,
        item.element_min_size,
        index[item.struct] if item.struct is not None else -1,
        item.tag or 0,
        mode,
        default,
    )


def _check_class(
    cls: type[MessageStruct], plan: StructPlan, classes: Mapping[str, type[MessageStruct]]
) -> None:
    """Raise UnsupportedPlan for a subclass that does more on construction or comparison, or has
    other fields than the schema."""
    if hasattr(cls, "__post_init__"):
        raise UnsupportedPlan(f"{cls.__name__} has a __post_init__")
    if cls.__eq__ is not msgspec.Struct.__eq__:
        raise UnsupportedPlan(f"{cls.__name__} has an __eq__ of its own")
    for name in ("unknown_tags", "_unknown_tags"):
        if getattr(cls, name) is not getattr(MessageStruct, name):
            raise UnsupportedPlan(f"{cls.__name__}.{name} is overridden")
    fields = cls.__struct_fields__
    if set(fields) != {"unknown_tags", *(item.name for item in plan.order)}:
        raise UnsupportedPlan(f"the fields of {cls.__name__} are not the schema's")
    given = cls.__struct_defaults__
    defaults = dict(zip(fields[len(fields) - len(given) :], given, strict=True))
    if defaults.get("unknown_tags") is not NO_TAGS:
        raise UnsupportedPlan(f"{cls.__name__} has unknown tags by default")
    for item in plan.order:
        if not _same_default(item, defaults.get(item.name, _MISSING), classes):
            raise UnsupportedPlan(f"the default of {cls.__name__}.{item.name} is not the schema's")


def _same_default(item: FieldPlan, given: Any, classes: Mapping[str, type[MessageStruct]]) -> bool:
    expected = item.default
    if expected == ():
        return getattr(given, "factory", None) is list
    if isinstance(expected, NewStruct):
        assert item.struct is not None
        return getattr(given, "factory", None) is classes[item.struct.name]
    return type(given) is type(expected) and bool(
        given == expected or (given != given and expected != expected)
    )
