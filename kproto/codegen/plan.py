"""Turn a schema and a version into a plan. Every rule of the wire format is here and nowhere else.

A plan says, for one message at one version, which fields are on the wire, in which order, with
which length encoding, which may be null, what the tagged section holds, and what happens to fields
that the version lacks. ``emit_decode`` and ``emit_encode`` turn a plan into Python text,
``codec.interpreter`` walks it, and ``codec.json_form`` takes names and defaults from it. None of
them reads a schema or compares versions.

The rules and their sources:

* lengths at flexible versions are compact (``n + 1`` as an unsigned varint, 0 for null); at other
  versions they are int16 for strings and int32 for everything else, -1 for null (KIP-482);
* a field whose ``flexible_versions`` overrides the message's keeps its own length encoding
  (the client id of a request header, KIP-511);
* a nullable struct is preceded by one byte, -1 or 1 (KIP-893), and in a tagged field by 0 or 1;
* a flexible struct ends in its tagged section; a known tagged field is written only if it differs
  from its default;
* a field that the version lacks takes its default when read; when written, it must be at its
  default or be ignorable.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kproto.errors import UnsupportedVersionError
from kproto.schema.model import FIXED_SIZES, Default, Field, FieldType, Kind, MessageSchema, Struct

__all__ = ["FORMATS", "FieldPlan", "MessagePlan", "StructPlan", "build_plan", "repeated_structs"]

FORMATS: Final[dict[str, str]] = {
    "bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "int64": "q", "float64": "d",
}  # fmt: skip
"""``struct`` format characters of the kinds that have one."""


class FieldPlan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One field at one version.

    ``kind`` is never ``records``: on the wire they are ``bytes``, and ``is_records`` marks them for
    JSON. ``element_kind`` is set for arrays. ``min_size`` is the least number of bytes that the
    value takes; for arrays ``element_min_size`` (at least 1) bounds how many elements the remaining
    bytes can hold. ``json_aliases`` are names that older releases had for the field; JSON may use
    them too.
    """

    name: str
    json_name: str
    kind: Kind
    compact: bool
    nullable: bool
    default: Default
    min_size: int
    element_kind: Kind | None = None
    element_min_size: int = 1
    struct: StructPlan | None = None
    tag: int | None = None
    ignorable: bool = False
    is_records: bool = False
    json_aliases: tuple[str, ...] = ()

    @property
    def format(self) -> str | None:
        """The ``struct`` format character of a fixed-width number; None for other kinds."""
        return FORMATS.get(self.kind)

    @property
    def markers(self) -> tuple[int, int]:
        """The bytes before a nullable struct: the one for null, and the one for a value."""
        return (0, 1) if self.tag is not None else (0xFF, 1)

    @property
    def element_format(self) -> str | None:
        return FORMATS.get(self.element_kind) if self.element_kind is not None else None


