"""The meaning of strings and bytes in a message's JSON, by its schema: hosts, names, records.

Kafka's schemas mark topics, groups and transactional ids (entity types). All others are known here
by field name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kproto.codec.message import Message
from kproto.codec.registry import plan_of, schema_of
from kproto.codegen.plan import FieldPlan, StructPlan
from kproto.schema.model import Field, Struct

__all__ = ["Sort", "changed", "sorts_of"]

Sort: TypeAlias = Literal["host", "topic", "group", "transaction", "client", "records", "opaque"]
"""``client``: ids of clients and of group members. ``opaque``: bytes that clients exchange with
each other, which have names (a group's subscriptions and assignments)."""

_ENTITIES: Final[dict[str, Sort]] = {
    "topicName": "topic",
    "groupId": "group",
    "transactionalId": "transaction",
}

_NAMES: Final[dict[str, Sort]] = {
    "host": "host",
    "hostName": "host",
    "clientHost": "host",
    "hostFilter": "host",
    "clientId": "client",
    "memberId": "client",
    "groupInstanceId": "client",
    "instanceId": "client",
    "leader": "client",  # a group's leader is a member id; elsewhere a leader is a number
    "metadata": "opaque",
    "memberMetadata": "opaque",
    "assignment": "opaque",
    "memberAssignment": "opaque",
}

_OPAQUE: Final = ("JoinGroup", "SyncGroup", "DescribeGroups")
"""Messages with bytes of a group's own protocol."""


class Tree(NamedTuple):
    """``own`` are a struct's fields by JSON name; ``inner`` the structs with further ones: name,
    whether it is an array, and their tree."""

    own: tuple[tuple[str, Sort], ...]
    inner: tuple[tuple[str, bool, Tree], ...]

    def __bool__(self) -> bool:
        return bool(self.own or self.inner)

    def has(self, sort: Sort) -> bool:
        """Whether there are fields of that sort."""
        return any(each == sort for _, each in self.own) or any(
            inner.has(sort) for _, _, inner in self.inner
        )


@lru_cache(maxsize=1024)
def sorts_of(cls: type[Message], version: int) -> Tree:
    """Return the tree of a message at a version. Raises UnsupportedVersionError."""
    root = plan_of(cls, version).root
    return _tree(cls.MESSAGE_NAME, root, schema_of(cls).root)


def _tree(message: str, plan: StructPlan, struct: Struct) -> Tree:
    own, inner = [], []
    for item in plan.order:
        if item in plan.absent:
            continue
        field = struct.field(item.name)
        below = field.type.inner_struct
        if item.struct is not None and below is not None:
            tree = _tree(message, item.struct, below)
            if tree:
                inner.append((item.json_name, item.kind == "array", tree))
        elif (sort := _sort(message, item, field)) is not None:
            own.append((item.json_name, sort))
    return Tree(tuple(own), tuple(inner))


def _sort(message: str, item: FieldPlan, field: Field) -> Sort | None:
    kind = item.element_kind or item.kind
    if item.is_records:
        return "records"
    named = _NAMES.get(item.json_name)
    if kind == "string":
        return _ENTITIES.get(field.entity_type or "", None if named == "opaque" else named)
    is_opaque = kind == "bytes" and named == "opaque"
    return "opaque" if is_opaque and message.startswith(_OPAQUE) else None


def changed(body: dict[str, Any], tree: Tree, change: Callable[[Sort, Any], Any]) -> dict[str, Any]:
    """Return ``body`` with ``change`` applied to every value in ``tree``; nulls stay."""
    if not tree:
        return body
    out = dict(body)
    for name, sort in tree.own:
        held = out.get(name)
        if isinstance(held, list):
            out[name] = [change(sort, each) for each in held]
        elif held is not None:
            out[name] = change(sort, held)
    for name, is_array, inner in tree.inner:
        held = out.get(name)
        if held and is_array:
            out[name] = [changed(each, inner, change) for each in held if each is not None]
        elif held:
            out[name] = changed(held, inner, change)
    return out
