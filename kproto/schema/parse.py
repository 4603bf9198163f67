"""Build a message from its JSON: structs, fields, tags and types.

This module knows Kafka's schema language and our extensions, but neither files nor bytes.
"""

from __future__ import annotations

from typing import Any, Final, cast, get_args

from kproto.errors import SchemaError
from kproto.near_names import did_you_mean
from kproto.schema.defaults import parse_default
from kproto.schema.jsontext import Path, read_json, refuse_lone_surrogates
from kproto.schema.model import (
    FIXED_SIZES,
    Field,
    FieldType,
    Kind,
    MessageSchema,
    MessageType,
    Struct,
    python_name,
)
from kproto.schema.values import ValueReader, good_name, short
from kproto.schema.versions import MAX_VERSION, Versions

__all__ = ["MAX_NESTING", "MessageParser"]

MAX_NESTING: Final = 32
"""Nesting depth of structs; the deepest of Kafka's own is 5."""

_MESSAGE_KEYS: Final = frozenset((
    "type", "name", "apiKey", "listeners", "validVersions", "deprecatedVersions",
    "flexibleVersions", "latestVersionUnstable", "commonStructs", "fields", "about", "aliases",
))  # fmt: skip
_STRUCT_KEYS: Final = frozenset((
    "name", "versions", "deprecatedVersions", "fields", "about", "aliases",
))  # fmt: skip
_FIELD_KEYS: Final = frozenset((
    "name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "default",
    "ignorable", "mapKey", "entityType", "zeroCopy", "flexibleVersions", "fields", "about",
    "aliases", "structAliases",
))  # fmt: skip
_MESSAGE_TYPES: Final[tuple[str, ...]] = get_args(MessageType)
_PRIMITIVES: Final = frozenset((*FIXED_SIZES, "string", "bytes", "records"))
_NULLABLE: Final = frozenset(("string", "bytes", "records", "struct", "array"))


