"""The two forms of the control port's OpenAPI document: 3.1, and 3.0 for generators without 3.1.

Schemas of the routes follow JSON Schema and may have null as a second type; nothing else is a
union. Both forms say that null is allowed in the way that their version knows. Members have no
``default``, which a generator would write into every request: the description says it. Integers
that may not fit 32 bits have the format int64, without which generators for Java or C# take 32.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

__all__ = ["DOCUMENT_FORMS", "NEWEST", "OLDEST", "DocumentForm"]

Schema: TypeAlias = dict[str, Any]

NEWEST: Final = "3.1.0"
OLDEST: Final = "3.0.3"

_NULL: Final = {"type": "null"}
_INT32_MAX: Final = 2**31 - 1
_OF_64_BITS: Final = frozenset(
    {"offset", "watermark", "lag", "ms", "ns", "timestamp", "bytes", "size", "sequence", "number",
     "first", "last", "after", "since", "next", "from", "dropped", "producer_id", "seed",
     "batches", "segments", "aborted", "producers"}
)  # fmt: skip
"""Members, by name or last word, whose integers have 64 bits: offsets, times, sizes, the numbers of
entries."""


def _split(schema: Mapping[str, Any]) -> tuple[Schema, bool]:
    """The schema without null as an alternative, and whether it has that."""
    found = dict(schema)
    kinds = found.get("type")
    if isinstance(kinds, list):
        (found["type"],) = (each for each in kinds if each != "null")
        return found, True
    choices = found.get("oneOf", ())
    if _NULL in choices:
        (other,) = (each for each in found.pop("oneOf") if each != _NULL)
        return {**other, **found}, True
    return found, False


def _described_default(schema: Schema) -> Schema:
    default = schema.pop("default", None)
    if default not in (None, ""):
        shown = default if isinstance(default, str) else json.dumps(default)
        schema["description"] = f"{schema.get('description', '')} Default: {shown}.".lstrip()
    return schema


def _typed_enum(schema: Schema) -> Schema:
    return {"type": "string", **schema} if "enum" in schema else schema


def _with_width(schema: Schema, member: str) -> Schema:
    wide = not _OF_64_BITS.isdisjoint((member, member.rpartition("_")[2]))
    if schema.get("type") == "integer" and (wide or schema.get("maximum", 0) > _INT32_MAX):
        return {**schema, "format": "int64"}
    return schema


def _map(schema: Mapping[str, Any], form: Callable[[Schema, bool], Schema], member: str) -> Schema:
    """Every schema within this one, and then itself, in a form. ``member`` has the schema, or a
    list or a map of it."""
    found, nullable = _split(schema)
    found = _with_width(_typed_enum(_described_default(found)), member)
    if "properties" in found:
        found["properties"] = {
            name: _map(each, form, name) for name, each in found["properties"].items()
        }
    for name in ("items", "additionalProperties"):
        if isinstance(found.get(name), Mapping):
            found[name] = _map(found[name], form, member)
    return form(found, nullable)


def _in_3_1(schema: Schema, nullable: bool) -> Schema:
    if not nullable:
        return schema
    text = {"description": schema.pop("description")} if "description" in schema else {}
    return {**text, "oneOf": [schema, _NULL]}


def _in_3_0(schema: Schema, nullable: bool) -> Schema:
    if "examples" in schema:
        schema["example"] = schema.pop("examples")[0]
    if "contentEncoding" in schema:
        schema["format"] = "byte"
        del schema["contentEncoding"]
    if "$ref" in schema and (nullable or len(schema) > 1):
        # Up to 3.0 nothing may stand beside a reference.
        schema["allOf"] = [{"$ref": schema.pop("$ref")}]
    return {**schema, "nullable": True} if nullable else schema


DocumentForm: TypeAlias = Callable[[Mapping[str, Any], str], Schema]
"""Makes a schema of a route one of the document, given the member or the parameter that has it."""

DOCUMENT_FORMS: Final[Mapping[str, DocumentForm]] = {
    NEWEST: lambda schema, member: _map(schema, _in_3_1, member),
    OLDEST: lambda schema, member: _map(schema, _in_3_0, member),
}
"""The forms by the document's version."""
