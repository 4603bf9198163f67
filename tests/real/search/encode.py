"""Bytes of request bodies that need not be valid: null in any place, tags that no schema knows.

A body is plain data in the form of ``Message.to_json``. Two keys are no fields: ``"+tags"`` of an
object holds unknown tagged fields by number, in hexadecimal, and ``"+bytes"`` of the body says what
happens to its end: a negative number cuts bytes off, a text in hexadecimal is appended.

In place of bytes there may be an object that says what they hold, so that it can name topics and
producers of a program. ``{"+subscription": {...}, "version": 1}`` and ``{"+assignment": {...}}``
are what members of the classic protocol send; ``{"+batch": {...}}`` is a batch of two records whose
header has these values.
"""

from __future__ import annotations

import struct
import uuid
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Mapping
from typing import Any, Final

from kproto.codec.registry import schema_of
from kproto.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kproto.records import build_batch
from kproto.schema.model import ZERO_UUID, Field, FieldType, NewStruct, Struct
from kproto.schema.versions import Versions
from tests.real.data.batches import changed, record

__all__ = [
    "ASSIGNMENT",
    "BATCH",
    "BYTES",
    "SUBSCRIPTION",
    "TAGS",
    "THEN",
    "default_of",
    "encode_body",
    "field_name",
]

TAGS: Final = "+tags"
BYTES: Final = "+bytes"
SUBSCRIPTION: Final = "+subscription"
ASSIGNMENT: Final = "+assignment"
BATCH: Final = "+batch"

THEN: Final = 1_600_000_000_000
"""The timestamp of all records; topics of programs keep them for ever."""

_NUMBERS: Final = {
    "bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I",
    "int64": ">q", "float64": ">d",
}  # fmt: skip


def encode_body(root: Struct, body: Mapping[str, Any], version: int, flexible: Versions) -> bytes:
    """``body`` at ``version``. Fields that it lacks have their defaults."""
    out = bytearray()
    _Encoder(version, flexible=version in flexible).struct(out, root, body)
    end = body.get(BYTES)
    if isinstance(end, int):
        del out[end:]
    elif end is not None:
        out += bytes.fromhex(end)
    return bytes(out)


def field_name(field: Field) -> str:
    """The field's name in JSON."""
    return field.name[0].lower() + field.name[1:]


def default_of(field: Field) -> Any:
    """The field's default as it is in JSON."""
    default = field.default
    if isinstance(default, NewStruct):
        assert field.type.struct is not None
        return {field_name(each): default_of(each) for each in field.type.struct.fields}
    if default == ():
        return []
    if isinstance(default, uuid.UUID):
        return "A" * 22
    if isinstance(default, bytes):
        return ""
    return default


class _Encoder:
    def __init__(self, version: int, *, flexible: bool) -> None:
        self._version = version
        self._flexible = flexible

    def struct(self, out: bytearray, kind: Struct, value: Mapping[str, Any]) -> None:
        tagged: dict[int, bytes] = {}
        for field in kind.fields:
            if self._version not in field.versions:
                continue
            name = field_name(field)
            given = value[name] if name in value else default_of(field)
            if not field.is_tagged(self._version):
                self._field(out, field, given)
            elif given != default_of(field):
                content = bytearray()
                self._field(content, field, given)
                assert field.tag is not None
                tagged[field.tag] = bytes(content)
        if self._flexible:
            unknown = {int(tag): bytes.fromhex(each) for tag, each in value.get(TAGS, {}).items()}
            tags = sorted((tagged | unknown).items())
            _varint(out, len(tags))
            for tag, data in tags:
                _varint(out, tag)
                _varint(out, len(data))
                out += data

    def _field(self, out: bytearray, field: Field, value: Any) -> None:
        if field.type.struct is None:
            self._value(out, field.type, value)
            return
        if field.is_nullable(self._version):
            out += b"\xff" if value is None else b"\x01"
        if value is not None:
            self.struct(out, field.type.struct, value)

    def _value(self, out: bytearray, kind: FieldType, value: Any) -> None:
        if kind.kind in _NUMBERS:
            out += struct.pack(_NUMBERS[kind.kind], value)
        elif kind.kind == "uuid":
            out += (ZERO_UUID if value is None else _uuid(value)).bytes
        elif kind.kind == "array":
            self._array(out, kind, value)
        else:
            data = None if value is None else _bytes(kind.kind, value)
            self._length(out, None if data is None else len(data), wide=kind.kind != "string")
            out += data or b""

    def _array(self, out: bytearray, kind: FieldType, value: Any) -> None:
        self._length(out, None if value is None else len(value), wide=True)
        assert kind.element is not None
        for each in value or ():
            if kind.element.struct is not None:
                self.struct(out, kind.element.struct, each)
            else:
                self._value(out, kind.element, each)

    def _length(self, out: bytearray, length: int | None, *, wide: bool) -> None:
        if self._flexible:
            _varint(out, 0 if length is None else length + 1)
        else:
            out += struct.pack(">i" if wide else ">h", -1 if length is None else length)


def _bytes(kind: str, value: Any) -> bytes:
    if isinstance(value, dict):
        return _made(value)
    return value.encode() if kind == "string" else b64decode(value)


def _made(value: Mapping[str, Any]) -> bytes:
    """What an object in place of bytes describes."""
    if BATCH in value:
        rows = [record(each, b"k", THEN + place) for place, each in enumerate((b"a", b"b"))]
        return changed(build_batch(rows, magic=2), **value[BATCH])
    kind, fields = (
        (ConsumerProtocolSubscription, value[SUBSCRIPTION])
        if SUBSCRIPTION in value
        else (ConsumerProtocolAssignment, value[ASSIGNMENT])
    )
    version = value.get("version", 0)
    out = bytearray(struct.pack(">h", version))
    _Encoder(version, flexible=False).struct(out, schema_of(kind).root, fields)
    return bytes(out)


def _uuid(text: str) -> uuid.UUID:
    return uuid.UUID(bytes=urlsafe_b64decode(text + "=="))


def _varint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
