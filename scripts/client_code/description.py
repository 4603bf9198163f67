"""What the generated parts of every language are made from: the OpenAPI document, as types, the
options of a cluster and the operations. It knows no language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mockbroker.control import OPERATIONS, ROUTES
from mockbroker.control.document_forms import OLDEST
from mockbroker.control.openapi import document
from mockbroker.control.operation_routes import operation_id

__all__ = [
    "Description",
    "Member",
    "MissingFormatterError",
    "OperationMethod",
    "Structure",
    "description",
    "words",
]


class MissingFormatterError(Exception):
    """A file cannot be written, because its language's formatter is absent."""


ROOTS: Final = (
    "Action", "Cluster", "ClusterOptions", "CommittedOffset", "Fault", "Group", "JournalEntry",
    "Records", "RemovedCluster", "Rule", "State", "Transaction", "Versions", "NewRecords",
)  # fmt: skip
"""The schemas that the clients have, with those that they refer to."""


class Member(NamedTuple):
    """``type`` is one of string, integer, long, number, boolean, any, or a name of a ``Structure``,
    as items of ``depth`` lists (``[]``) and maps (``{}``), outermost first."""

    name: str
    type: str
    depth: tuple[str, ...]
    required: bool
    nullable: bool
    text: str


class Structure(NamedTuple):
    """An object with members. ``open``: it may have others, too."""

    name: str
    text: str
    members: tuple[Member, ...]
    open: bool


class OperationMethod(NamedTuple):
    """An operation; at most its last argument is optional."""

    name: str
    words: tuple[str, ...]
    text: str
    arguments: tuple[Member, ...]


class Description(NamedTuple):
    """``options`` is the structure of the options of a cluster."""

    structures: tuple[Structure, ...]
    options: Structure
    operations: tuple[OperationMethod, ...]


def words(name: str) -> list[str]:
    """The words of ``join-isr``, ``join_isr`` or ``joinIsr``, in lower case."""
    spaced = "".join(f" {each}" if each.isupper() else each for each in name)
    return spaced.replace("-", " ").replace("_", " ").lower().split()


def description() -> Description:
    made = document(ROUTES, version=OLDEST)
    schemas = made["components"]["schemas"]
    found: dict[str, Structure] = {}
    for root in ROOTS:
        _collect(root, schemas[root], schemas, found)
    structures = tuple(found[name] for name in sorted(found))
    paths = made["paths"]
    return Description(
        structures,
        found["ClusterOptions"],
        tuple(
            OperationMethod(
                name, tuple(words(operation_id(each))), each.help,
                tuple(_members("", _body(paths, name), schemas, found)),
            )
            for name, each in OPERATIONS.items()
        ),
    )  # fmt: skip


def _body(paths: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    operation = paths[f"/clusters/{{cluster}}/{name}"]["post"]
    found: Mapping[str, Any] = operation["requestBody"]["content"]["application/json"]["schema"]
    return found


def _collect(
    name: str, schema: Mapping[str, Any], schemas: Mapping[str, Any], found: dict[str, Structure]
) -> None:
    if name in found:
        return
    found[name] = Structure(name, "", (), open=False)  # it may refer to itself
    found[name] = Structure(
        name,
        schema.get("description", ""),
        tuple(_members(name, schema, schemas, found)),
        schema.get("additionalProperties") is not False,
    )


def _members(
    owner: str, schema: Mapping[str, Any], schemas: Mapping[str, Any], found: dict[str, Structure]
) -> Iterator[Member]:
    required = schema.get("required", ())
    for name, each in schema["properties"].items():
        kind, depth = _type(owner + "".join(map(str.capitalize, words(name))), each, schemas, found)
        text = each.get("description", "")
        yield Member(name, kind, depth, name in required, each.get("nullable", False), text)


def _type(
    name: str, schema: Mapping[str, Any], schemas: Mapping[str, Any], found: dict[str, Structure]
) -> tuple[str, tuple[str, ...]]:
    """``name`` is that of a structure which has none of its own."""
    (reference,) = [*schema.get("allOf", ()), schema][:1]
    if "$ref" in reference:
        target = reference["$ref"].rpartition("/")[2]
        if "properties" not in schemas[target]:
            return _type(target, schemas[target], schemas, found)
        _collect(target, schemas[target], schemas, found)
        return target, ()
    kind = "long" if schema.get("format") == "int64" else schema.get("type", "any")
    if kind == "array":
        inner, depth = _type(name.removesuffix("s"), schema["items"], schemas, found)
        return inner, ("[]", *depth)
    if kind == "object" and "properties" in schema:
        _collect(name, schema, schemas, found)
        return name, ()
    if kind == "object":
        values = schema.get("additionalProperties")
        if not isinstance(values, Mapping):
            return "any", ("{}",)
        inner, depth = _type(name.removesuffix("s"), values, schemas, found)
        return inner, ("{}", *depth)
    return kind, ()
