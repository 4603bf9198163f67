"""The lint rules about schemas that read well and that Kafka's own generator refuses, or makes Java
of that does not compile.

Each is a property of the text that the model does not keep: where a struct is declared, and which
properties are spelled out. (Observed with the generator of 4.3.1; ``kproto schema compare`` runs
it.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kproto.schema.check_rules import CheckedMessage, Finding
from kproto.schema.jsontext import Path, line_of
from kproto.schema.model import Field, Struct
from kproto.schema.versions import Versions

__all__ = ["GENERATOR_RULES"]

_LARGEST_INT: Final = 2**31 - 1


class _Declared(NamedTuple):
    """A field as it is written. ``in_common``: inside a common struct."""

    node: dict[str, Any]
    path: Path
    in_common: bool


def _declared(message: CheckedMessage) -> Iterator[_Declared]:
    def walk(node: dict[str, Any], path: Path, in_common: bool) -> Iterator[_Declared]:
        for index, field in enumerate(node.get("fields") or ()):
            where = (*path, "fields", index)
            yield _Declared(field, where, in_common)
            yield from walk(field, where, in_common)

    yield from walk(message.raw, (), False)
    for index, struct in enumerate(message.raw.get("commonStructs") or ()):
        yield from walk(struct, ("commonStructs", index), True)


def _finding(
    message: CheckedMessage, field: _Declared, rule: str, problem: str, remedy: str
) -> Finding:
    line = line_of(message.text, field.path)
    source = message.schema.source
    return Finding("error", rule, source, line, field.node["name"], problem, remedy)


def _places(message: CheckedMessage) -> Iterator[Finding]:
    for field in _declared(message):
        node = field.node
        if field.in_common and node.get("fields") and message.schema.valid_versions:
            yield _finding(
                message,
                field,
                "inline-in-common",
                "a common struct declares another struct",
                "move that to commonStructs, too",
            )
        if node.get("fields") and not node.get("versions"):
            yield _finding(
                message,
                field,
                "struct-versions",
                "a field that declares a struct has no versions",
                'add "versions"',
            )
        if node.get("versions") == "" and not node.get("taggedVersions"):
            yield _finding(message, field, "versions", "versions is empty", 'write "0+" or "none"')
        if node.get("entityType") == "":
            yield _finding(message, field, "entity-type", "entityType is empty", "remove it")
        if str(node.get("default", "")).startswith("0X"):
            problem = f"default {node['default']!a} is not an integer to Kafka"
            yield _finding(message, field, "default", problem, 'write "0x", in lower case')


def _message_texts(message: CheckedMessage) -> Iterator[Finding]:
    if not message.raw.get("validVersions"):
        yield message.error("valid-versions", "validVersions is empty", 'write "0" or "none"')


def _tagged_fields(message: CheckedMessage) -> Iterator[Finding]:
    for _, item in message.fields():
        if item.tag is None:
            continue
        if item.type.kind == "records":
            yield message.error(
                "tagged-records", "records cannot be tagged", "use bytes, or remove the tag", item
            )
        if item.map_key:
            yield message.error(
                "map-key", "a tagged field cannot be a map key", "remove mapKey", item
            )
        flexible = item.flexible_versions
        if flexible is not None and not flexible.covers(item.tagged_versions):
            yield message.error(
                "tagged-flexible",
                f"flexibleVersions {flexible} lacks some of taggedVersions {item.tagged_versions}",
                "remove flexibleVersions",
                item,
            )


def _reached_structs(message: CheckedMessage) -> Iterator[Finding]:
    """Kafka's generator makes a class of each declared struct for the versions in which all the
    structs around it exist, and refuses a struct that is left without one."""
    common = {struct["name"] for struct in message.raw.get("commonStructs") or ()}

    def walk(struct: Struct, within: Versions) -> Iterator[Finding]:
        for item in struct.fields:
            inner = item.type.inner_struct
            if inner is None or inner.name in common:
                continue
            versions = within.intersect(item.versions)
            if versions:
                yield from walk(inner, versions)
            else:
                yield _never(message, item, inner, within)

    schema = message.schema
    if schema.valid_versions:
        yield from walk(schema.root, schema.valid_versions)


def _never(message: CheckedMessage, item: Field, inner: Struct, within: Versions) -> Finding:
    return message.error(
        "struct-versions",
        f"struct {inner.name} exists at {item.versions}, but what contains it at {within}",
        "widen its versions, or remove it",
        item,
    )


def _not_java(message: CheckedMessage) -> Iterator[Finding]:
    for _, item in message.fields():
        if item.zero_copy and item.tag is not None:
            yield message.warning(
                "not-java",
                "Kafka's generator makes Java of a tagged zeroCopy field that does not compile",
                "remove zeroCopy",
                item,
            )
        if item.type.element is not None and item.type.element.kind == "bytes":
            yield message.warning(
                "not-java",
                "Kafka's generator makes Java of an array of bytes that does not compile",
                "hold structs with a field of bytes",
                item,
            )
        if item.type.kind == "uint32" and isinstance(item.default, int) and (
            item.default > _LARGEST_INT
        ):  # fmt: skip
            yield message.warning(
                "not-java",
                f"Kafka's generator makes Java of the default {item.default} that does not compile",
                f"choose one of at most {_LARGEST_INT}",
                item,
            )


GENERATOR_RULES: Final = (
    _places, _message_texts, _tagged_fields, _reached_structs, _not_java,
)  # fmt: skip
