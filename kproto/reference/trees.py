"""Plain trees of a message: defaults and structure. No bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kproto.reference.walk import Walk
from kproto.schema.model import Field, FieldType, NewStruct, Struct

__all__ = ["complete", "default_tree", "default_value", "is_default"]


def default_value(field: Field) -> Any:
    """Return the field's default; a list or dict is a new one each time."""
    default = field.default
    if isinstance(default, NewStruct):
        assert field.type.struct is not None
        return default_tree(field.type.struct)
    return [] if default == () else default


def default_tree(struct: Struct) -> dict[str, Any]:
    tree = {field.python_name: default_value(field) for field in struct.fields}
    return {**tree, "unknown_tags": {}}


def is_default(field: Field, value: Any) -> bool:
    """Whether the value in a complete tree equals the decoded value of an absent field."""
    return bool(value == default_value(field))


def complete(struct: Struct, tree: Any, walk: Walk) -> dict[str, Any]:
    """Return a copy of ``tree`` in which every field has a value, by default its default.

    Raises EncodeError for a struct that is not a mapping and for a key that is not a field.
    """
    if not isinstance(tree, Mapping):
        walk.refuse(f"{type(tree).__name__} is not a value for {struct.name}")
    names = {field.python_name for field in struct.fields} | {"unknown_tags"}
    for key in tree:
        if key not in names:
            walk.refuse(f"{struct.name} has no field {key!r}")
    result: dict[str, Any] = {}
    for field in struct.fields:
        with walk.inside(field.python_name):
            if field.python_name in tree:
                result[field.python_name] = _completed(field.type, tree[field.python_name], walk)
            else:
                result[field.python_name] = default_value(field)
    result["unknown_tags"] = dict(tree.get("unknown_tags") or {})
    return result


def _completed(type_: FieldType, value: Any, walk: Walk) -> Any:
    if value is None:
        return None
    if type_.struct is not None:
        return complete(type_.struct, value, walk)
    if type_.element is None or not isinstance(value, (list, tuple)):
        return value
    if type_.element.struct is None:
        return list(value)
    items = []
    for index, item in enumerate(value):
        with walk.inside(f"[{index}]"):
            items.append(complete(type_.element.struct, item, walk))
    return items