class StructPlan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One struct at one version.

    ``inline`` holds the fields in wire order, ``tagged`` the known tagged fields by ascending tag,
    and ``absent`` the fields that this version lacks. ``order`` holds all of them in schema order.
    ``foreign_names`` are the (tag, field) pairs that the schema defines at other versions only;
    reading such a tag is an error. ``exists``: whether the schema has the struct at this version.
    """

    name: str
    version: int
    flexible: bool
    inline: tuple[FieldPlan, ...]
    tagged: tuple[FieldPlan, ...]
    absent: tuple[FieldPlan, ...]
    order: tuple[FieldPlan, ...]
    min_size: int
    foreign_names: tuple[tuple[int, str], ...] = ()
    exists: bool = True

    @property
    def foreign_tags(self) -> frozenset[int]:
        return frozenset(tag for tag, _ in self.foreign_names)

    @property
    def fixed_format(self) -> str | None:
        """The ``struct`` format of an element that holds only fixed-width numbers, else None.

        The tag count at the end of a flexible struct is not part of this format.
        """
        if self.tagged or self.foreign_names or not self.inline:
            return None
        formats = [item.format for item in self.inline]
        return None if None in formats else "".join(text for text in formats if text)


class MessagePlan(msgspec.Struct, frozen=True, eq=False):
    """The plan of one message at one version. ``structs`` holds each struct plan once, children
    first and the root last."""

    message: str
    version: int
    root: StructPlan
    structs: tuple[StructPlan, ...]


def build_plan(schema: MessageSchema, version: int) -> MessagePlan:
    """Make the plan of a message at ``version``. Raises UnsupportedVersionError if the schema lacks
    it."""
    if version not in schema.valid_versions:
        raise UnsupportedVersionError(
            f"{schema.name} has no version {version!r}; its versions are {schema.valid_versions}"
        )
    builder = _Builder(schema, version)
    root = builder.struct(schema.root)
    return MessagePlan(schema.name, version, root, tuple(builder.done.values()))


def repeated_structs(root: StructPlan) -> frozenset[StructPlan]:
    """Return the structs that more than one field holds. They get a function of their own instead
    of a copy in each place."""
    seen: dict[StructPlan, int] = {}
    waiting = [root]
    while waiting:
        for item in (*(plan := waiting.pop()).inline, *plan.tagged):
            if item.struct is not None:
                seen[item.struct] = seen.get(item.struct, 0) + 1
                if seen[item.struct] == 1:
                    waiting.append(item.struct)
    return frozenset(plan for plan, count in seen.items() if count > 1)


class _Builder:
    def __init__(self, schema: MessageSchema, version: int) -> None:
        self.schema = schema
        self.version = version
        self.done: dict[str, StructPlan] = {}

    def struct(self, struct: Struct) -> StructPlan:
        if struct.name in self.done:
            return self.done[struct.name]
        inline, tagged, absent, order = [], [], [], []
        for item in struct.fields:
            planned = self.field(item)
            order.append(planned)
            if item.is_tagged(self.version):
                tagged.append(planned)
            elif item.is_inline(self.version):
                inline.append(planned)
            else:
                absent.append(planned)
        flexible = self.schema.is_flexible(self.version)
        plan = StructPlan(
            name=struct.name,
            version=self.version,
            flexible=flexible,
            inline=tuple(inline),
            tagged=tuple(sorted(tagged, key=lambda item: item.tag or 0)),
            absent=tuple(absent),
            order=tuple(order),
            min_size=sum(item.min_size for item in inline) + flexible,
            foreign_names=tuple(
                (item.tag, item.python_name)
                for item in struct.fields
                if flexible and item.tag is not None and not item.is_tagged(self.version)
            ),
            exists=self.version in struct.versions,
        )
        self.done[struct.name] = plan
        return plan

    def field(self, item: Field) -> FieldPlan:
        compact = self.schema.is_flexible(self.version, item)
        nullable = item.is_nullable(self.version)
        kind, element = item.type.kind, item.type.element
        inner = item.type.inner_struct
        # A struct that this version lacks is never walked, only set to its default.
        struct = self.struct(inner) if inner is not None else None
        return FieldPlan(
            name=item.python_name,
            json_name=_json_name(item.name),
            kind=_wire_kind(kind),
            compact=compact,
            nullable=nullable,
            default=item.default,
            min_size=_min_size(item.type, compact, nullable, struct),
            element_kind=_wire_kind(element.kind) if element is not None else None,
            element_min_size=(
                max(1, _min_size(element, compact, False, struct)) if element is not None else 1
            ),
            struct=struct,
            tag=item.tag if item.is_tagged(self.version) else None,
            ignorable=item.ignorable,
            is_records=kind == "records",
            json_aliases=tuple(_json_name(alias) for alias in item.aliases),
        )


def _json_name(name: str) -> str:
    """Return ``timeoutMs`` for ``TimeoutMs``, as Kafka's JsonConverter does."""
    return name[:1].lower() + name[1:]


def _wire_kind(kind: Kind) -> Kind:
    return "bytes" if kind == "records" else kind


def _min_size(kind: FieldType, compact: bool, nullable: bool, struct: StructPlan | None) -> int:
    if kind.kind in FIXED_SIZES:
        return FIXED_SIZES[kind.kind]
    if kind.kind == "struct":
        assert struct is not None  # the schema model gives every struct type its struct
        return 1 if nullable else struct.min_size
    if compact:
        return 1
    return 2 if kind.kind == "string" else 4
