"""``kproto show``: the layout of a message at one version, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import msgspec
from msgspec.structs import asdict
from rich import box
from rich.table import Table
from rich.text import Text

from kproto.cli.completing import message_names
from kproto.cli.console import Console
from kproto.cli.dialect_option import dialect_option, named_dialect
from kproto.cli.terminal import echo_json
from kproto.codec.message import Message
from kproto.codec.registry import plan_of, schema_of
from kproto.codegen.plan import FieldPlan, StructPlan
from kproto.dialects import Dialect
from kproto.errors import UnknownNameError
from kproto.journal import squash
from kproto.schema.model import NewStruct

__all__ = ["show_command"]


_WIDEST = 1000
"""The width used to lay out a table. Narrower terminals wrap its lines without truncating words."""


class Row(msgspec.Struct, frozen=True):
    """One field: its depth, its name and its encoding."""

    depth: int
    name: str
    type: str
    encoding: str
    nullable: bool
    tag: int | None
    default: str


@click.command("show")
@dialect_option
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
@click.argument("name", shell_complete=message_names)
@click.argument("version", type=int, required=False)
def show_command(dialect_name: str, as_json: bool, name: str, version: int | None) -> None:
    """Show the layout of a message at a version.

    NAME is a message such as MetadataRequest, or an API such as Metadata, whose request and
    response are both shown. VERSION defaults to the newest.
    """
    shown = [
        _show(cls, version, dialect_name, as_json=as_json)
        for cls in _messages(named_dialect(dialect_name), name)
    ]
    if as_json:
        echo_json(shown[0] if len(shown) == 1 else shown, indent=2)


def _messages(codec: Dialect, name: str) -> list[type[Message]]:
    """Return the message of that name, or the request and the response of an API."""
    try:
        found = codec.message(name)
    except UnknownNameError:
        for key, api in codec.apis.items():
            if name == str(key) or squash(name) == squash(api.request.MESSAGE_NAME):
                return [api.request, api.response]
        raise
    if not issubclass(found, Message):
        raise UnknownNameError(f"{name} is a struct; show its message instead")
    return [found]


def _show(
    cls: type[Message], version: int | None, dialect_name: str, *, as_json: bool
) -> dict[str, Any]:
    """Return the layout; print it as a table unless it is for JSON."""
    schema = schema_of(cls)
    if version is None:
        version = schema.valid_versions.highest
    plan = plan_of(cls, version)
    rows = list(_rows(plan.root, 0))
    facts = {
        "name": schema.name,
        "type": schema.type,
        "api_key": schema.api_key,
        "version": version,
        "valid_versions": str(schema.valid_versions),
        "flexible": plan.root.flexible,
        "dialect": dialect_name,
        "about": schema.about,
        "fields": [asdict(row) for row in rows],
    }
    if as_json:
        return facts
    key = "" if schema.api_key is None else f", api key {schema.api_key}"
    title = f"{schema.name} v{version} ({dialect_name}{key}, versions {schema.valid_versions})"
    table = Table(title=title, caption=schema.about or None, box=box.SIMPLE_HEAD)
    table.add_column("field", no_wrap=True, overflow="ignore")
    table.add_column("type", no_wrap=True)
    table.add_column("on the wire", no_wrap=True)
    table.add_column("null", no_wrap=True)
    table.add_column("default", no_wrap=True)
    for row in rows:
        indent = Text("  " * row.depth)
        table.add_row(
            indent
            + Text(row.name, style="dim italic" if row.name == "(tagged fields)" else "bold"),
            Text(row.type, style="cyan"),
            row.encoding,
            "yes" if row.nullable else "",
            row.default,
        )
    width = Console(width=_WIDEST).measure(table).maximum
    Console(width=width).print(table)
    return facts


def _rows(plan: StructPlan, depth: int) -> Iterator[Row]:
    """Return the inline fields in wire order, then the tagged section."""
    for item in plan.inline:
        yield from _field(item, depth, None)
    if plan.flexible:
        yield Row(depth, "(tagged fields)", "", "count, then tag, size, value", False, None, "")
        for item in plan.tagged:
            yield from _field(item, depth + 1, item.tag)


def _field(item: FieldPlan, depth: int, tag: int | None) -> Iterator[Row]:
    encoding = _encoding(item) + (f", in tag {tag}" if tag is not None else "")
    yield Row(depth, item.name, _type(item), encoding, item.nullable, tag, _default(item))
    if item.struct is not None:
        yield from _rows(item.struct, depth + 1)


def _type(item: FieldPlan) -> str:
    kind = "records" if item.is_records else item.kind
    if item.kind == "array":
        kind_of_element = item.struct.name if item.struct is not None else item.element_kind
        return f"[]{kind_of_element}"
    return item.struct.name if item.struct is not None else kind


def _encoding(item: FieldPlan) -> str:
    if item.kind == "array":
        return "varint count + 1" if item.compact else "int32 count"
    if item.kind == "string":
        return "varint length + 1, UTF-8" if item.compact else "int16 length, UTF-8"
    if item.kind == "bytes":
        return "varint length + 1" if item.compact else "int32 length"
    if item.kind == "struct":
        if not item.nullable:
            return "its fields"
        return "varint 0 or 1, fields" if item.tag is not None else "int8 -1 or 1, fields"
    width = item.min_size
    return f"{width} byte{'s' * (width > 1)}"


def _default(item: FieldPlan) -> str:
    if item.default is None:
        return "null"
    if item.default == ():
        return "[]"
    if isinstance(item.default, NewStruct):
        return ""
    if isinstance(item.default, bool):
        return str(item.default).lower()
    return '""' if item.default in ("", b"") else str(item.default)
