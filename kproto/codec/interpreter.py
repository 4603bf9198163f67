"""Decode and encode one plan step at a time, and raise the exact error.

Generated decoders and encoders only detect that something is wrong. They then call ``decode`` or
``encode`` here, which do the same work field by field and raise the error. ``kproto.reference``
lists all errors with offset, path and text; tests hold this module to that table.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Collection, Mapping
from typing import Any

from kproto.codec.runtime import unsigned_varint
from kproto.codec.structs import MessageStruct
from kproto.codegen.plan import FieldPlan, StructPlan
from kproto.errors import DecodeError, EncodeError, UnsupportedVersionError
from kproto.schema.model import FIXED_SIZES, NewStruct

__all__ = ["Classes", "Reader", "decode", "encode", "fresh_default", "is_default"]

Classes = Mapping[str, type[MessageStruct]]
MAX_STRING = 0x7FFF
MAX_LENGTH = 0x7FFFFFFF


def fresh_default(item: FieldPlan, classes: Classes) -> Any:
    """Return the value that an absent field takes. Arrays and structs are new objects each time."""
    if isinstance(item.default, NewStruct):
        assert item.struct is not None
        return classes[item.struct.name]()
    return [] if item.default == () else item.default


def is_default(item: FieldPlan, value: Any, classes: Classes) -> bool:
    if item.default == ():
        return value is not None and not len(value)
    if isinstance(item.default, NewStruct):
        return bool(value == fresh_default(item, classes))
    return (value is None) if item.default is None else bool(value == item.default)


def decode(
    plan: StructPlan, classes: Classes, data: bytes, offset: int = 0
) -> tuple[MessageStruct, int]:
    """Read one struct at ``offset``; return it and the offset of the byte after it. Raises
    DecodeError."""
    reader = Reader(data, classes)
    return reader.struct(plan, offset, "")


def encode(plan: StructPlan, classes: Classes, value: MessageStruct) -> bytes:
    """Return the bytes of one struct. Raises EncodeError or UnsupportedVersionError."""
    return _Writer(classes).struct(plan, value, "")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


class Reader:
    """Reads ``data`` from beginning to end.

    ``partial`` subclasses it to record progress. ``size`` is the size of the whole message where
    ``data`` is only its beginning.
    """

    __slots__ = ("classes", "data", "size")

    def __init__(self, data: bytes, classes: Classes, size: int | None = None) -> None:
        self.data = data
        self.classes = classes
        self.size = len(data) if size is None else size

    def struct(self, plan: StructPlan, at: int, path: str) -> tuple[MessageStruct, int]:
        values: dict[str, Any] = {}
        for item in plan.inline:
            values[item.name], at = self.field(item, at, _join(path, item.name))
        if plan.flexible:
            at = self.tagged_section(plan, at, path, values)
        for item in plan.order:
            if item.name not in values:
                values[item.name] = fresh_default(item, self.classes)
        return self.classes[plan.name](**values), at

    def tagged_section(self, plan: StructPlan, at: int, path: str, values: dict[str, Any]) -> int:
        start = at
        count, at = self.varint(at, start, path)
        if count * 2 > self.size - at:
            problem = f"Tried to read {count} tagged fields, but there are only "
            problem += f"{self.size - at} bytes remaining."
            raise DecodeError(problem, offset=start, path=path)
        known = {item.tag: item for item in plan.tagged}
        unknown: dict[int, bytes] = {}
        previous = -1
        for _ in range(count):
            start = at
            tag, size, item, at = self.tag(plan, known, start, previous, path)
            previous = tag
            if item is None:
                unknown[tag] = self.data[at : at + size]
                at += size
                continue
            values[item.name], end = self.field(item, at, _join(path, item.name))
            if end != at + size:
                problem = f"tagged field {item.json_name} has size {size}, "
                problem += f"but its value took {end - at} bytes"
                raise DecodeError(problem, offset=start, path=_join(path, item.name))
            at = end
        if unknown:
            values["unknown_tags"] = unknown
        return at

    def tag(
        self,
        plan: StructPlan,
        known: Mapping[int | None, FieldPlan],
        start: int,
        previous: int,
        path: str,
    ) -> tuple[int, int, FieldPlan | None, int]:
        """Read a tag and its size. Returns the tag, the size, the field if the schema defines it,
        and the offset of the value."""
        tag, at = self.varint(start, start, path)
        if tag > MAX_LENGTH:
            raise DecodeError(f"tag {tag} is above {MAX_LENGTH}", offset=start, path=path)
        if tag <= previous:
            problem = f"tag {tag} comes after tag {previous}, but is not higher than it"
            raise DecodeError(problem, offset=start, path=path)
        size, at = self.varint(at, start, path)
        if size > MAX_LENGTH:
            raise DecodeError(f"length {size} is above {MAX_LENGTH}", offset=start, path=path)
        item = known.get(tag)
        if tag in plan.foreign_tags:
            name = next(name for number, name in plan.foreign_names if number == tag)
            problem = f"Tag {tag} is not valid for version {plan.version}"
            raise DecodeError(problem, offset=start, path=_join(path, name))
        name = item.name if item is not None else f"unknown_tags[{tag}]"
        self.need(at, size, start, _join(path, name))
        return tag, size, item, at

    def field(self, item: FieldPlan, at: int, path: str) -> tuple[Any, int]:
        if item.kind == "array":
            return self.array(item, at, path)
        return self.value(item.kind, item, item.nullable, at, path)

    def value(
        self, kind: str, item: FieldPlan, nullable: bool, at: int, path: str
    ) -> tuple[Any, int]:
        if kind in FIXED_SIZES:
            size = FIXED_SIZES[kind]
            self.need(at, size, at, path)
            if kind == "uuid":
                return uuid.UUID(bytes=self.data[at : at + size]), at + size
            return struct.unpack_from(_FORMAT[kind], self.data, at)[0], at + size
        if kind == "struct":
            assert item.struct is not None
            if nullable:
                present, at = self.presence(item, at, path)
                if not present:
                    return None, at
            return self.struct(item.struct, at, path)
        name = item.json_name if item.kind != "array" else f"{item.json_name} element"
        start = at
        length, at = self.length(item.compact, kind == "string", start, path)
        if length is None:
            self.null(name, nullable, start, path)
            return None, at
        if kind == "string" and length > MAX_STRING:
            problem = f"string field {name} had invalid length {length}"
            raise DecodeError(problem, offset=start, path=path)
        self.need(at, length, start, path)
        raw = self.data[at : at + length]
        at += length
        if kind != "string":
            return raw, at
        try:
            return raw.decode(), at
        except UnicodeDecodeError:
            problem = f"string field {name} is not valid UTF-8"
            raise DecodeError(problem, offset=start, path=path) from None

    def presence(self, item: FieldPlan, at: int, path: str) -> tuple[bool, int]:
        """Read the marker before a nullable struct: one byte, or a varint in a tagged field."""
        start = at
        null, present = item.markers
        if item.tag is not None:
            marker, at = self.varint(at, start, path)
        else:
            self.need(at, 1, start, path)
            marker, at = self.data[at], at + 1
        if marker not in (null, present):
            if item.tag is None:
                null, marker = -1, marker - 256 if marker > 127 else marker
            problem = f"presence marker {marker} is neither {null} nor {present}"
            raise DecodeError(problem, offset=start, path=path)
        return marker == present, at

    def array(self, item: FieldPlan, at: int, path: str) -> tuple[list[Any] | None, int]:
        start = at
        count, at = self.length(item.compact, False, start, path)
        if count is None:
            self.null(item.json_name, item.nullable, start, path)
            return None, at
        if count * item.element_min_size > self.size - at:
            problem = f"Tried to allocate a collection of size {count}, but there are only "
            problem += f"{self.size - at} bytes remaining."
            raise DecodeError(problem, offset=start, path=path)
        assert item.element_kind is not None
        values = []
        for index in range(count):
            value, at = self.value(item.element_kind, item, False, at, f"{path}[{index}]")
            values.append(value)
        return values, at

    def null(self, name: str, nullable: bool, start: int, path: str) -> None:
        if not nullable:
            problem = f"non-nullable field {name} was serialized as null"
            raise DecodeError(problem, offset=start, path=path)

    def length(self, compact: bool, is_string: bool, at: int, path: str) -> tuple[int | None, int]:
        start = at
        if compact:
            length, at = self.varint(at, start, path)
            length -= 1
            if length > MAX_LENGTH:
                raise DecodeError(f"length {length} is above {MAX_LENGTH}", offset=start, path=path)
        else:
            size = 2 if is_string else 4
            self.need(at, size, start, path)
            length = int.from_bytes(self.data[at : at + size], "big", signed=True)
            at += size
        if length < -1:
            problem = f"length {length} is negative, and only -1 means null"
            raise DecodeError(problem, offset=start, path=path)
        return (None if length == -1 else length), at

    def varint(self, at: int, start: int, path: str) -> tuple[int, int]:
        """Read an unsigned varint of at most 32 bits. Errors have the offset ``start``."""
        value = 0
        for shift in range(0, 35, 7):
            if at >= len(self.data):
                raise DecodeError("unsigned varint is cut off", offset=start, path=path)
            byte = self.data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0xFFFFFFFF:
                    break
                return value, at
        problem = "unsigned varint is longer than 5 bytes or above 4294967295"
        raise DecodeError(problem, offset=start, path=path)

    def need(self, at: int, size: int, start: int, path: str) -> None:
        left = max(0, len(self.data) - at)
        if size > left:
            raise DecodeError(f"bytes needed: {size}, left: {left}", offset=start, path=path)


_FORMAT = {
    "bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I",
    "int64": ">q", "float64": ">d",
}  # fmt: skip


class _Writer:
    __slots__ = ("classes",)

    def __init__(self, classes: Classes) -> None:
        self.classes = classes

    def struct(self, plan: StructPlan, value: Any, path: str) -> bytes:
        expected = self.classes[plan.name]
        if not (isinstance(value, expected) or _stands_in(value, plan)):
            problem = f"expected {expected.__name__}, got {type(value).__name__}"
            raise EncodeError(problem, path=path)
        for item in plan.absent:
            if item.ignorable:
                continue
            if not self.is_default(item, self.attribute(value, item, path), path):
                raise UnsupportedVersionError(
                    f"Attempted to write a non-default {item.json_name} at version {plan.version}"
                )
        out = bytearray()
        for item in plan.inline:
            out += self.field(item, self.attribute(value, item, path), _join(path, item.name))
        unknown = value._unknown_tags
        if plan.flexible:
            out += self.tagged_section(plan, value, unknown, path)
        elif unknown:
            raise UnsupportedVersionError(
                f"Tagged fields were set, but version {plan.version} of this message does not "
                "support them."
            )
        return bytes(out)

    def attribute(self, value: Any, item: FieldPlan, path: str) -> Any:
        try:
            return getattr(value, item.name)
        except AttributeError:
            raise EncodeError("was deleted", path=_join(path, item.name)) from None

    def is_default(self, item: FieldPlan, value: Any, path: str) -> bool:
        try:
            return is_default(item, value, self.classes)
        except AttributeError:
            raise EncodeError("a member was deleted", path=_join(path, item.name)) from None
        except TypeError:
            problem = f"expected {item.kind}, got {type(value).__name__}"
            raise EncodeError(problem, path=_join(path, item.name)) from None

    def tagged_section(
        self, plan: StructPlan, value: Any, unknown: Mapping[int, bytes], path: str
    ) -> bytes:
        tags: dict[int, bytes] = {}
        for item in plan.tagged:
            current = self.attribute(value, item, path)
            if not self.is_default(item, current, path):
                assert item.tag is not None
                tags[item.tag] = self.field(item, current, _join(path, item.name))
        known = {item.tag for item in plan.tagged}
        tags_path = _join(path, "unknown_tags")
        if not unknown:
            unknown = {}
        if not isinstance(unknown, Mapping):
            raise EncodeError(f"expected dict, got {type(unknown).__name__}", path=tags_path)
        for tag, raw in unknown.items():
            if type(tag) is not int or not 0 <= tag <= MAX_LENGTH:
                raise EncodeError(f"tag {tag!r} is not from 0 to 2^31 - 1", path=tags_path)
            if tag in known:
                problem = f"Attempted to use tag {tag} as an undefined tag."
                raise EncodeError(problem, path=tags_path)
            tags[tag] = self.raw(raw, tags_path)
        out = bytearray(unsigned_varint(len(tags)))
        for tag in sorted(tags):
            out += unsigned_varint(tag) + unsigned_varint(len(tags[tag])) + tags[tag]
        return bytes(out)

    def field(self, item: FieldPlan, value: Any, path: str) -> bytes:
        if item.kind != "array":
            return self.value(item.kind, item, item.nullable, value, path)
        if value is None:
            return self.null(item, item.nullable, path)
        if not isinstance(value, list | tuple):
            if item.element_format in (None, "?") or not _is_collection(value):
                raise EncodeError(f"expected list, got {type(value).__name__}", path=path)
            value = list(value)
        assert item.element_kind is not None
        out = bytearray(self.length(len(value), item.compact, False, path))
        for index, element in enumerate(value):
            out += self.value(item.element_kind, item, False, element, f"{path}[{index}]")
        return bytes(out)

    def value(self, kind: str, item: FieldPlan, nullable: bool, value: Any, path: str) -> bytes:
        if kind == "bool" and not isinstance(value, bool):
            raise EncodeError(f"{value!r} is not a bool", path=path)
        if kind in _FORMAT:
            try:
                return struct.pack(_FORMAT[kind], value)
            except (struct.error, TypeError, OverflowError, ValueError):
                raise EncodeError(f"{value!r} is not {_an(kind)}", path=path) from None
        if kind == "uuid":
            if not isinstance(value, uuid.UUID):
                raise EncodeError(f"{value!r} is not a uuid.UUID", path=path)
            return value.bytes
        if value is None:
            return self.null(item, nullable, path)
        if kind == "struct":
            assert item.struct is not None
            marker = bytes(item.markers[1:]) if nullable else b""
            return marker + self.struct(item.struct, value, path)
        name = item.json_name + ("Element" if item.kind == "array" else "")
        raw = self.text(value, name, path) if kind == "string" else self.raw(value, path)
        return self.length(len(raw), item.compact, kind == "string", path) + raw

    def text(self, value: Any, name: str, path: str) -> bytes:
        if not isinstance(value, str):
            raise EncodeError(f"expected str, got {type(value).__name__}", path=path)
        try:
            raw = value.encode()
        except UnicodeEncodeError as error:
            problem = f"character {error.start} is a lone surrogate, which UTF-8 cannot carry"
            raise EncodeError(problem, path=path) from None
        if len(raw) > MAX_STRING:
            raise EncodeError(f"'{name}' field is too long to be serialized", path=path)
        return raw

    def raw(self, value: Any, path: str) -> bytes:
        if isinstance(value, tuple):
            return b"".join(self.raw(each, path) for each in value)
        if not isinstance(value, bytes | bytearray | memoryview):
            raise EncodeError(f"expected bytes, got {type(value).__name__}", path=path)
        return bytes(value)

    def null(self, item: FieldPlan, nullable: bool, path: str) -> bytes:
        if not nullable:
            raise EncodeError(f"non-nullable field {item.json_name} is null", path=path)
        if item.kind == "struct":
            return bytes(item.markers[:1])
        if item.compact:
            return b"\x00"
        return b"\xff\xff" if item.kind == "string" else b"\xff\xff\xff\xff"

    def length(self, length: int, compact: bool, is_string: bool, path: str) -> bytes:
        if length >= MAX_LENGTH:
            raise EncodeError(f"length {length} is over 2^31 - 2", path=path)
        if compact:
            return unsigned_varint(length + 1)
        return length.to_bytes(2 if is_string else 4, "big")


def _stands_in(value: Any, plan: StructPlan) -> bool:
    """Whether a struct of another message can be written as this one because it has the same
    fields. Generated encoders do not check classes, so the interpreter writes such a struct too."""
    needed = (*plan.inline, *plan.tagged, *(item for item in plan.absent if not item.ignorable))
    return isinstance(value, MessageStruct) and all(hasattr(value, item.name) for item in needed)


def _is_collection(value: Any) -> bool:
    """Whether ``value`` may hold numbers: a range or an array may, but not the characters of a
    str."""
    return isinstance(value, Collection) and not (isinstance(value, str) and value)


def _an(kind: str) -> str:
    return ("an " if kind[0] in "aeiou" and kind[:2] != "ui" else "a ") + kind
