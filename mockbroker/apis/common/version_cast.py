"""A message at another version: what that version cannot carry is reset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kproto.codec.message import Message
from kproto.codec.registry import schema_of, structs_of
from kproto.codec.structs import MessageStruct
from kproto.schema.model import Field, Struct

__all__ = ["recast"]


def recast(body: Message, version: int) -> None:
    """Reset the fields that ``version`` cannot carry, and unknown tags if it is not flexible."""
    cls = type(body)
    _recast(body, schema_of(cls).root, structs_of(cls), version)
    if version not in cls.FLEXIBLE_VERSIONS:
        _untag(body)


def _untag(holder: MessageStruct) -> None:
    holder.unknown_tags = {}
    for name in holder.__struct_fields__:
        held = getattr(holder, name)
        for each in held if isinstance(held, list) else (held,):
            if isinstance(each, MessageStruct):
                _untag(each)


def _empty_value(field: Field, classes: Mapping[str, type[MessageStruct]]) -> Any:
    """Return an empty value for a field that is not nullable here but null by default."""
    if field.type.struct is not None:
        return classes[field.type.struct.name]()
    if field.type.kind in ("bytes", "records"):
        return b""
    return "" if field.type.kind == "string" else []


def _recast(
    holder: Any, struct: Struct, classes: Mapping[str, type[MessageStruct]], version: int
) -> None:
    fresh = classes[struct.name]()
    for field in struct.fields:
        held = getattr(holder, field.python_name)
        absent = version not in field.versions
        if absent or (held is None and not field.is_nullable(version)):
            value = getattr(fresh, field.python_name)
            if value is None and not absent:
                value = _empty_value(field, classes)
            setattr(holder, field.python_name, value)
        elif field.type.inner_struct is not None and held is not None:
            for each in held if field.type.kind == "array" else (held,):
                _recast(each, field.type.inner_struct, classes, version)
