"""Constructs of values without fields: numbers, lengths, strings, bytes, uuid.

They implement what ``kproto.reference`` documents. Errors are raised through the ``Walk`` in the
parse's context, so that they have an offset and a path.
"""

from __future__ import annotations

import uuid
from typing import Any, BinaryIO, Final

import construct

from kproto.reference.walk import Walk
from kproto.schema.model import FIXED_SIZES

__all__ = ["Blob", "Fixed", "Length", "Text", "UnsignedVarint", "camel_case"]

_MAX_INT32: Final = 2**31 - 1
_MAX_UINT32: Final = 2**32 - 1
_MAX_STRING: Final = 32767

_NUMBERS: Final[dict[str, construct.Construct]] = {
    "bool": construct.Flag,  # any byte but 0 is true
    "int8": construct.Int8sb,
    "int16": construct.Int16sb,
    "uint16": construct.Int16ub,
    "int32": construct.Int32sb,
    "uint32": construct.Int32ub,
    "int64": construct.Int64sb,
    "float64": construct.Float64b,
    "uuid": construct.Bytes(16),
}
_PYTHON_TYPES: Final[dict[str, Any]] = {"bool": bool, "float64": (float, int), "uuid": uuid.UUID}


def camel_case(name: str) -> str:
    """Return the name as Kafka's own error texts print it."""
    return name[:1].lower() + name[1:]


def walk_of(context: Any) -> Walk:
    walk = context._params.walk
    assert isinstance(walk, Walk)
    return walk


class Fixed(construct.Construct):  # type: ignore[misc]  # construct has no types
    """A value of constant width."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.size = FIXED_SIZES[kind]
        self.number = _NUMBERS[kind]

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> Any:
        walk_of(context).need(stream, self.size)
        value = self.number._parsereport(stream, context, path)
        return uuid.UUID(bytes=value) if self.kind == "uuid" else value

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        walk = walk_of(context)
        if not isinstance(obj, _PYTHON_TYPES.get(self.kind, int)):
            walk.refuse(f"{type(obj).__name__} is not a value for {self.kind}")
        number = obj.bytes if isinstance(obj, uuid.UUID) else obj
        try:
            self.number._build(number, stream, context, path)
        except (construct.FormatFieldError, OverflowError):
            walk.refuse(f"{obj} is out of range for {self.kind}")
        return obj


class UnsignedVarint(construct.Construct):  # type: ignore[misc]
    """Seven bits per byte, least significant first; the top bit is set on all but the last byte."""

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> int:
        walk = walk_of(context)
        value = 0
        for shift in range(0, 35, 7):
            byte = stream.read(1)
            if not byte:
                walk.fail("unsigned varint is cut off")
            value |= (byte[0] & 0x7F) << shift
            if byte[0] < 0x80:
                break
        else:
            value = _MAX_UINT32 + 1
        if value > _MAX_UINT32:
            walk.fail("unsigned varint is longer than 5 bytes or above 4294967295")
        return value

    def _build(self, obj: int, stream: BinaryIO, context: Any, path: str) -> int:
        construct.VarInt._build(obj, stream, context, path)
        return obj


class Length(construct.Construct):  # type: ignore[misc]
    """A length or count. Parses to None for null if that is allowed.

    ``label`` is the field's name in Kafka's texts.
    """

    def __init__(self, kind: str, *, compact: bool, nullable: bool, label: str) -> None:
        super().__init__()
        self.label = label
        self.compact = compact
        self.nullable = nullable
        self.prefix = (
            UnsignedVarint() if compact else Fixed("int16" if kind == "string" else "int32")
        )

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> int | None:
        walk = walk_of(context)
        length = int(self.prefix._parsereport(stream, context, path)) - self.compact
        if length > _MAX_INT32:
            walk.fail(f"length {length} is above {_MAX_INT32}")
        if length < -1:
            walk.fail(f"length {length} is negative, and only -1 means null")
        if length == -1 and not self.nullable:
            walk.fail(f"non-nullable field {self.label} was serialized as null")
        return None if length == -1 else length

    def _build(self, obj: int | None, stream: BinaryIO, context: Any, path: str) -> int | None:
        if obj is None and not self.nullable:
            walk_of(context).refuse(f"non-nullable field {self.label} is null")
        length = -1 if obj is None else obj
        self.prefix._build(length + self.compact, stream, context, path)
        return obj


class Blob(construct.Construct):  # type: ignore[misc]
    """``bytes`` and ``records``: a length, then as many bytes."""

    def __init__(self, length: Length) -> None:
        super().__init__()
        self.length = length

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> bytes | None:
        length = self.length._parsereport(stream, context, path)
        if length is None:
            return None
        walk_of(context).need(stream, length)
        return stream.read(length)

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        if obj is not None and not isinstance(obj, (bytes, bytearray, memoryview)):
            walk_of(context).refuse(f"{type(obj).__name__} is not a value for bytes")
        self.length._build(None if obj is None else len(bytes(obj)), stream, context, path)
        stream.write(b"" if obj is None else bytes(obj))
        return obj


class Text(construct.Construct):  # type: ignore[misc]
    """A string: the length of its UTF-8 in bytes, then the bytes."""

    def __init__(self, length: Length) -> None:
        super().__init__()
        self.length = length

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> str | None:
        walk = walk_of(context)
        length = self.length._parsereport(stream, context, path)
        if length is None:
            return None
        if length > _MAX_STRING:
            walk.fail(f"string field {self.length.label} had invalid length {length}")
        walk.need(stream, length)
        try:
            return stream.read(length).decode()
        except UnicodeDecodeError:
            walk.fail(f"string field {self.length.label} is not valid UTF-8")

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        walk = walk_of(context)
        if obj is None:
            self.length._build(None, stream, context, path)
            return obj
        if not isinstance(obj, str):
            walk.refuse(f"{type(obj).__name__} is not a value for string")
        try:
            encoded = obj.encode()
        except UnicodeEncodeError:
            walk.refuse("a string with a lone surrogate has no UTF-8")
        if len(encoded) > _MAX_STRING:
            label = self.length.label.replace(" element", "Element")
            walk.refuse(f"'{label}' field is too long to be serialized")
        self.length._build(len(encoded), stream, context, path)
        stream.write(encoded)
        return obj
