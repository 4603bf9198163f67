"""The values of valid vectors: a few for each message and version, the same every time.

Each pattern covers something that decoders get wrong: defaults, every field at once, the ends of
every range and the lengths at which a varint grows, nulls, and unknown tags. A value is anything
that the schema allows at the version, whether or not a broker would accept it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from kproto.codec.message import Message
from kproto.codec.structs import MessageStruct
from kproto.reference import default_value
from kproto.schema.model import Field, FieldType, MessageSchema, Struct

__all__ = ["PATTERNS", "UNKNOWN_TAGS", "Pattern", "instances"]

UNKNOWN_TAGS: Final = {1000: b"", 20000: b"\x01\x02\x03"}
"""Tag numbers that no schema uses, which take two and three bytes as varints."""

_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_UNSIGNED_BITS: Final = {"uint16": 16, "uint32": 32}
_PRESENT_FLOATS: Final = (0.5, -2.25)


class Pattern(NamedTuple):
    """A name, its purpose, and whether a message has it at a version."""

    name: str
    about: str
    applies: Callable[[MessageSchema, int], bool]


def _always(_schema: MessageSchema, _version: int) -> bool:
    return True


def _has_fields(schema: MessageSchema, version: int) -> bool:
    return any(version in field.versions for field in schema.root.fields)


def _has_null(schema: MessageSchema, version: int) -> bool:
    return any(_nullable(field, version) for struct in schema.structs for field in struct.fields)


def _nullable(field: Field, version: int) -> bool:
    return version in field.versions and field.is_nullable(version)


PATTERNS: Final = (
    Pattern("default", "every field at its default", _always),
    Pattern("filled", "every field of the version, none at its default", _has_fields),
    Pattern("least", "the lowest numbers; everything else empty, nothing null", _has_fields),
    Pattern("greatest", "the highest numbers, texts and bytes of 126 to 128 bytes", _has_fields),
    Pattern("null", "null wherever the version has it, the rest filled", _has_null),
    Pattern(
        "unknown-tags",
        "filled, with two unknown tagged fields in every struct and in the header",
        lambda schema, version: schema.is_flexible(version),
    ),
)


def instances(
    cls: type[Message], schema: MessageSchema, version: int
) -> Iterator[tuple[str, Message]]:
    """Yield each pattern that ``cls`` has at ``version``, with a message."""
    for pattern in PATTERNS:
        if pattern.applies(schema, version):
            maker = _Maker(cls, version, pattern.name)
            yield pattern.name, maker.message(schema.root)


class _Maker:
    def __init__(self, cls: type[Message], version: int, pattern: str) -> None:
        self._cls = cls
        self._version = version
        self._pattern = pattern
        self._made = 0

    def message(self, root: Struct) -> Message:
        made = self._fill(self._cls, root, 0)
        assert isinstance(made, Message)
        return made

    def _fill(self, cls: type[MessageStruct], struct: Struct, depth: int) -> MessageStruct:
        values = {}
        if self._pattern != "default":
            for field in struct.fields:
                if self._version in field.versions:
                    values[field.python_name] = self._value(field, depth)
        made = cls(**values)
        if self._pattern == "unknown-tags":
            made.unknown_tags = dict(UNKNOWN_TAGS)
        return made

    def _value(self, field: Field, depth: int) -> Any:
        if self._pattern == "null" and field.is_nullable(self._version):
            return None
        value = self._of(field.type, field, depth)
        if self._pattern in ("filled", "null", "unknown-tags") and value == default_value(field):
            value = not value if field.type.kind == "bool" else self._of(field.type, field, depth)
        return value

    def _of(self, type_: FieldType, field: Field, depth: int) -> Any:
        if type_.struct is not None:
            return self._fill(self._cls.STRUCTS[type_.struct.name], type_.struct, depth)
        if type_.element is not None:
            return [self._of(type_.element, field, depth + 1) for _ in range(self._length(depth))]
        self._made += 1
        number = self._made
        if self._pattern == "least":
            return _least(type_.kind)
        if self._pattern == "greatest":
            return _greatest(type_.kind, number)
        return _usual(type_.kind, field.python_name, number)

    def _length(self, depth: int) -> int:
        """Two elements where that is cheap: the second shows that the first ended at the right
        byte."""
        if self._pattern == "least":
            return 0
        return 2 if depth == 0 and self._pattern != "greatest" else 1


def _usual(kind: str, name: str, number: int) -> Any:
    """Return a different value for every number, which uses every byte."""
    if kind in _BITS or kind in _UNSIGNED_BITS:
        size = (_BITS.get(kind) or _UNSIGNED_BITS[kind]) // 8
        highest = int.from_bytes(bytes(range(1, size + 1)), "big")
        return 1 + number % 126 if size == 1 else highest + number
    match kind:
        case "bool":
            return True
        case "float64":
            return number + _PRESENT_FLOATS[number % 2]
        case "uuid":
            return uuid.UUID(int=0x0102030405060708090A0B0C0D0E0F00 + number)
        case "string":
            return f"{name}-{number}" if number % 2 else f"{number}-\u00e9\u65e5\U0001f600"
        case _:
            return bytes((0, 0xFF, number % 256))


def _least(kind: str) -> Any:
    if kind in _BITS:
        return -(1 << (_BITS[kind] - 1))
    empty = {"bool": False, "float64": -1.7976931348623157e308, "uuid": uuid.UUID(int=0)}
    return 0 if kind in _UNSIGNED_BITS else empty.get(kind, "" if kind == "string" else b"")


def _greatest(kind: str, number: int) -> Any:
    if kind in _BITS:
        return (1 << (_BITS[kind] - 1)) - 1
    if kind in _UNSIGNED_BITS:
        return (1 << _UNSIGNED_BITS[kind]) - 1
    length = 126 + number % 3
    full = {"bool": True, "float64": 1.7976931348623157e308, "uuid": uuid.UUID(int=(1 << 128) - 1)}
    return full.get(kind, "x" * length if kind == "string" else b"\xff" * length)
