"""Responses of any API that carry only an error code. Its place is found from the schema."""

from __future__ import annotations

from functools import cache
from typing import Any

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.schema.model import Field, Struct

__all__ = ["error_response"]

_ERROR_CODE = "ErrorCode"


def error_response(response: type[Message], version: int, error_code: int) -> Message | None:
    """Return a response with ``error_code`` in its error field and defaults in all others.

    The field is the top-level ErrorCode, or else the first nested one, in one element of each array
    that leads to it. None if the version has no error code.
    """
    path = _path_to_error(response, version)
    if path is None:
        return None
    body = response()
    holder: Any = body
    for step in path[:-1]:
        inner = step.type.inner_struct
        assert inner is not None
        element = response.STRUCTS[inner.name]()
        setattr(holder, step.python_name, [element] if step.type.kind == "array" else element)
        holder = element
    setattr(holder, path[-1].python_name, error_code)
    return body


@cache
def _path_to_error(response: type[Message], version: int) -> tuple[Field, ...] | None:
    return _search(schema_of(response).root, version)


def _search(struct: Struct, version: int) -> tuple[Field, ...] | None:
    present = [field for field in struct.fields if version in field.versions]
    for field in present:
        if field.name == _ERROR_CODE and field.type.kind == "int16":
            return (field,)
    for field in present:
        inner = field.type.inner_struct
        if inner is not None:
            rest = _search(inner, version)
            if rest is not None:
                return (field, *rest)
    return None
