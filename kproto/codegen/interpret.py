"""Walk a plan one step at a time: the slow twin of the generated code, and the one that explains.

Generated decoders and encoders only notice that something is wrong; they then call ``decode`` or
``encode`` here, which do the same work field by field and raise the exact error: the byte offset
of the failing field, its length prefix included, and its path. What raises, and where:

====================================================  ==========================  ================
what                                                  offset                      path
====================================================  ==========================  ================
fewer bytes than a field needs                        first byte of the field     the field
null where the version does not allow it              its length prefix           the field
a negative length other than -1, a varint over 32     its length prefix           the field
bits, an array of more elements than bytes remain for
a null marker of a struct that is neither -1 nor 1    the marker                  the field
invalid UTF-8                                         its length prefix           the field
a tag twice, or lower than the one before             the tag                     the struct
a known tagged field of another size than announced   the field's tag             the field
====================================================  ==========================  ================
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping
from typing import Any

from kproto.codegen.base import MessageStruct
from kproto.codegen.plan import FieldPlan, StructPlan
from kproto.errors import DecodeError, EncodeError, UnsupportedVersionError
from kproto.schema.model import FIXED_SIZES, NewStruct

__all__ = ["decode", "encode", "fresh_default", "is_default"]

Classes = Mapping[str, type[MessageStruct]]
MAX_STRING = 0x7FFF
MAX_LENGTH = 0x7FFFFFFF


def fresh_default(item: FieldPlan, classes: Classes) -> Any:
    """The value an absent field takes; arrays and structs are new each time."""
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
    """Read one struct at ``offset``; return it and the offset after it. Raises DecodeError."""
    reader = _Reader(data, classes)
    return reader.struct(plan, offset, "")


def encode(plan: StructPlan, classes: Classes, value: MessageStruct) -> bytes:
    """Write one struct. Raises EncodeError or UnsupportedVersionError."""
    return _Writer(classes).struct(plan, value, "")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


class _Reader:
    __slots__ = ("classes", "data")

    def __init__(self, data: bytes, classes: Classes) -> None:
        self.data = data
        self.classes = classes

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

    def tagged_section(
        self, plan: StructPlan, at: int, path: str, values: dict[str, Any]
    ) -> int:
        count, at = self.varint(at, at, path)
        known = {item.tag: item for item in plan.tagged}
        unknown: dict[int, bytes] = {}
        previous = -1
        for _ in range(count):
            start = at
            tag, at = self.varint(at, start, path)
            if tag <= previous:
                problem = "appears twice" if tag == previous else f"follows tag {previous}"
                raise DecodeError(f"tag {tag} {problem}", offset=start, path=path)
            previous = tag
            item = known.get(tag)
            field_path = path if item is None else _join(path, item.name)
            size, at = self.varint(at, start, field_path)
            if size > len(self.data) - at:
                raise self.truncated(start, field_path, size, at)
            if item is None:
                unknown[tag] = self.data[at : at + size]
                at += size
                continue
            values[item.name], end = self.field(item, at, field_path)
            if end != at + size:
                raise DecodeError(
                    f"tagged field {tag} takes {end - at} bytes, its size says {size}",
                    offset=start,
                    path=field_path,
                )
            at = end
        if unknown:
            values["unknown_tags"] = unknown
        return at

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
                self.need(at, 1, at, path)
                marker = self.data[at]
                if marker == 0xFF:
                    return None, at + 1
                if marker != 1:
                    problem = f"null marker of a struct is {marker}, not 1 or -1"
                    raise DecodeError(problem, offset=at, path=path)
                at += 1
            return self.struct(item.struct, at, path)
        start = at
        length, at = self.length(item.compact, kind == "string", start, path)
        if length is None:
            return self.null(item, nullable, start, path), at
        self.need(at, length, start, path)
        raw = self.data[at : at + length]
        at += length
        if kind != "string":
            return raw, at
        if length > MAX_STRING:
            problem = f"string of {length} bytes is longer than {MAX_STRING}"
            raise DecodeError(problem, offset=start, path=path)
        try:
            return raw.decode(), at
        except UnicodeDecodeError as error:
            problem = f"not UTF-8 at byte {error.start} of the string: {error.reason}"
            raise DecodeError(problem, offset=start, path=path) from None

    def array(self, item: FieldPlan, at: int, path: str) -> tuple[list[Any] | None, int]:
        start = at
        count, at = self.length(item.compact, False, start, path)
        if count is None:
            self.null(item, item.nullable, start, path)
            return None, at
        if count * item.element_min_size > len(self.data) - at:
            problem = f"array of {count} elements does not fit in the {len(self.data) - at} bytes left"
            raise DecodeError(problem, offset=start, path=path)
        assert item.element_kind is not None
        values = []
        for index in range(count):
            value, at = self.value(item.element_kind, item, False, at, f"{path}[{index}]")
            values.append(value)
        return values, at

    def null(self, item: FieldPlan, nullable: bool, start: int, path: str) -> None:
        if not nullable:
            problem = f"non-nullable field {item.json_name} was serialized as null"
            raise DecodeError(problem, offset=start, path=path)

    def length(
        self, compact: bool, is_string: bool, at: int, path: str
    ) -> tuple[int | None, int]:
        start = at
        if compact:
            length, at = self.varint(at, start, path)
            length -= 1
            if length > MAX_LENGTH:
                raise DecodeError(f"length {length} is over 2^31 - 1", offset=start, path=path)
        else:
            size = 2 if is_string else 4
            self.need(at, size, start, path)
            length = int.from_bytes(self.data[at : at + size], "big", signed=True)
            at += size
        if length < -1:
            raise DecodeError(f"length {length} is negative", offset=start, path=path)
        return (None if length == -1 else length), at

    def varint(self, at: int, start: int, path: str) -> tuple[int, int]:
        """An unsigned varint of at most 32 bits; errors point at ``start``."""
        value = 0
        for shift in range(0, 35, 7):
            self.need(at, 1, start, path)
            byte = self.data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0xFFFFFFFF:
                    break
                return value, at
        raise DecodeError("varint is longer than 32 bits", offset=start, path=path)

    def need(self, at: int, size: int, start: int, path: str) -> None:
        if size > len(self.data) - at:
            raise self.truncated(start, path, size, at)

    def truncated(self, start: int, path: str, size: int, at: int) -> DecodeError:
        left = max(0, len(self.data) - at)
        return DecodeError(f"needs {size} more bytes, {left} are left", offset=start, path=path)


_FORMAT = {
    "bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I",
    "int64": ">q", "float64": ">d",
}  # fmt: skip


def unsigned_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class _Writer:
    __slots__ = ("classes",)

    def __init__(self, classes: Classes) -> None:
        self.classes = classes

    def struct(self, plan: StructPlan, value: Any, path: str) -> bytes:
        expected = self.classes[plan.name]
        if not isinstance(value, expected):
            problem = f"expected {expected.__name__}, got {type(value).__name__}"
            raise EncodeError(problem, path=path)
        for item in plan.absent:
            current = self.attribute(value, item, path)
            if not item.ignorable and not self.is_default(item, current, path):
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
        if not isinstance(unknown, Mapping):
            raise EncodeError(f"expected dict, got {type(unknown).__name__}", path=tags_path)
        for tag, raw in unknown.items():
            if type(tag) is not int or not 0 <= tag <= MAX_LENGTH:
                raise EncodeError(f"tag {tag!r} is not from 0 to 2^31 - 1", path=tags_path)
            if tag in known:
                raise EncodeError(f"tag {tag} is a known field of {plan.name}", path=tags_path)
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
            raise EncodeError(f"expected list, got {type(value).__name__}", path=path)
        assert item.element_kind is not None
        out = bytearray(self.length(len(value), item.compact, False, path))
        for index, element in enumerate(value):
            out += self.value(item.element_kind, item, False, element, f"{path}[{index}]")
        return bytes(out)

    def value(self, kind: str, item: FieldPlan, nullable: bool, value: Any, path: str) -> bytes:
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
            return b"\xff" if kind == "struct" and nullable else self.null(item, nullable, path)
        if kind == "struct":
            assert item.struct is not None
            return (b"\x01" if nullable else b"") + self.struct(item.struct, value, path)
        raw = self.text(value, path) if kind == "string" else self.raw(value, path)
        return self.length(len(raw), item.compact, kind == "string", path) + raw

    def text(self, value: Any, path: str) -> bytes:
        if not isinstance(value, str):
            raise EncodeError(f"expected str, got {type(value).__name__}", path=path)
        try:
            raw = value.encode()
        except UnicodeEncodeError as error:
            problem = f"character {error.start} is a lone surrogate, which UTF-8 cannot carry"
            raise EncodeError(problem, path=path) from None
        if len(raw) > MAX_STRING:
            problem = f"string of {len(raw)} bytes is longer than {MAX_STRING}"
            raise EncodeError(problem, path=path)
        return raw

    def raw(self, value: Any, path: str) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise EncodeError(f"expected bytes, got {type(value).__name__}", path=path)
        return bytes(value)

    def null(self, item: FieldPlan, nullable: bool, path: str) -> bytes:
        if not nullable:
            raise EncodeError("is None, but not nullable at this version", path=path)
        if item.compact:
            return b"\x00"
        return b"\xff\xff" if item.kind == "string" else b"\xff\xff\xff\xff"

    def length(self, length: int, compact: bool, is_string: bool, path: str) -> bytes:
        if length >= MAX_LENGTH:
            raise EncodeError(f"length {length} is over 2^31 - 2", path=path)
        if compact:
            return unsigned_varint(length + 1)
        return length.to_bytes(2 if is_string else 4, "big")


def _an(kind: str) -> str:
    return ("an " if kind[0] in "aeiou" and kind[:2] != "ui" else "a ") + kind