class MessageParser(ValueReader):
    """Parses one document; call ``message`` once. The errors of fields go to ``refused``, if it is
    given, and their fields are left out."""

    def __init__(
        self,
        text: str,
        source: str,
        *,
        lenient: bool,
        with_lines: bool,
        refused: list[SchemaError] | None = None,
    ) -> None:
        super().__init__(text, source, with_lines=with_lines)
        self.refused = refused
        self.lenient = lenient
        self.flexible = Versions.NONE
        self.common: dict[str, tuple[dict[str, Any], Path]] = {}
        self.made: dict[str, Struct] = {}
        self.structs: list[Struct] = []
        self.open: list[str] = []

    def message(self) -> MessageSchema:
        node = self.object(read_json(self.text, self.source), (), _MESSAGE_KEYS, "a message")
        name = self.name(node, (), "the message", capital=True)
        kind = node.get("type")
        if kind not in _MESSAGE_TYPES:
            raise self.refusal(
                f"{short(kind)} is not a message type" if kind is not None else "type is missing",
                ("type",),
                f"one of {', '.join(_MESSAGE_TYPES)}",
            )
        api_key = self.small_int(node, "apiKey", (), MAX_VERSION)
        if api_key is None and kind in ("request", "response"):
            raise self.refusal(f"a {kind} needs an api key", ("type",), 'add "apiKey"')
        valid = self.versions(node, "validVersions", (), None)
        if valid.highest == MAX_VERSION:
            raise self.refusal(
                "validVersions must end", ("validVersions",), f'write "{valid.lowest}-N"'
            )
        self.flexible = self.versions(node, "flexibleVersions", (), Versions.NONE)
        if self.flexible and self.flexible.highest != MAX_VERSION:
            raise self.refusal(
                f"flexibleVersions {self.flexible} ends",
                ("flexibleVersions",),
                f'write "{self.flexible.lowest}+"',
            )
        self.read_common(node)
        root = self.struct(name, node, (), valid)
        for struct_name in self.common:
            self.common_struct(struct_name, ("commonStructs",))
        self.structs.remove(root)
        listeners = self.list(node, "listeners", ())
        if not all(isinstance(item, str) for item in listeners):
            raise self.refusal("listeners must hold strings", ("listeners",), 'write ["broker"]')
        refuse_lone_surrogates(self.text, self.source)  # if no closer position is known
        return MessageSchema(
            name=name,
            type=cast(MessageType, kind),
            root=root,
            structs=[*self.structs, root],
            valid_versions=valid,
            flexible_versions=self.flexible,
            api_key=api_key,
            deprecated_versions=self.versions(node, "deprecatedVersions", (), Versions.NONE),
            latest_version_unstable=self.flag(node, "latestVersionUnstable", ()),
            listeners=tuple(listeners),
            aliases=self.names(node, "aliases", ()),
            about=self.text_of(node, "about", ()),
            source=self.source,
        )

    # -- structs ---------------------------------------------------------------------------

    def read_common(self, node: dict[str, Any]) -> None:
        for index, item in enumerate(self.list(node, "commonStructs", ())):
            at: Path = ("commonStructs", index)
            common = self.object(item, at, _STRUCT_KEYS, "a common struct")
            name = self.name(common, at, "a common struct", capital=True)
            if name in self.common or name == node["name"]:
                raise self.refusal(f"struct {name} is specified twice", at, "rename one")
            self.common[name] = (common, at)

    def common_struct(self, name: str, at: Path) -> Struct:
        if name in self.open:
            raise self.refusal(f"struct {name} contains itself", at, "a struct cannot be recursive")
        if name not in self.made:
            node, where = self.common[name]
            saved, self.path = self.path, [name]
            versions = self.versions(node, "versions", where, None)
            self.versions(node, "deprecatedVersions", where, Versions.NONE)
            struct = self.struct(name, node, where, versions)
            struct.aliases = self.names(node, "aliases", where)
            struct.about = self.text_of(node, "about", where)
            self.path = saved
        return self.made[name]

    def struct(self, name: str, node: dict[str, Any], at: Path, versions: Versions) -> Struct:
        """Read ``fields`` of ``node`` as the struct ``name``. The struct is listed after its
        children."""
        if len(self.open) >= MAX_NESTING:
            raise self.refusal(
                f"structs nest more than {MAX_NESTING} deep", at, "flatten the message"
            )
        self.open.append(name)
        struct = Struct(name, versions, line=self.lines.get(at))
        self.made[name] = struct
        taken: dict[str, str] = {}
        tags: dict[int, str] = {}
        for index, item in enumerate(self.list(node, "fields", at)):
            where = (*at, "fields", index)
            path, depth = list(self.path), len(self.open)
            try:
                made = self.field(item, where)
                self.path.append(made.name)
                self.check_unique(made, taken, tags, where)
                self.path.pop()
                struct.fields.append(made)
            except SchemaError as error:
                if self.refused is None:
                    raise
                self.refused.append(error)
                self.path = path
                del self.open[depth:]
        self.open.pop()
        self.structs.append(struct)
        return struct

    def check_unique(
        self, made: Field, taken: dict[str, str], tags: dict[int, str], at: Path
    ) -> None:
        if (other := taken.get(made.python_name)) is not None:
            raise self.refusal(
                f"the name collides with the field {other} before it",
                (*at, "name"),
                "rename one of the two",
            )
        taken[made.python_name] = made.name
        if made.tag is None:
            return
        if (other := tags.get(made.tag)) is not None:
            raise self.refusal(
                f"tag {made.tag} is taken by the field {other}",
                (*at, "tag"),
                f"use tag {max(tags) + 1}",
            )
        tags[made.tag] = made.name

    # -- fields ----------------------------------------------------------------------------

    def field(self, item: Any, at: Path) -> Field:
        # The name is read before anything else, so that every error can state the field.
        known = isinstance(item, dict) and isinstance(item.get("name"), str)
        if known and good_name(item["name"]):
            self.path.append(item["name"])
        node = self.object(item, at, _FIELD_KEYS, "a field")
        name = self.name(node, at, "a field", capital=False)
        tagged = self.versions(node, "taggedVersions", at, Versions.NONE)
        versions = self.versions(node, "versions", at, tagged or None)
        field_type = self.field_type(node, at, versions)
        nullable = self.versions(node, "nullableVersions", at, Versions.NONE)
        if nullable and field_type.kind not in _NULLABLE:
            raise self.refusal(
                f"a field of type {field_type} cannot be nullable",
                (*at, "nullableVersions"),
                "remove nullableVersions",
            )
        tag = self.small_int(node, "tag", at, 0x7FFFFFFF)
        self.check_tag(versions, nullable, tagged, tag, at)
        made = Field(
            name=name,
            python_name=python_name(name),
            type=field_type,
            versions=versions,
            default=None,
            nullable_versions=nullable,
            tagged_versions=tagged,
            tag=tag,
            flexible_versions=self.field_flexible(node, field_type, at),
            ignorable=self.flag(node, "ignorable", at),
            map_key=self.flag(node, "mapKey", at),
            entity_type=self.text_of(node, "entityType", at) or None,
            zero_copy=self.flag(node, "zeroCopy", at),
            about=self.text_of(node, "about", at),
            line=self.lines.get(at),
            aliases=self.names(node, "aliases", at),
        )
        try:
            made.default = parse_default(field_type.kind, node.get("default"))
        except ValueError as error:
            problem, _, remedy = str(error).partition("; ")
            raise self.refusal(problem, (*at, "default"), remedy) from None
        has_null_default = made.default is None and field_type.kind != "records"
        if has_null_default and not nullable.covers(versions):
            raise self.refusal(
                f"the default is null, but versions {versions} are nullable only at {nullable}",
                (*at, "default"),
                "make every version nullable, or choose another default",
            )
        if made.zero_copy and field_type.kind != "bytes":
            raise self.refusal(
                f"zeroCopy is for bytes, not {field_type}", (*at, "zeroCopy"), "remove zeroCopy"
            )
        self.path.pop()
        return made

    def field_flexible(
        self, node: dict[str, Any], field_type: FieldType, at: Path
    ) -> Versions | None:
        if node.get("flexibleVersions") in (None, ""):
            return None
        override = self.versions(node, "flexibleVersions", at, None)
        where = (*at, "flexibleVersions")
        if field_type.kind not in ("string", "bytes"):
            raise self.refusal(
                "only string and bytes fields may override flexibleVersions", where, "remove it"
            )
        if not self.flexible.covers(override):
            raise self.refusal(
                f"flexibleVersions {override} is outside the message's {self.flexible}",
                where,
                "a field can only be less flexible than its message",
            )
        return override

    def check_tag(
        self, versions: Versions, nullable: Versions, tagged: Versions, tag: int | None, at: Path
    ) -> None:
        if tag is None and not tagged:
            return
        where = (*at, "taggedVersions")
        if tag is None:
            raise self.refusal("taggedVersions without a tag", where, 'add "tag"')
        if not tagged:
            raise self.refusal(
                f"tag {tag} without taggedVersions", (*at, "tag"), 'add "taggedVersions"'
            )
        if not versions.covers(tagged):
            raise self.refusal(
                f"taggedVersions {tagged} is outside versions {versions}",
                where,
                "tag only versions that the field has",
            )
        if not self.flexible.covers(tagged):
            raise self.refusal(
                f"taggedVersions {tagged} is outside the message's flexibleVersions"
                f" {self.flexible}",
                where,
                "only flexible versions have tagged fields",
            )
        both = nullable.intersect(tagged)
        if both and both != tagged:
            raise self.refusal(
                f"nullable at {both} but tagged at {tagged}",
                where,
                "make every tagged version nullable, or none",
            )

    def field_type(self, node: dict[str, Any], at: Path, versions: Versions) -> FieldType:
        spelled = node.get("type")
        where = (*at, "type")
        if not isinstance(spelled, str):
            raise self.refusal("type is missing or not a string", where, 'add "type"')
        spelled = spelled.strip()
        element = spelled.removeprefix("[]")
        is_array = element != spelled
        if self.lenient and element == "boolean":
            element = "bool"
        if element.startswith("[]"):
            raise self.refusal(
                "an array cannot hold arrays", where, "hold structs that contain an array"
            )
        inner = self.inner_type(element, node, at, versions)
        if not is_array:
            return inner
        if inner.kind == "records":
            raise self.refusal("an array cannot hold records", where, "hold structs of records")
        return FieldType("array", element=inner)

    def inner_type(
        self, element: str, node: dict[str, Any], at: Path, versions: Versions
    ) -> FieldType:
        if element in _PRIMITIVES:
            if node.get("fields"):
                raise self.refusal(
                    f"a field of type {element} cannot have fields",
                    (*at, "fields"),
                    "remove them, or make the type a struct's name",
                )
            return FieldType(cast(Kind, element))
        where = (*at, "type")
        if not good_name(element) or not element[0].isupper():
            raise self.refusal(f"{short(element)} is not a type", where, _type_hint(element))
        self.check_struct_name(element, where)
        return FieldType("struct", struct=self.field_struct(element, node, at, versions))

    def field_struct(self, name: str, node: dict[str, Any], at: Path, versions: Versions) -> Struct:
        aliases = self.names(node, "structAliases", at)
        if name in self.common:
            if node.get("fields") or aliases:
                raise self.refusal(
                    f"{name} is a common struct", (*at, "fields"), "remove the fields here"
                )
            return self.common_struct(name, (*at, "type"))
        if node.get("fields") is None:
            raise self.refusal(
                f"struct {name} is not specified",
                (*at, "type"),
                "add fields here, or add it to commonStructs",
            )
        if name in self.made:
            raise self.refusal(
                f"struct {name} is specified twice",
                (*at, "type"),
                "move it to commonStructs, or rename one",
            )
        struct = self.struct(name, node, at, versions)
        struct.aliases = aliases
        return struct


_OTHER_SPELLINGS: Final = {
    "boolean": "bool", "byte": "int8", "short": "int16", "int": "int32", "integer": "int32",
    "long": "int64", "double": "float64", "float": "float64", "str": "string", "uint8": "uint16",
    "varint": "int32", "uint64": "int64", "array": "[]T",
}  # fmt: skip


def _type_hint(word: str) -> str:
    if (spelled := _OTHER_SPELLINGS.get(word.lower())) is not None:
        lenient = ", or read it with --lenient" if word == "boolean" else ""
        return f"did you mean {spelled}?{lenient}"
    return did_you_mean(word, sorted(_PRIMITIVES), most=1) or (
        f"one of {', '.join(sorted(_PRIMITIVES))}, [] of one, or a struct's capitalised name"
    )
