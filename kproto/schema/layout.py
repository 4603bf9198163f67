"""The wire layout of a message at one version, as plain data to compare.

It contains what two schemas must share to write the same bytes: types in order, nullability, tags
and encoding, but no names. It is an independent, short implementation of the schema language. The
importer and ``diff`` check schemas with it; the codec does not use it.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from kproto.schema.model import Default, Field, MessageSchema, Struct

__all__ = ["FieldLayout", "Layout", "layout", "without_values"]


class FieldLayout(msgspec.Struct, frozen=True):
    """One field at one version. ``compact`` is the encoding of its length; ``members`` is set for
    structs and arrays of structs; ``default`` and ``ignorable`` do not affect the bytes."""

    type: str
    nullable: bool
    compact: bool
    tag: int | None
    default: Default
    ignorable: bool
    members: tuple[FieldLayout, ...] | None


class Layout(msgspec.Struct, frozen=True):
    """``fields`` holds the inline fields in wire order, then the tagged ones by tag."""

    flexible: bool
    fields: tuple[FieldLayout, ...]


def layout(schema: MessageSchema, version: int) -> Layout:
    """Return the layout at ``version``, which need not be valid."""
    return Layout(schema.is_flexible(version), _members(schema, schema.root, version))


def _members(schema: MessageSchema, struct: Struct, version: int) -> tuple[FieldLayout, ...]:
    inline = [item for item in struct.fields if item.is_inline(version)]
    tagged = [item for item in struct.fields if item.is_tagged(version)]
    tagged.sort(key=lambda item: item.tag or 0)
    return tuple(_field(schema, item, version) for item in (*inline, *tagged))


def _field(schema: MessageSchema, item: Field, version: int) -> FieldLayout:
    inner = item.type.inner_struct
    kind = "struct" if inner is not None else str(item.type).removeprefix("[]")
    return FieldLayout(
        type=f"[]{kind}" if item.type.kind == "array" else kind,
        nullable=item.is_nullable(version),
        compact=schema.is_flexible(version, item),
        tag=item.tag if item.is_tagged(version) else None,
        default=item.default,
        ignorable=item.ignorable,
        members=None if inner is None else _members(schema, inner, version),
    )


def without_values(found: Layout) -> Layout:
    """Return the layout without defaults and ``ignorable``, that is, only what the bytes show."""
    return Layout(found.flexible, tuple(_forget(item) for item in found.fields))


def _forget(item: FieldLayout) -> FieldLayout:
    members = None if item.members is None else tuple(_forget(each) for each in item.members)
    return replace(item, default=None, ignorable=False, members=members)
