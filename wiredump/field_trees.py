"""Find fields of one type in a message's JSON, by its plan: the search costs as much as there are
such fields, not as much as the message is large."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from kproto.codec.json_text import is_error_code
from kproto.codec.message import Message
from kproto.codec.registry import plan_of
from kproto.codegen.plan import FieldPlan, StructPlan
from kproto.schema.model import Field, Struct

__all__ = [
    "FieldTree", "base64_size", "bytes_fields", "changed", "error_code_fields", "records_fields",
    "tree_of",
]  # fmt: skip


class FieldTree(NamedTuple):
    """``own`` are a struct's own fields by JSON name, with what they are, or ``""`` where all are
    the same; ``inner`` the structs with such fields further inside: name, whether it is an array,
    and their own tree."""

    own: Mapping[str, str]
    inner: tuple[tuple[str, bool, FieldTree], ...]

    def __bool__(self) -> bool:
        return bool(self.own or self.inner)


@lru_cache(maxsize=1024)
def error_code_fields(cls: type[Message], version: int) -> FieldTree:
    return tree_of(plan_of(cls, version).root, _having(is_error_code))


@lru_cache(maxsize=1024)
def bytes_fields(cls: type[Message], version: int) -> FieldTree:
    """Return the tree of fields of bytes and records, and of arrays of them."""
    return tree_of(
        plan_of(cls, version).root, _having(lambda item: "bytes" in (item.kind, item.element_kind))
    )


@lru_cache(maxsize=1024)
def records_fields(cls: type[Message], version: int) -> FieldTree:
    return tree_of(plan_of(cls, version).root, _having(lambda item: item.is_records))


def changed(value: Any, tree: FieldTree, change: Callable[[str, str, Any], tuple[str, Any]]) -> Any:
    """Return a message's JSON, which may be partial, with each field of ``tree`` renamed and
    changed by ``change``, which takes its name, what it is, and its value. The order of fields does
    not change. Null fields are kept, as are values of another type than the schema's, which only a
    log can have."""
    if not tree or not isinstance(value, dict):
        return value
    inside = {name: inner for name, _, inner in tree.inner}
    out: dict[str, Any] = {}
    for name, held in value.items():
        if held is not None and name in tree.own:
            new_name, new = change(name, tree.own[name], held)
            out[new_name] = new
        elif name not in inside:
            out[name] = held
        elif isinstance(held, list):
            out[name] = [changed(each, inside[name], change) for each in held]
        else:
            out[name] = changed(held, inside[name], change)
    return out


def base64_size(text: str) -> int:
    """Return how many bytes a base64 text encodes."""
    return len(text) * 3 // 4 - text[-2:].count("=")


def _having(wanted: Callable[[FieldPlan], bool]) -> Callable[[FieldPlan, Field | None], str | None]:
    return lambda item, _: "" if wanted(item) else None


def tree_of(
    plan: StructPlan, sort: Callable[[FieldPlan, Field | None], str | None],
    struct: Struct | None = None,
) -> FieldTree:  # fmt: skip
    """Return the tree of the fields of which ``sort`` returns what they are. It is given a field's
    schema, too, if ``struct`` is the schema of the message."""
    own: dict[str, str] = {}
    inner = []
    for item in plan.order:
        if item in plan.absent:
            continue
        field = struct.field(item.name) if struct is not None else None
        if item.struct is not None:
            tree = tree_of(item.struct, sort, field.type.inner_struct if field else None)
            if tree:
                inner.append((item.json_name, item.kind == "array", tree))
        elif (what := sort(item, field)) is not None:
            own[item.json_name] = what
    return FieldTree(own, tuple(inner))
