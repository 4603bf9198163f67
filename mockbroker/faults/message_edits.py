"""What a rule changes in a response message: the code at its place, the throttle time, tags nobody
knows, another version. Messages in and out; no frames. What could not be done is told in words.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kproto.codec.message import Message
from kproto.codec.registry import schema_of, structs_of
from kproto.codec.structs import MessageStruct
from kproto.schema.model import Field, Struct
from mockbroker.faults.request_entities import fields_of

__all__ = [
    "lengthen",
    "recast",
    "replied",
    "tag",
    "throttle",
]

_THROTTLE: Final = "ThrottleTimeMs"
_INTEGERS: Final = {"int8": 2**7 - 1, "int16": 2**15 - 1, "int32": 2**31 - 1, "int64": 2**63 - 1}
"""The highest value of each."""


def replied(reply: dict[str, Any], response: type[Message], version: int) -> Message:
    """The rule's own response. Raises JsonError for what is none of this version."""
    return response.from_json({**response().to_json_value(version), **reply}, version)


def lengthen(body: Message, version: int, name: str, count: int) -> bool:
    """So many more elements behind those of an array at the root: copies of its last, whose first
    field, where that is an integer, counts on. Whether there is such an array, and an element."""
    for field in fields_of(schema_of(type(body)).root, version):
        held = getattr(body, field.python_name)
        if field.python_name != name or field.type.kind != "array" or not held:
            continue
        last = held[-1]
        inner = field.type.inner_struct
        if inner is None:
            held += [last] * count
            return True
        first = next(fields_of(inner, version))
        bounds = _INTEGERS.get(first.type.kind)
        for number in range(1, count + 1):
            fresh = copy.copy(last)
            if bounds is not None:
                # Beyond the highest it goes on from zero.
                value = (getattr(last, first.python_name) + number) % (bounds + 1)
                setattr(fresh, first.python_name, value)
            held.append(fresh)
        return True
    return False


def throttle(body: Message, version: int, milliseconds: int) -> bool:
    """Whether the version has a throttle time."""
    for field in fields_of(schema_of(type(body)).root, version):
        if field.name == _THROTTLE:
            setattr(body, field.python_name, milliseconds)
            return True
    return False


def tag(body: Message, version: int, number: int, data: bytes, *, elements: bool) -> bool:
    """An unknown tagged field in the root, or in every element of every array. Whether there was a
    struct to put it in, of a version with room for it."""
    if version not in type(body).FLEXIBLE_VERSIONS:
        return False
    if not elements:
        body.unknown_tags = {**body.unknown_tags, number: data}
        return True
    tagged = False
    for each in _elements(body, schema_of(type(body)).root, version):
        each.unknown_tags = {**each.unknown_tags, number: data}
        tagged = True
    return tagged


def _elements(holder: Any, struct: Struct, version: int) -> Iterator[MessageStruct]:
    for field in fields_of(struct, version):
        inner, held = field.type.inner_struct, getattr(holder, field.python_name)
        if inner is None or held is None:
            continue
        for each in held if field.type.kind == "array" else (held,):
            if field.type.kind == "array":
                yield each
            yield from _elements(each, inner, version)


def recast(body: Message, version: int) -> None:
    """Let go of what ``version`` cannot carry: unknown tagged fields, where it has no room for any,
    are among it."""
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


def _something(field: Field, classes: Mapping[str, type[MessageStruct]]) -> Any:
    """In place of a null that may not be, where the default is null at other versions."""
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
                value = _something(field, classes)
            setattr(holder, field.python_name, value)
        elif field.type.inner_struct is not None and held is not None:
            for each in held if field.type.kind == "array" else (held,):
                _recast(each, field.type.inner_struct, classes, version)
