"""The response to a request that was not carried out, without its error codes.

It repeats the elements of the request in the arrays that carry error codes. Which element answers
which is found from both schemas.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.schema.model import Field, Struct
from mockbroker.apis.common.error_places import Place
from mockbroker.apis.common.request_entities import (
    Kind,
    Topics,
    fields_of,
    id_field,
    is_partitions,
    is_topics,
    kind_of,
    names_resources,
    partition_field,
    partition_of,
    topic_field,
    topic_of,
)

__all__ = ["ErrorSkeleton"]

_NOTHING = object()
_BESIDE_AN_ERROR: Final[Mapping[str, Any]] = {
    "Records": b"", "HighWatermark": -1, "BaseOffset": -1, "ProducerEpoch": -1,
}  # fmt: skip
"""The values beside an error that are not the schema's defaults. Clients take a high watermark of 0
for the end of the log, and some cannot read null records."""

_NULL_BESIDE_AN_ERROR: Final = frozenset({"Entries", "ProtocolName"})
"""Fields that are null beside an error, in versions in which they may be."""


class _RequestElement(msgspec.Struct):
    """An element of the request: a struct, a plain value, or, if the request names all topics or
    partitions, one that the cluster has."""

    value: Any = None
    struct: Struct | None = None
    parent: _RequestElement | None = None
    topic: str | None = None
    partition: int | None = None


class ErrorSkeleton:
    """Builds the responses to one request, with the topics of the cluster that received it.

    An array that matches nothing in the request gets one element with default values, unless
    ``is_exact``: then it is empty.
    """

    def __init__(
        self, body: Message, version: int, topics: Topics, *, is_exact: bool = False
    ) -> None:
        self._version = version
        self._topics = topics
        self._is_exact = is_exact
        self._root = _RequestElement(body, schema_of(type(body)).root)

    def answer(self, response: type[Message], version: int, places: tuple[Place, ...]) -> Message:
        """Return a response with an element for each element of the request, in the arrays that
        lead to ``places``."""
        body = response()
        _set_beside_an_error(body, schema_of(response).root, version)
        self._fill(body, schema_of(response).root, response, version, places, 0, self._root)
        return body

    def _fill(
        self,
        holder: Any,
        struct: Struct,
        response: type[Message],
        version: int,
        places: tuple[Place, ...],
        depth: int,
        source: _RequestElement,
    ) -> None:
        leading = {
            id(place.path[depth]): place.path[depth] for place in places if len(place.path) > depth
        }
        for field in leading.values():
            inner = field.type.inner_struct
            assert inner is not None
            below = tuple(p for p in places if len(p.path) > depth and p.path[depth] is field)
            elements = []
            default = [] if self._is_exact else [source]
            for each in self._sources(field, kind_of(inner, version), source) or default:
                element = response.STRUCTS[inner.name]()
                _set_beside_an_error(element, inner, version)
                if each is not source:
                    self._copy(element, inner, response, version, each, leading)
                self._fill(element, inner, response, version, below, depth + 1, each)
                elements.append(element)
            setattr(holder, field.python_name, elements)

    # ---- elements of the request ----------------------------------------------------------------

    def _sources(self, field: Field, kind: Kind, source: _RequestElement) -> list[_RequestElement]:
        """Return the elements of the request that the elements of a response array answer."""
        arrays = [] if source.struct is None else list(_arrays(source.struct, self._version))
        same = [each for each in arrays if each.name == field.name]
        alike = same or [each for each in arrays if kind in _kinds(each, self._version)]
        if kind != "element":
            alike = alike[:1]
        if alike:
            return [found for each in alike for found in self._elements(each, kind, source)]
        if kind == "element" or source.struct is None:
            return self._all_partitions(source) if kind == "partition" else []
        deeper = [
            found
            for each in arrays
            if each.type.inner_struct is not None
            for element in self._elements(each, _kind(each, self._version) or "element", source)
            for found in self._sources(field, kind, element)
        ]
        return deeper or (self._all_partitions(source) if kind == "partition" else [])

    def _elements(self, array: Field, kind: Kind, source: _RequestElement) -> list[_RequestElement]:
        values = getattr(source.value, array.python_name)
        inner = array.type.inner_struct
        if values is None:
            if kind == "topic":
                return [_RequestElement(parent=source, topic=name) for name in self._topics]
            return self._all_partitions(source) if kind == "partition" else []
        if inner is not None:
            return [self._element(value, inner, source) for value in values]
        if is_topics(array):
            return [_RequestElement(value, None, source, topic=value) for value in values]
        if is_partitions(array):
            return [_RequestElement(value, None, source, source.topic, value) for value in values]
        return [
            _RequestElement(value, None, source, source.topic, source.partition) for value in values
        ]

    def _element(self, value: Any, struct: Struct, parent: _RequestElement) -> _RequestElement:
        topic = topic_of(value, struct, self._version, self._topics)
        partition = partition_of(value, struct, self._version)
        return _RequestElement(value, struct, parent, topic or parent.topic, partition)

    def _all_partitions(self, source: _RequestElement) -> list[_RequestElement]:
        topic = self._topics.get(source.topic or "")
        return [] if topic is None else [
            _RequestElement(parent=source, topic=topic.name, partition=each.index)
            for each in topic.partitions
        ]  # fmt: skip

    # ---- fields that the response repeats -----------------------------------------------------

    def _copy(
        self,
        element: Any,
        struct: Struct,
        response: type[Message],
        version: int,
        source: _RequestElement,
        leading: dict[int, Field],
    ) -> None:
        matched = False
        strings = []
        for field in _identifying(struct, version) or list(fields_of(struct, version)):
            value = self._value(field, struct, version, source)
            if value is not _NOTHING:
                setattr(element, field.python_name, value)
                matched = True
            elif field.type.kind == "string" and not field.name.startswith("Error"):
                strings.append(field)
            if field.type.kind == "array" and id(field) not in leading:
                self._copy_array(element, field, response, version, source)
        if not matched and strings:
            value = _only_text(source, self._version)
            if value is not None:
                setattr(element, strings[0].python_name, value)

    def _value(self, field: Field, struct: Struct, version: int, source: _RequestElement) -> Any:
        if field is partition_field(struct, version):
            return _NOTHING if source.partition is None else source.partition
        known = self._topics.get(source.topic or "")
        if field is topic_field(struct, version):
            if source.topic is None or (known is None and _is_id(source.topic)):
                return None if field.is_nullable(version) else ""
            return source.topic
        if field is id_field(struct, version) and known is not None:
            return known.topic_id
        holder: _RequestElement | None = source
        while holder is not None:
            found = _own(holder, field, self._version)
            if found is not _NOTHING and (found is not None or field.is_nullable(version)):
                return found
            holder = holder.parent
        return _NOTHING

    def _copy_array(
        self,
        element: Any,
        field: Field,
        response: type[Message],
        version: int,
        source: _RequestElement,
    ) -> None:
        """Copy an array that identifies the element, such as the entity of a quota."""
        inner = field.type.inner_struct
        if inner is None or source.struct is None:
            return
        same = next(
            (each for each in _arrays(source.struct, self._version) if each.name == field.name),
            None,
        )
        if same is None or same.type.inner_struct is None:
            return
        copies = []
        for each in self._elements(same, "element", source):
            copy = response.STRUCTS[inner.name]()
            each.parent = None
            self._copy(copy, inner, response, version, each, {})
            copies.append(copy)
        setattr(element, field.python_name, copies)


def _identifying(struct: Struct, version: int) -> list[Field]:
    """Return the fields that the schema marks as such. Others are results, which an error lacks,
    even if the request has a field of the same name (the leader epoch, say)."""
    return [
        field
        for field in fields_of(struct, version)
        if field.map_key
        or field.entity_type is not None
        or field in (partition_field(struct, version), id_field(struct, version))
    ]


def _set_beside_an_error(holder: Any, struct: Struct, version: int) -> None:
    for field in fields_of(struct, version):
        if field.name in _BESIDE_AN_ERROR:
            setattr(holder, field.python_name, _BESIDE_AN_ERROR[field.name])
        elif field.name in _NULL_BESIDE_AN_ERROR and field.is_nullable(version):
            setattr(holder, field.python_name, None)


def _arrays(struct: Struct, version: int) -> list[Field]:
    return [field for field in fields_of(struct, version) if field.type.kind == "array"]


def _kinds(array: Field, version: int) -> tuple[Kind | None, ...]:
    """Return the kinds of elements in a response that may answer those of the array. Access rules
    name resources, and their results do not."""
    inner = array.type.inner_struct
    kind = _kind(array, version)
    return (kind, "element") if inner is not None and names_resources(inner) else (kind,)


def _kind(array: Field, version: int) -> Kind | None:
    """None for numbers other than partitions, such as replicas."""
    inner = array.type.inner_struct
    if inner is not None:
        return kind_of(inner, version)
    if is_topics(array):
        return "topic"
    if is_partitions(array):
        return "partition"
    element = array.type.element
    return "element" if element is not None and element.kind == "string" else None


def _own(source: _RequestElement, requested: Field, version: int) -> Any:
    """Return the value of the request's field of the same name and type."""
    if source.struct is None or requested.type.kind in ("array", "struct"):
        return _NOTHING
    for field in fields_of(source.struct, version):
        if field.name == requested.name and field.type.kind == requested.type.kind:
            return getattr(source.value, field.python_name)
    return _NOTHING


def _only_text(source: _RequestElement, version: int) -> str | None:
    """Return the first text of an element, for a response that names that field differently."""
    if source.struct is None:
        return source.value if isinstance(source.value, str) else None
    for field in fields_of(source.struct, version):
        if field.type.kind == "string":
            found = getattr(source.value, field.python_name)
            return None if found is None else str(found)
    return None


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
