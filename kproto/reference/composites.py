"""Constructs that contain fields: located fields, arrays, structs and tagged sections.

``kproto.reference`` documents the rules; ``build`` combines these constructs.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, BinaryIO

import construct
import msgspec

from kproto.errors import UnsupportedVersionError
from kproto.reference.scalars import Fixed, Length, UnsignedVarint, camel_case, walk_of
from kproto.reference.trees import default_value, is_default
from kproto.schema.model import Field

__all__ = ["CountedArray", "KnownTag", "LocatedField", "Message", "NullableStruct", "TaggedSection"]

_MAX_INT32 = 2**31 - 1
_LEAST_TAG_SIZE = 2  # one byte of tag number, one of size

_VARINT = UnsignedVarint()


class LocatedField(construct.Subconstruct):  # type: ignore[misc]  # construct has no types
    """A value with a location: ``segment`` is added to the path, and its extent becomes a span."""

    def __init__(self, subcon: Any, segment: str, type_: str, *, leaf: bool) -> None:
        super().__init__(subcon)
        self.segment = segment
        self.type = type_
        self.leaf = leaf

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> Any:
        return self.parse_as(self.segment, stream, context, path)

    def parse_as(self, segment: str, stream: BinaryIO, context: Any, path: str) -> Any:
        walk = walk_of(context)
        start = stream.tell()
        with walk.inside(segment, start):
            place = walk.reserve()
            value = self.subcon._parsereport(stream, context, path)
            walk.fill(place, start, stream.tell(), self.type, value, self.leaf)
        return value

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        return self.build_as(self.segment, obj, stream, context, path)

    def build_as(self, segment: str, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        with walk_of(context).inside(segment):
            self.subcon._build(obj, stream, context, path)
        return obj


class CountedArray(construct.Construct):  # type: ignore[misc]
    """An array: a count, then the elements. ``least`` is the least size of an element."""

    def __init__(self, count: Length, element: LocatedField, least: int) -> None:
        super().__init__()
        self.count = count
        self.element = element
        self.least = max(1, least)

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> list[Any] | None:
        walk = walk_of(context)
        start = stream.tell()
        count = self.count._parsereport(stream, context, path)
        walk.note(start, stream.tell(), "count", count)
        if count is None:
            return None
        left = walk.room(stream)
        if count * self.least > left:
            walk.fail(
                f"Tried to allocate a collection of size {count}, "
                f"but there are only {left} bytes remaining."
            )
        return [
            self.element.parse_as(f"[{index}]", stream, context, path) for index in range(count)
        ]

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        if obj is not None and not isinstance(obj, (list, tuple)):
            walk_of(context).refuse(f"{type(obj).__name__} is not a value for an array")
        self.count._build(None if obj is None else len(obj), stream, context, path)
        for index, item in enumerate(obj or ()):
            self.element.build_as(f"[{index}]", item, stream, context, path)
        return obj


class NullableStruct(construct.Subconstruct):  # type: ignore[misc]
    """A struct after a marker of its presence: a varint in a tagged field, else an int8."""

    def __init__(self, subcon: Any, *, tagged: bool) -> None:
        super().__init__(subcon)
        self.marker: Any = _VARINT if tagged else Fixed("int8")
        self.absent = 0 if tagged else -1

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> Any:
        walk = walk_of(context)
        start = stream.tell()
        marker = self.marker._parsereport(stream, context, path)
        if marker not in (self.absent, 1):
            walk.fail(f"presence marker {marker} is neither {self.absent} nor 1")
        walk.note(start, stream.tell(), "presence", marker)
        return self.subcon._parsereport(stream, context, path) if marker == 1 else None

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        self.marker._build(self.absent if obj is None else 1, stream, context, path)
        if obj is not None:
            self.subcon._build(obj, stream, context, path)
        return obj


class KnownTag(msgspec.Struct, frozen=True):
    """``value`` is located without a segment: the section adds it, since it also covers tag and
    size."""

    field: Field
    value: LocatedField


class TaggedSection(construct.Construct):  # type: ignore[misc]
    """The tagged fields at the end of a struct (KIP-482). Parses to entries of the struct's tree:
    known fields by name, the rest in ``unknown_tags``. ``elsewhere`` names the fields that other
    versions of the struct have under a tag."""

    def __init__(
        self, known: Mapping[int, KnownTag], elsewhere: Mapping[int, str], version: int
    ) -> None:
        super().__init__()
        self.known = known
        self.elsewhere = elsewhere
        self.version = version

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> dict[str, Any]:
        walk = walk_of(context)
        start = stream.tell()
        unknown: dict[int, bytes] = {}
        tree: dict[str, Any] = {"unknown_tags": unknown}
        with walk.inside(start=start):
            place = walk.reserve()
            count = _VARINT._parse(stream, context, path)
            left = walk.room(stream)
            if count * _LEAST_TAG_SIZE > left:
                walk.fail(
                    f"Tried to read {count} tagged fields, "
                    f"but there are only {left} bytes remaining."
                )
            walk.note(start, stream.tell(), "tag count", count)
            previous = -1
            for _ in range(count):
                tag_start = stream.tell()
                tag, size = self._parse_header(previous, stream, context, path)
                previous = tag
                if tag in self.known:
                    name = self.known[tag].field.python_name
                    with walk.inside(name, tag_start):
                        tree[name] = self._parse_known(tag, size, tag_start, stream, context, path)
                elif tag in self.elsewhere:
                    with walk.inside(self.elsewhere[tag], tag_start):
                        walk.fail(f"Tag {tag} is not valid for version {self.version}")
                else:
                    with walk.inside(f"unknown_tags[{tag}]", tag_start):
                        unknown[tag] = self._parse_unknown(tag, size, tag_start, stream, context)
            walk.fill(place, start, stream.tell(), "tagged fields", tree, leaf=False)
        return tree

    def _parse_header(
        self, previous: int, stream: BinaryIO, context: Any, path: str
    ) -> tuple[int, int]:
        walk = walk_of(context)
        with walk.inside(start=stream.tell()):
            tag = _VARINT._parse(stream, context, path)
            if tag > _MAX_INT32:
                walk.fail(f"tag {tag} is above {_MAX_INT32}")
            if tag <= previous:
                walk.fail(f"tag {tag} comes after tag {previous}, but is not higher than it")
            size = _VARINT._parse(stream, context, path)
            if size > _MAX_INT32:
                walk.fail(f"length {size} is above {_MAX_INT32}")
        return tag, size

    def _parse_known(
        self, tag: int, size: int, tag_start: int, stream: BinaryIO, context: Any, path: str
    ) -> Any:
        walk = walk_of(context)
        walk.need(stream, size)
        start = stream.tell()
        walk.note(tag_start, start, "tag", tag)
        value = self.known[tag].value._parsereport(stream, context, path)
        consumed = stream.tell() - start
        if consumed != size:
            name = camel_case(self.known[tag].field.name)
            walk.fail(f"tagged field {name} has size {size}, but its value took {consumed} bytes")
        return value

    def _parse_unknown(
        self, tag: int, size: int, tag_start: int, stream: BinaryIO, context: Any
    ) -> bytes:
        walk = walk_of(context)
        walk.need(stream, size)
        start = stream.tell()
        walk.note(tag_start, start, "tag", tag)
        value = stream.read(size)
        walk.note(start, stream.tell(), "unknown tag", value)
        return value

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        walk = walk_of(context)
        contents: dict[int, bytes] = {}
        for tag, data in obj["unknown_tags"].items():
            if not isinstance(tag, int) or not isinstance(data, (bytes, bytearray, memoryview)):
                walk.refuse("unknown tags are a dict from int to bytes")
            if tag in self.known:
                walk.refuse(f"Attempted to use tag {tag} as an undefined tag.")
            if not 0 <= tag <= _MAX_INT32:
                walk.refuse(f"tag {tag} is not between 0 and {_MAX_INT32}")
            contents[tag] = bytes(data)
        for tag, known in self.known.items():
            value = obj[known.field.python_name]
            if not is_default(known.field, value):
                content = io.BytesIO()
                name = known.field.python_name
                known.value.build_as(name, value, content, context, path)
                contents[tag] = content.getvalue()
        _VARINT._build(len(contents), stream, context, path)
        for tag in sorted(contents):
            _VARINT._build(tag, stream, context, path)
            _VARINT._build(len(contents[tag]), stream, context, path)
            stream.write(contents[tag])
        return obj


class Message(construct.Adapter):  # type: ignore[misc]
    """Converts between the tree of a struct at one version and a ``construct.Struct`` of its
    encoded fields."""

    def __init__(
        self,
        inline: construct.Struct,
        fields: list[Field],
        version: int,
        *,
        flexible: bool,
        label: str,
    ) -> None:
        super().__init__(inline)
        self.label = label
        self.fields = fields
        self.version = version
        self.flexible = flexible

    def _decode(self, obj: Any, context: Any, path: str) -> dict[str, Any]:
        sent = {**obj, **(obj.get("tagged") or {})}
        tree = {
            field.python_name: (
                sent[field.python_name] if field.python_name in sent else default_value(field)
            )
            for field in self.fields
        }
        return {**tree, "unknown_tags": sent.get("unknown_tags", {})}

    def _encode(self, obj: Any, context: Any, path: str) -> dict[str, Any]:
        walk = walk_of(context)
        if obj is None:
            walk.refuse(f"non-nullable field {self.label} is null")
        for field in self.fields:
            absent = self.version not in field.versions
            if absent and not field.ignorable and not is_default(field, obj[field.python_name]):
                raise UnsupportedVersionError(
                    f"Attempted to write a non-default {camel_case(field.name)} "
                    f"at version {self.version}"
                )
        if obj["unknown_tags"] and not self.flexible:
            raise UnsupportedVersionError(
                f"Tagged fields were set, but version {self.version} of this message "
                "does not support them."
            )
        return {**obj, "tagged": obj}
