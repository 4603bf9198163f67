"""Requests with something in each field: two elements in each array, names that clusters have."""

import uuid
from typing import Any

from kproto.codec.registry import schema_of
from kproto.schema.model import Field, Struct

__all__ = ["filled_request"]

_TOPICS = ("foo", "bar")
_PARTITIONS = {"PartitionIndex", "Partition", "PartitionId", "Index"}
_SMALL = {"ElectionType": 0, "EndpointType": 1, "IsolationLevel": 1, "TimeoutMs": 1000}
_NUMBERS = {"int8": 3, "int16": 1, "uint16": 1, "int32": 4, "int64": 5, "float64": 1.5}


def filled_request(kind: Any, version: int) -> Any:
    """A request of the class ``kind``, about partitions 0 and 1 of the topics foo and bar."""
    return _filled(kind, schema_of(kind).root, kind, version, 0)


def _filled(make: Any, struct: Struct, kind: Any, version: int, place: int) -> Any:
    present = [field for field in struct.fields if version in field.versions]
    return make(**{each.python_name: _value(each, kind, version, place) for each in present})


def _value(field: Field, kind: Any, version: int, place: int) -> Any:
    inner, element = field.type.inner_struct, field.type.element
    if element is not None and inner is not None:
        return [_filled(kind.STRUCTS[inner.name], inner, kind, version, n) for n in (0, 1)]
    if inner is not None:
        return _filled(kind.STRUCTS[inner.name], inner, kind, version, place)
    if element is not None:
        return [_plain(field, element.kind, n) for n in (0, 1)]
    return _plain(field, field.type.kind, place)


def _plain(field: Field, kind: str, place: int) -> Any:
    if kind == "string":
        return _TOPICS[place] if field.entity_type == "topicName" else f"{field.name}{place}"
    if kind == "uuid":
        return uuid.UUID(int=place + 1 << 64)
    if kind == "bool":
        return True
    if kind in ("bytes", "records"):
        return b"x"
    if field.name in _PARTITIONS or field.type.kind == "array":
        return place
    return _SMALL.get(field.name, _NUMBERS[kind])
