"""The meaning of strings and bytes in a message's JSON, by its schema: hosts, names, records.

Kafka's schemas mark topics, groups and transactional ids (entity types). All others are known here
by field name.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final, Literal, TypeAlias

from kproto.codec.message import Message
from kproto.codec.registry import plan_of, schema_of
from kproto.codegen.plan import FieldPlan
from kproto.schema.model import Field
from wiredump.field_trees import FieldTree, tree_of

__all__ = ["Sort", "has", "sorts_of"]

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


@lru_cache(maxsize=1024)
def sorts_of(cls: type[Message], version: int) -> FieldTree:
    """Return the tree of a message at a version. Raises UnsupportedVersionError."""
    root = plan_of(cls, version).root
    return tree_of(root, partial(_sort, cls.MESSAGE_NAME), schema_of(cls).root)


def _sort(message: str, item: FieldPlan, field: Field | None) -> Sort | None:
    assert field is not None
    kind = item.element_kind or item.kind
    if item.is_records:
        return "records"
    named = _NAMES.get(item.json_name)
    if kind == "string":
        return _ENTITIES.get(field.entity_type or "", None if named == "opaque" else named)
    is_opaque = kind == "bytes" and named == "opaque"
    return "opaque" if is_opaque and message.startswith(_OPAQUE) else None


def has(tree: FieldTree, sort: Sort) -> bool:
    """Whether there are fields of that sort."""
    return sort in tree.own.values() or any(has(inner, sort) for _, _, inner in tree.inner)
