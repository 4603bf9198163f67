"""The text of the dissector: the messages of dialects as Lua tables, followed by ``dissector.lua``.

A field's filter name is ``kproto.`` and its name in snake case, in whichever message it stands, so
that ``kproto.error_code != 0`` finds the errors of all of them. Wireshark requires one type per
filter name. Where messages disagree, the type of most fields has the plain name, and the others
append theirs: ``kproto.epoch`` and ``kproto.epoch_int64``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from importlib import resources
from typing import Final

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.dialects import Dialect
from kproto.error_codes import ErrorCode
from kproto.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kproto.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kproto.messages.request_header import RequestHeader
from kproto.messages.response_header import ResponseHeader
from kproto.schema.model import Field, FieldType, MessageSchema, Struct
from kproto.schema.versions import Versions

__all__ = ["Filters", "dissector", "filter_names"]

RELEASED: Final = "kafka"
Filters = dict[tuple[str, str], str]
"""Filter names by a field's name in snake case and the type of its values."""

HEADERS: Final[dict[str, type[Message]]] = {"request": RequestHeader, "response": ResponseHeader}

_SUBSCRIPTION, _ASSIGNMENT = ConsumerProtocolSubscription, ConsumerProtocolAssignment
EMBEDDED: Final[dict[str, type[Message]]] = {
    "JoinGroup Metadata": _SUBSCRIPTION,
    "DescribeGroups MemberMetadata": _SUBSCRIPTION,
    "SyncGroup Assignment": _ASSIGNMENT,
    "DescribeGroups MemberAssignment": _ASSIGNMENT,
}
"""The fields of bytes with a message that consumers send one another, behind its version. Other
kinds of classic groups have other bytes there. The groups of newer protocols have structs."""


def dissector(released: Dialect, drafts: Iterable[Dialect] = ()) -> str:
    """Return the Lua script. ``released`` decodes what the draft chosen in Wireshark's preferences
    lacks; of each draft only the messages that differ are written."""
    tables = _tables(released, drafts)
    headers = {name: schema_of(cls) for name, cls in HEADERS.items()}
    filters = _filters(tables)
    kinds = (f"{name} = {_quoted(kind)}" for (_, kind), name in filters.items())
    errors = (f"[{code.value}] = {_quoted(code.name)}" for code in ErrorCode)
    lines = [
        "-- Made by `kproto schema wireshark`; make it again instead of editing it.",
        f"local ERRORS = {{{', '.join(errors)}}}",
        f"local FILTERS = {{{', '.join(kinds)}}}",
        "local HEADERS = {}",
        *(f"HEADERS.{name} = {_message(schema, filters)}" for name, schema in headers.items()),
        "local EMBEDDED = {}",
        *(
            f"EMBEDDED[{_quoted(place)}] = {_message(schema_of(cls), filters)}"
            for place, cls in EMBEDDED.items()
        ),
        "local DIALECTS = {}",
    ]
    for name, found in tables.items():
        lines.append(f"DIALECTS[{_quoted(name)}] = {{}}")
        lines += (
            f"DIALECTS[{_quoted(name)}][{_quoted(place)}] = {_message(schema, filters)}"
            for place, schema in found.items()
        )
    runtime = resources.files(__package__).joinpath("dissector.lua").read_text(encoding="utf-8")
    return "\n".join(lines) + "\n\n" + runtime


def filter_names(released: Dialect, drafts: Iterable[Dialect] = ()) -> Filters:
    """Return the filter names that ``dissector`` gives, without ``kproto.``."""
    return _filters(_tables(released, drafts))


def _tables(released: Dialect, drafts: Iterable[Dialect]) -> dict[str, dict[str, MessageSchema]]:
    base = _schemas(released)
    tables = {RELEASED: base}
    for draft in drafts:
        own = _schemas(draft)
        tables[draft.name] = {
            place: schema for place, schema in own.items() if schema is not base.get(place)
        }
    return tables


def _schemas(dialect: Dialect) -> dict[str, MessageSchema]:
    """The schemas of requests and responses, by direction and api key."""
    return {
        f"{direction} {key}": schema_of(cls)
        for key, api in dialect.apis.items()
        for direction, cls in (("request", api.request), ("response", api.response))
    }


def _filters(tables: dict[str, dict[str, MessageSchema]]) -> Filters:
    types: defaultdict[str, Counter[str]] = defaultdict(Counter)
    headers = map(schema_of, (*HEADERS.values(), *dict.fromkeys(EMBEDDED.values())))
    for schema in (*headers, *(each for found in tables.values() for each in found.values())):
        for struct in schema.structs:
            for field in struct.fields:
                if (kind := _value_kind(field.type)) is not None:
                    types[_plain_name(field)][kind] += 1
    return {
        (name, kind): name if index == 0 else f"{name}_{kind}"
        for name, kinds in sorted(types.items())
        for index, kind in enumerate(sorted(kinds, key=lambda kind: (-kinds[kind], kind)))
    }


def _plain_name(field: Field) -> str:
    return field.python_name.removesuffix("_")


def _value_kind(type_: FieldType) -> str | None:
    """The kind of a field's values or of its elements; None for structs."""
    inner = type_.element or type_
    return None if inner.struct is not None else inner.kind


def _message(schema: MessageSchema, filters: Filters) -> str:
    name = schema.name.removesuffix("Request").removesuffix("Response")
    valid = schema.valid_versions
    parts = [f"name = {_quoted(name)}", f"versions = {_range(valid)}"]
    if flexible := schema.flexible_versions.intersect(valid):
        parts.append(f"flexible = {_range(flexible)}")
    return _table([*parts, _fields(schema.root, valid, filters)])


def _fields(struct: Struct, valid: Versions, filters: Filters) -> str:
    inside = (field for field in struct.fields if field.versions.intersect(valid))
    return f"fields = {_table(_field(field, valid, filters) for field in inside)}"


def _field(field: Field, valid: Versions, filters: Filters) -> str:
    parts = [f"name = {_quoted(field.name)}", f"type = {_quoted(field.type.kind)}"]
    kind = _value_kind(field.type)
    if kind is not None:
        parts.append(f"filter = {_quoted(filters[_plain_name(field), kind])}")
        if field.type.element is not None:
            parts.append(f"element = {_quoted(kind)}")
    parts += (
        f"{label} = {_range(versions.intersect(valid))}"
        for label, versions in (
            ("versions", field.versions),
            ("nullable", field.nullable_versions),
            ("tagged", field.tagged_versions),
        )
        if versions.intersect(valid)
    )
    if field.tag is not None:
        parts.append(f"tag = {field.tag}")
    if field.flexible_versions is not None:
        parts.append(f"flexible = {_range(field.flexible_versions)}")
    if (inner := field.type.inner_struct) is not None:
        parts.append(_fields(inner, valid, filters))
    return _table(parts)


def _table(parts: Iterable[str]) -> str:
    return "{" + ", ".join(parts) + "}"


def _range(versions: Versions) -> str:
    return f"{{{versions.lowest}, {versions.highest}}}"


def _quoted(text: str) -> str:
    """Return a string of Lua, in ASCII: the name of a draft is that of its folder."""
    return '"{}"'.format(
        "".join(
            chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03}"
            for byte in text.encode(errors="surrogateescape")
        )
    )
