"""The model of a message schema, as plain data. It knows neither bytes nor files.

``load`` makes it from JSON; ``codegen.plan``, ``reference``, ``check`` and ``diff`` read it. The
terms are those of Kafka's message definitions: valid versions, flexible versions (KIP-482), tagged
fields, nullable versions, ignorable, map key, entity type.
"""

from __future__ import annotations

import keyword
import uuid
from typing import Final, Literal, TypeAlias

import msgspec

from kproto.schema.versions import Versions

__all__ = [
    "FIXED_SIZES",
    "ZERO_UUID",
    "Default",
    "Field",
    "FieldType",
    "Kind",
    "MessageSchema",
    "MessageType",
    "NewStruct",
    "Struct",
    "python_name",
]

Kind: TypeAlias = Literal[
    "bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64",
    "uuid", "string", "bytes", "records", "struct", "array",
]  # fmt: skip

FIXED_SIZES: Final[dict[str, int]] = {
    "bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
    "int64": 8, "float64": 8, "uuid": 16,
}  # fmt: skip
"""Size in bytes of the kinds that have the same width in every version."""

MessageType: TypeAlias = Literal[
    "request", "response", "header", "data", "metadata", "coordinator-key", "coordinator-value"
]

ZERO_UUID: Final = uuid.UUID(int=0)


class NewStruct:
    """The default of a struct field that is not null: an instance with all its own defaults."""

    _instance: NewStruct | None = None

    def __new__(cls) -> NewStruct:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "NewStruct()"


Default: TypeAlias = bool | int | float | str | bytes | uuid.UUID | tuple[()] | NewStruct | None
"""``()`` is the empty array and ``None`` is null. ``bytes`` and ``records`` default to b"" or
None."""


class FieldType(msgspec.Struct, frozen=True):
    """``element`` is set for arrays and ``struct`` for structs. Arrays do not nest."""

    kind: Kind
    element: FieldType | None = None
    struct: Struct | None = None

    @property
    def inner_struct(self) -> Struct | None:
        """The struct of this type, directly or as array element."""
        return self.element.struct if self.element is not None else self.struct

    def __str__(self) -> str:
        if self.element is not None:
            return f"[]{self.element}"
        return self.struct.name if self.struct is not None else self.kind


class Field(msgspec.Struct, eq=False):
    """One field of a struct, for all versions.

    ``name`` is the schema's name (``IsrReplicas``); ``python_name`` is the snake-case name that
    Kafka's own generator would use (``isr_replicas``). A field is *present* at ``versions``. If
    ``tagged_versions`` also contains the version, the field is in the tagged section under ``tag``.
    ``flexible_versions`` overrides the message's for this field only (the client id of a request
    header); None means no override.
    """

    name: str
    python_name: str
    type: FieldType
    versions: Versions
    default: Default
    nullable_versions: Versions = Versions.NONE
    tagged_versions: Versions = Versions.NONE
    tag: int | None = None
    flexible_versions: Versions | None = None
    ignorable: bool = False
    map_key: bool = False
    entity_type: str | None = None
    zero_copy: bool = False
    about: str = ""
    line: int | None = None
    aliases: tuple[str, ...] = ()

    def is_tagged(self, version: int) -> bool:
        return self.tag is not None and version in self.versions.intersect(self.tagged_versions)

    def is_inline(self, version: int) -> bool:
        """Whether the field is present and outside the tagged section at ``version``."""
        return version in self.versions and not self.is_tagged(version)

    def is_nullable(self, version: int) -> bool:
        return version in self.nullable_versions


class Struct(msgspec.Struct, eq=False):
    """A named sequence of fields, in wire order."""

    name: str
    versions: Versions
    fields: list[Field] = msgspec.field(default_factory=list)
    about: str = ""
    line: int | None = None
    aliases: tuple[str, ...] = ()

    def field(self, name: str) -> Field:
        """Return the field with that schema name or Python name. Raises KeyError if there is
        none."""
        for candidate in self.fields:
            if name in (candidate.name, candidate.python_name, *candidate.aliases):
                return candidate
        raise KeyError(name)


class MessageSchema(msgspec.Struct, eq=False):
    """One message, for all its versions. ``structs`` contains every struct once, children first and
    the root last."""

    name: str
    type: MessageType
    root: Struct
    structs: list[Struct]
    valid_versions: Versions
    flexible_versions: Versions
    api_key: int | None = None
    deprecated_versions: Versions = Versions.NONE
    latest_version_unstable: bool = False
    listeners: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    about: str = ""
    source: str = ""

    def is_flexible(self, version: int, item: Field | None = None) -> bool:
        """Whether lengths are compact at ``version``, for ``item`` if it overrides the message's
        setting."""
        if item is not None and item.flexible_versions is not None:
            return version in item.flexible_versions
        return version in self.flexible_versions

    def struct(self, name: str) -> Struct:
        for candidate in self.structs:
            if candidate.name == name:
                return candidate
        raise KeyError(name)


_RESERVED: Final = frozenset({
    "decode", "decode_from", "encode", "encode_parts", "from_json", "to_json", "to_json_value",
    "unknown_tags", "validate",
})  # fmt: skip


def python_name(name: str) -> str:
    """Return the snake-case name exactly as Kafka's generator makes it: ``isKRaftController``
    becomes ``is_kraft_controller``. A trailing underscore avoids Python's keywords and the names
    that every message class has."""
    out: list[str] = []
    previous_upper = True
    for char in name:
        if char.isupper():
            if not previous_upper:
                out.append("_")
            out.append(char.lower())
            previous_upper = True
        else:
            out.append(char)
            previous_upper = False
    snake = "".join(out)
    return snake + "_" if keyword.iskeyword(snake) or snake in _RESERVED else snake
