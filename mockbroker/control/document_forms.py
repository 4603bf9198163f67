"""The two forms of the control port's OpenAPI document: 3.1, and 3.0 for generators without 3.1.

Schemas of the routes follow JSON Schema and may have null as a second type; nothing else is a
union. Both forms say that null is allowed in the way that their version knows. Members have no
``default``, which a generator would write into every request: the description says it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

__all__ = ["DOCUMENT_FORMS", "NEWEST", "OLDEST"]

Schema: TypeAlias = dict[str, Any]

NEWEST: Final = "3.1.0"
OLDEST: Final = "3.0.3"

_NULL: Final = {"type": "null"}


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
    if default is not None:
        shown = default if isinstance(default, str) else json.dumps(default)
        schema["description"] = f"{schema.get('description', '')} Default: {shown}.".lstrip()
    return schema


def _typed_enum(schema: Schema) -> Schema:
    return {"type": "string", **schema} if "enum" in schema else schema


def _map(schema: Mapping[str, Any], form: Callable[[Schema, bool], Schema]) -> Schema:
    """Every schema within this one, and then itself, in a form."""
    found, nullable = _split(schema)
    found = _typed_enum(_described_default(found))
    if "properties" in found:
        found["properties"] = {name: _map(each, form) for name, each in found["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(found.get(name), Mapping):
            found[name] = _map(found[name], form)
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


DOCUMENT_FORMS: Final[Mapping[str, Callable[[Mapping[str, Any]], Schema]]] = {
    NEWEST: lambda schema: _map(schema, _in_3_1),
    OLDEST: lambda schema: _map(schema, _in_3_0),
}
"""What makes a schema of a route one of the document, by the document's version."""
