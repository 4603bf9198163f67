"""Requests in one line: by the name of the message, each field by its own name at any depth."""

from collections.abc import Iterator, Mapping
from typing import Any

from kproto import messages
from kproto.codec.registry import schema_of
from kproto.schema.model import Struct

__all__ = ["request_of"]


def request_of(name: str | type, /, **fields: Any) -> Any:
    """The request ``name``, such as "Fetch", or of that class.

    A mapping stands for a struct, and a list of mappings for an array of them. A field that only a
    nested struct has goes to the one element of its array: ``request_of("Fetch", topic="foo",
    partition=0)`` asks for one partition. A name that no struct has, or that several arrays have,
    raises TypeError.
    """
    kind: Any = getattr(messages, f"{name}Request") if isinstance(name, str) else name
    return _made(kind, kind, schema_of(kind).root, fields)


def _made(root: Any, kind: Any, struct: Struct, fields: Mapping[str, Any]) -> Any:
    nested = {field.python_name: field.type.inner_struct for field in struct.fields}
    placed = {name: value for name, value in fields.items() if name in nested}
    deeper: dict[str, dict[str, Any]] = {}
    for name in fields.keys() - placed.keys():
        places = [place for place, inner in nested.items() if inner and name in _names(inner)]
        if len(places) != 1 or places[0] in placed:
            raise TypeError(f"{struct.name} has no single place for {name}, but {places}")
        deeper.setdefault(places[0], {})[name] = fields[name]
    arrays = {field.python_name for field in struct.fields if field.type.element is not None}
    for name, value in {**placed, **deeper}.items():
        inner = nested[name]
        if inner is not None and value is not None:
            elements = [value] if isinstance(value, Mapping) else value
            made = [
                _made(root, root.STRUCTS[inner.name], inner, each)
                if isinstance(each, Mapping)
                else each
                for each in (elements if name in arrays else [value])
            ]
            placed[name] = made if name in arrays else made[0]
    return kind(**placed)


def _names(struct: Struct) -> Iterator[str]:
    for field in struct.fields:
        yield field.python_name
        if field.type.inner_struct is not None:
            yield from _names(field.type.inner_struct)
