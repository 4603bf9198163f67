"""Changes to a response message: a reply from the rule, throttle time, unknown tags, more elements,
another version. Each function changes a message in place and returns whether it could.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.codec.structs import MessageStruct
from kproto.schema.model import Struct
from mockbroker.apis.common.request_entities import fields_of

__all__ = ["lengthen", "reply_message", "tag", "throttle"]

_THROTTLE: Final = "ThrottleTimeMs"
_INTEGERS: Final = {"int8": 2**7 - 1, "int16": 2**15 - 1, "int32": 2**31 - 1, "int64": 2**63 - 1}
"""The highest value of each type."""


def reply_message(reply: dict[str, Any], response: type[Message], version: int) -> Message:
    """Return the rule's reply as a message. Raises JsonError if it does not fit this version."""
    return response.from_json(reply, version, fill=True)


def lengthen(body: Message, version: int, name: str, count: int) -> bool:
    """Append copies of the last element to an array at the root.

    The first field of the copies counts on, if it is an integer. Returns False if the array does
    not exist or is empty.
    """
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
                # Above the highest value it continues from zero.
                value = (getattr(last, first.python_name) + number) % (bounds + 1)
                setattr(fresh, first.python_name, value)
            held.append(fresh)
        return True
    return False


def throttle(body: Message, version: int, milliseconds: int) -> bool:
    """Set the throttle time. Returns False if the version has none."""
    for field in fields_of(schema_of(type(body)).root, version):
        if field.name == _THROTTLE:
            setattr(body, field.python_name, milliseconds)
            return True
    return False


def tag(body: Message, version: int, number: int, data: bytes, *, elements: bool) -> bool:
    """Add an unknown tagged field to the root, or to every element of every array.

    Returns False if the version is not flexible, or if there is no element.
    """
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
