"""The lint rules about one message, each a function from a message to its findings.

What Kafka's own generator refuses (FieldSpec, StructSpec, MessageSpec and the generators that use
them) is an error; what it accepts but should be avoided is a warning. Errors that the loader raises
are not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import asdict

from kproto.schema.jsontext import line_of
from kproto.schema.model import Field, MessageSchema, Struct
from kproto.schema.versions import MAX_VERSION, Versions

__all__ = ["ENTITY_TYPES", "LISTENERS", "RULES", "CheckedMessage", "Finding"]

ENTITY_TYPES: Final[dict[str, str]] = {
    "transactionalId": "string",
    "producerId": "int64",
    "groupId": "string",
    "topicName": "string",
    "brokerId": "int32",
}
"""The allowed values of ``entityType``, and the type of the field (or array element) each
requires."""

LISTENERS: Final = ("broker", "controller")


class Finding(msgspec.Struct, frozen=True):
    """A problem in a schema. ``rule`` is a stable name to search for or to filter by."""

    severity: Literal["error", "warning"]
    rule: str
    source: str
    line: int | None
    field: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        where = self.source if self.line is None else f"{self.source}:{self.line}"
        parts = [where, self.severity, *([self.field] if self.field else []), self.problem]
        return ": ".join(parts) + f" ({self.remedy}) [{self.rule}]"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class CheckedMessage(msgspec.Struct, frozen=True):
    """A loaded message with facts that only its text contains."""

    schema: MessageSchema
    text: str
    raw: dict[str, Any]

    def error(self, rule: str, problem: str, remedy: str, at: Field | str = "") -> Finding:
        return self.finding("error", rule, problem, remedy, at)

    def warning(self, rule: str, problem: str, remedy: str, at: Field | str = "") -> Finding:
        return self.finding("warning", rule, problem, remedy, at)

    def finding(
        self,
        severity: Literal["error", "warning"],
        rule: str,
        problem: str,
        remedy: str,
        at: Field | str,
    ) -> Finding:
        """``at`` is a field, or a property of the message itself."""
        if isinstance(at, Field):
            line, field = at.line, at.name
        else:
            line, field = line_of(self.text, (at,) if at else ()), ""
        return Finding(severity, rule, self.schema.source, line, field, problem, remedy)

    def fields(self) -> Iterator[tuple[Struct, Field]]:
        for struct in self.schema.structs:
            for item in struct.fields:
                yield struct, item


def _flexible_versions(message: CheckedMessage) -> Iterator[Finding]:
    schema = message.schema
    if not message.raw.get("flexibleVersions") and schema.valid_versions:
        yield message.error(
            "flexible-versions",
            "flexibleVersions is missing",
            'a new message says "0+", one without flexible versions "none"',
        )


def _requests_only(message: CheckedMessage) -> Iterator[Finding]:
    schema = message.schema
    for name, given in (
        ("listeners", bool(schema.listeners)),
        ("latestVersionUnstable", schema.latest_version_unstable),
    ):
        if given and schema.type != "request":
            yield message.error(
                "request-only", f"{name} on a {schema.type}", "only requests have it", name
            )
    for listener in schema.listeners:
        if listener == "zkBroker":
            yield message.warning(
                "listeners",
                "zkBroker is a listener until Kafka 3.9 only",
                "remove it from a new message",
                "listeners",
            )
        elif listener not in LISTENERS:
            yield message.error(
                "listeners",
                f"{listener!a} is not a listener",
                f"one of {', '.join(LISTENERS)}",
                "listeners",
            )


def _name_ends(message: CheckedMessage) -> Iterator[Finding]:
    expected = {
        "request": "Request",
        "response": "Response",
        "coordinator-key": "Key",
        "coordinator-value": "Value",
    }
    schema = message.schema
    ending = expected.get(schema.type)
    if ending is not None and not schema.name.endswith(ending):
        yield message.error(
            "name", f"a {schema.type} is called {schema.name}", f"end it in {ending}", "name"
        )
    if schema.type == "metadata" and not schema.name.endswith("Record"):
        yield message.warning(
            "name", f"a metadata record is called {schema.name}", "end it in Record", "name"
        )


def _coordinator(message: CheckedMessage) -> Iterator[Finding]:
    schema = message.schema
    if schema.type in ("coordinator-key", "coordinator-value", "metadata") and (
        schema.api_key is None
    ):
        yield message.error("api-key", f"a {schema.type} needs an api key", 'add "apiKey"')
    if schema.type != "coordinator-key":
        return
    if schema.valid_versions != Versions(0, 0):
        yield message.error(
            "coordinator-key",
            f"a coordinator-key has versions {schema.valid_versions}",
            'its only version is "0"; the api key distinguishes keys',
            "validVersions",
        )
    if schema.flexible_versions:
        yield message.error(
            "coordinator-key",
            "a coordinator-key is flexible",
            'write "flexibleVersions": "none"',
            "flexibleVersions",
        )


def _message_ranges(message: CheckedMessage) -> Iterator[Finding]:
    schema = message.schema
    if not schema.valid_versions.covers(schema.deprecated_versions):
        yield message.error(
            "deprecated-versions",
            f"deprecatedVersions {schema.deprecated_versions} is outside {schema.valid_versions}",
            "deprecate only valid versions",
            "deprecatedVersions",
        )


def _tags(message: CheckedMessage) -> Iterator[Finding]:
    for struct in message.schema.structs:
        tagged = [item for item in struct.fields if item.tag is not None]
        tags = {item.tag for item in tagged}
        for item in tagged:
            missing = next(number for number in range(len(tags) + 1) if number not in tags)
            if item.tag is not None and item.tag > missing:
                yield message.error(
                    "tag-gap",
                    f"tag {item.tag} of {struct.name} leaves out tag {missing}",
                    f"use {missing} first",
                    item,
                )
            if item.tagged_versions.highest != MAX_VERSION:
                yield message.error(
                    "tagged-versions-end",
                    f"taggedVersions {item.tagged_versions} ends",
                    f'write "{item.tagged_versions.lowest}+"; a tag must stay reserved',
                    item,
                )


def _map_keys(message: CheckedMessage) -> Iterator[Finding]:
    keyed = {
        id(struct)
        for struct in message.schema.structs
        if any(item.map_key for item in struct.fields)
    }
    for struct, item in message.fields():
        if item.map_key and struct is message.schema.root:
            yield message.error(
                "map-key", "mapKey on a field of the message itself", "remove mapKey", item
            )
        if item.map_key and item.type.kind in ("array", "struct", "records"):
            yield message.warning(
                "map-key", f"a map key of type {item.type}", "choose a plain field", item
            )
        if item.type.kind == "struct" and id(item.type.struct) in keyed:
            yield message.warning(
                "map-key",
                f"{item.type} has map keys, but is not an array's element here",
                "map keys apply to arrays only",
                item,
            )


def _entity_types(message: CheckedMessage) -> Iterator[Finding]:
    for _, item in message.fields():
        if item.entity_type is None:
            continue
        expected = ENTITY_TYPES.get(item.entity_type)
        kind = str(item.type).removeprefix("[]")
        if expected is None:
            yield message.error(
                "entity-type",
                f"{item.entity_type!a} is not an entity type",
                f"one of {', '.join(ENTITY_TYPES)}",
                item,
            )
        elif expected != kind:
            yield message.error(
                "entity-type",
                f"entityType {item.entity_type} on a field of type {item.type}",
                f"the field must be {expected}",
                item,
            )


def _field_ranges(message: CheckedMessage) -> Iterator[Finding]:
    schema = message.schema
    for struct, item in message.fields():
        used = item.versions.intersect(schema.valid_versions)
        if schema.valid_versions and not used:
            yield message.warning(
                "never-present",
                f"versions {item.versions} contains none of {schema.valid_versions}",
                "remove the field, or widen its versions",
                item,
            )
        if not item.versions.covers(item.nullable_versions):
            yield message.warning(
                "nullable-outside",
                f"nullableVersions {item.nullable_versions} reaches outside versions"
                f" {item.versions}",
                f'write "{item.nullable_versions.intersect(item.versions)}"',
                item,
            )
        inner = item.type.inner_struct
        reachable = used.intersect(struct.versions)
        if inner is not None and not inner.versions.covers(reachable):
            yield message.error(
                "struct-versions",
                f"present at {reachable}, but struct {inner.name} is only defined at"
                f" {inner.versions}",
                "widen the struct's versions",
                item,
            )


def _unused_structs(message: CheckedMessage) -> Iterator[Finding]:
    used = {id(item.type.inner_struct) for _, item in message.fields()}
    for struct in message.schema.structs[:-1]:
        if id(struct) not in used:
            yield message.warning(
                "unused-struct", f"common struct {struct.name} is not used", "remove it"
            )
    for struct in message.schema.structs[:-1]:
        if not struct.fields:
            yield message.warning(
                "empty-struct", f"struct {struct.name} has no fields", "add fields, or remove it"
            )


def _field_names(message: CheckedMessage) -> Iterator[Finding]:
    for struct in message.schema.structs:
        seen: dict[str, str] = {}
        for item in struct.fields:
            folded = item.name.lower()
            if folded in seen:
                yield message.warning(
                    "name",
                    f"differs from {seen[folded]} only in case",
                    "rename one of the two",
                    item,
                )
            seen[folded] = item.name
            for alias in item.aliases:
                if any(alias in (other.name, *other.aliases) for other in struct.fields
                       if other is not item):  # fmt: skip
                    yield message.error(
                        "alias", f"alias {alias} also means another field", "remove it", item
                    )


RULES: Final[tuple[Callable[[CheckedMessage], Iterable[Finding]], ...]] = (
    _flexible_versions, _requests_only, _name_ends, _coordinator, _message_ranges, _tags,
    _map_keys, _entity_types, _field_ranges, _unused_structs, _field_names,
)  # fmt: skip
