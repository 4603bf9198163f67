"""Convert between plain trees and message objects, so that one set of values tests every codec."""

from typing import Any

import msgspec

from kproto.schema.model import FieldType, MessageSchema, Struct

__all__ = ["to_instance", "to_tree"]


def to_instance(cls: Any, tree: dict[str, Any], schema: MessageSchema) -> Any:
    """An object of the message class ``cls``; the classes of its structs are ``cls.STRUCTS``."""
    return _filled(cls, schema.root, tree, cls.STRUCTS)


def _filled(cls: Any, struct: Struct, tree: dict[str, Any], structs: dict[str, Any]) -> Any:
    values = {
        field.python_name: _converted(field.type, tree[field.python_name], structs)
        for field in struct.fields
        if field.python_name in tree
    }
    return cls(**values, unknown_tags=dict(tree.get("unknown_tags", {})))


def _converted(type_: FieldType, value: Any, structs: dict[str, Any]) -> Any:
    if value is None:
        return None
    if type_.struct is not None:
        return _filled(structs[type_.struct.name], type_.struct, value, structs)
    if type_.element is not None:
        return [_converted(type_.element, item, structs) for item in value]
    return value


def to_tree(value: Any) -> Any:
    """The plain tree of a message object (or of any value inside one)."""
    if isinstance(value, msgspec.Struct):
        names = [name for name in value.__struct_fields__ if name != "unknown_tags"]
        tree = {name: to_tree(getattr(value, name)) for name in names}
        return {**tree, "unknown_tags": dict(getattr(value, "unknown_tags", {}))}
    if isinstance(value, list):
        return [to_tree(item) for item in value]
    return value
