"""Undo, for older releases, the renumbering of coordinator records' keys in Kafka 4.0.

On disk a coordinator record's key is an int16 and a body. Until 3.9 Kafka's schemas called that
int16 the *version* of a ``data`` message (``ConsumerGroupMetadataKey`` had only version 3,
``OffsetCommitKey`` 0 and 1); since 4.0 it is the *api key* of a ``coordinator-key`` message whose
only version is 0. The bytes are the same. The union follows the newer numbering, so version n of an
older key becomes version 0 of the coordinator key with api key n.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from kproto.schema.jars import SourceMessage
from kproto.schema.model import Field, FieldType, MessageSchema, Struct
from kproto.schema.versions import Versions

__all__ = ["Renumbering", "at_version_zero", "renumber_keys"]


class Renumbering(msgspec.Struct, frozen=True):
    """Version ``version`` of ``message`` in ``release`` is version 0 of ``now``."""

    release: str
    message: str
    version: int
    now: str


def renumber_keys(
    release: str,
    messages: Iterable[SourceMessage],
    keys: Mapping[tuple[str, int | None], MessageSchema],
) -> tuple[list[SourceMessage], list[Renumbering]]:
    """Replace ``data`` messages of the older numbering and leave all others unchanged.

    ``keys`` holds the coordinator keys of newer releases by artifact and api key.
    """
    names = {schema.name for schema in keys.values()}
    kept: list[SourceMessage] = []
    moved: list[Renumbering] = []
    for item in messages:
        if item.schema.type != "data" or item.schema.name not in names:
            kept.append(item)
            continue
        for version in item.schema.valid_versions:
            now = keys.get((item.artifact, version))
            if now is None:
                kept.append(item)
                break
            kept.append(SourceMessage(at_version_zero(item.schema, version, now), item.artifact))
            moved.append(Renumbering(release, item.schema.name, version, now.name))
    return kept, moved


def at_version_zero(schema: MessageSchema, version: int, now: MessageSchema) -> MessageSchema:
    """Return ``schema`` at ``version`` as version 0 of a message like ``now``."""
    zero = Versions(0, 0)
    root = _struct(schema.root, version)
    root.name = now.name
    return replace(
        schema,
        name=now.name,
        type=now.type,
        api_key=now.api_key,
        root=root,
        structs=[*_below(root), root],
        valid_versions=zero,
        flexible_versions=zero if schema.is_flexible(version) else Versions.NONE,
    )


def _struct(struct: Struct, version: int) -> Struct:
    fields = [_field(item, version) for item in struct.fields if version in item.versions]
    return replace(struct, versions=Versions(0, 0), fields=fields)


def _field(item: Field, version: int) -> Field:
    inner = item.type.inner_struct
    held = item.type
    if inner is not None:
        made = FieldType("struct", struct=_struct(inner, version))
        held = FieldType("array", element=made) if item.type.kind == "array" else made
    zero = Versions(0, 0)
    return replace(
        item,
        type=held,
        versions=zero,
        nullable_versions=zero if item.is_nullable(version) else Versions.NONE,
        tagged_versions=zero if item.is_tagged(version) else Versions.NONE,
    )


def _below(struct: Struct) -> list[Struct]:
    found: list[Struct] = []
    for item in struct.fields:
        if (inner := item.type.inner_struct) is not None:
            found += [*_below(inner), inner]
    return found
