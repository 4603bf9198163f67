"""Write a schema as JSON with one field per line. Equal schemas give equal text.

The inverse of ``load``: loading the text gives an equal schema. Only facts that the wire or a user
of the message needs are written. The only prose is our own ``about``.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from kproto.safe_text import json_text
from kproto.schema.defaults import spell_default
from kproto.schema.model import Field, MessageSchema, Struct

__all__ = ["schema_text"]


def schema_text(schema: MessageSchema) -> str:
    """Return the text of the file, which ends in a newline."""
    common_names = _common_names(schema)
    common = [item for item in schema.structs[:-1] if item.name in common_names]
    head: dict[str, Any] = {
        "apiKey": schema.api_key,
        "type": schema.type,
        "name": schema.name,
        "aliases": list(schema.aliases),
        "about": schema.about,
        "listeners": list(schema.listeners),
        "latestVersionUnstable": schema.latest_version_unstable,
        "validVersions": str(schema.valid_versions),
        "deprecatedVersions": str(schema.deprecated_versions) if schema.deprecated_versions else "",
        "flexibleVersions": str(schema.flexible_versions),
    }
    parts = [f"  {_pair(key, value)}" for key, value in head.items() if _said(value)]
    if common:
        blocks = [_common(item, common_names) for item in common]
        parts.append('  "commonStructs": [\n' + ",\n".join(blocks) + "\n  ]")
    parts.append('  "fields": ' + _fields(schema.root, common_names, "  "))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _common_names(schema: MessageSchema) -> set[str]:
    """Structs that no field or several fields contain, and those inside them: Kafka's generator
    finds no struct that a common one declares."""
    inner = {
        struct.name: [each.name for item in struct.fields if (each := item.type.inner_struct)]
        for struct in schema.structs
    }
    uses = Counter(name for names in inner.values() for name in names)
    common: set[str] = set()
    for struct in reversed(schema.structs[:-1]):  # containing ones before those inside them
        if uses[struct.name] != 1 or struct.name in common:
            common |= {struct.name, *inner[struct.name]}
    return common


def _said(value: Any) -> bool:
    return value is not None and value is not False and value not in ("", [])


def _pair(key: str, value: Any) -> str:
    return f"{json.dumps(key)}: {json_text(value)}"


def _common(struct: Struct, common: set[str]) -> str:
    head = {"name": struct.name, "versions": str(struct.versions)}
    extra = {"aliases": list(struct.aliases), "about": struct.about}
    parts = [_pair(key, value) for key, value in {**head, **extra}.items() if _said(value)]
    return "    {" + ", ".join(parts) + ', "fields": ' + _fields(struct, common, "    ") + "}"


def _fields(struct: Struct, common: set[str], indent: str) -> str:
    if not struct.fields:
        return "[]"
    rows = [f"{indent}  {_field(item, common, indent + '  ')}" for item in struct.fields]
    return "[\n" + ",\n".join(rows) + f"\n{indent}]"


def _field(item: Field, common: set[str], indent: str) -> str:
    inner = item.type.inner_struct
    own_struct = inner if inner is not None and inner.name not in common else None
    values: dict[str, Any] = {
        "name": item.name,
        "type": str(item.type),
        "versions": str(item.versions),
        "nullableVersions": str(item.nullable_versions) if item.nullable_versions else "",
        "taggedVersions": str(item.tagged_versions) if item.tagged_versions else "",
        "tag": item.tag,
        "default": spell_default(item.type.kind, item.default),
        "ignorable": item.ignorable,
        "mapKey": item.map_key,
        "entityType": item.entity_type,
        "zeroCopy": item.zero_copy,
        "flexibleVersions": str(item.flexible_versions)
        if item.flexible_versions is not None
        else None,
        "aliases": list(item.aliases),
        "structAliases": list(own_struct.aliases) if own_struct is not None else [],
        "about": item.about,
    }
    parts = [_pair(key, value) for key, value in values.items() if _said(value)]
    if own_struct is not None:
        parts.append('"fields": ' + _fields(own_struct, common, indent))
    return "{" + ", ".join(parts) + "}"
