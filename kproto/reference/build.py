"""Build constructs from the schema model: the encoding of each field at one version."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import construct

from kproto.reference.composites import (
    CountedArray,
    KnownTag,
    LocatedField,
    Message,
    NullableStruct,
    TaggedSection,
)
from kproto.reference.scalars import Blob, Fixed, Length, Text, camel_case
from kproto.schema.model import FIXED_SIZES, Field, FieldType, MessageSchema, Struct

__all__ = ["construct_for"]


@lru_cache(maxsize=4096)
def construct_for(schema: MessageSchema, version: int) -> Any:
    """Return the construct of the message's body at a version, which must be valid."""
    return _Builder(schema, version).struct(schema.root, schema.name)


class _Builder:
    def __init__(self, schema: MessageSchema, version: int) -> None:
        self.schema = schema
        self.version = version
        self.flexible = schema.is_flexible(version)

    def struct(self, struct: Struct, label: str) -> Message:
        inline = [
            field.python_name / self.field(field, segment=field.python_name)
            for field in struct.fields
            if field.is_inline(self.version)
        ]
        if self.flexible:
            known = {
                field.tag: KnownTag(field, self.field(field, segment=""))
                for field in struct.fields
                if field.tag is not None and field.is_tagged(self.version)
            }
            elsewhere = {
                field.tag: field.python_name
                for field in struct.fields
                if field.tag is not None and field.tag not in known
            }
            inline.append("tagged" / TaggedSection(known, elsewhere, self.version))
        return Message(
            construct.Struct(*inline),
            struct.fields,
            self.version,
            flexible=self.flexible,
            label=label,
        )

    def field(self, field: Field, *, segment: str) -> LocatedField:
        leaf = field.type.kind not in ("struct", "array")
        return LocatedField(self.value(field), segment, str(field.type), leaf=leaf)

    def value(self, field: Field) -> Any:
        kind = field.type.kind
        label = camel_case(field.name)
        compact = self.schema.is_flexible(self.version, field)
        nullable = field.is_nullable(self.version)
        if kind == "struct":
            assert field.type.struct is not None
            body = self.struct(field.type.struct, label)
            tagged = field.is_tagged(self.version)
            return NullableStruct(body, tagged=tagged) if nullable else body
        if kind == "array":
            element = field.type.element
            assert element is not None
            count = Length("array", compact=compact, nullable=nullable, label=label)
            return CountedArray(
                count, self.element(element, compact, label), self.least(element, compact)
            )
        return _scalar(kind, compact=compact, nullable=nullable, label=label)

    def element(self, type_: FieldType, compact: bool, label: str) -> LocatedField:
        label = f"{label} element"
        if type_.struct is not None:
            return LocatedField(self.struct(type_.struct, label), "", str(type_), leaf=False)
        value = _scalar(type_.kind, compact=compact, nullable=False, label=label)
        return LocatedField(value, "", str(type_), leaf=True)

    def least(self, type_: FieldType, compact: bool) -> int:
        """Return the size in bytes of the shortest encoding of a value of this type."""
        if type_.struct is not None:
            return self.least_struct(type_.struct)
        return FIXED_SIZES.get(type_.kind) or (1 if compact else 2 if type_.kind == "string" else 4)

    def least_struct(self, struct: Struct) -> int:
        total = 1 if self.flexible else 0  # the count of tagged fields
        for field in struct.fields:
            if not field.is_inline(self.version):
                continue
            if field.type.struct is not None and field.is_nullable(self.version):
                total += 1  # only the marker
            else:
                total += self.least(field.type, self.schema.is_flexible(self.version, field))
        return total


def _scalar(kind: str, *, compact: bool, nullable: bool, label: str) -> Any:
    if kind in FIXED_SIZES:
        return Fixed(kind)
    length = Length(kind, compact=compact, nullable=nullable, label=label)
    return Text(length) if kind == "string" else Blob(length)
