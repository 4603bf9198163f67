"""The topics, partitions and other entities that requests and responses name, found from
schemas."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.schema.model import Field, Struct
from mockbroker.simulation.state.cluster_parts import Topic

__all__ = [
    "Identities",
    "Kind",
    "Named",
    "Selection",
    "Topics",
    "fields_of",
    "id_field",
    "identities_of",
    "is_partitions",
    "is_topics",
    "kind_of",
    "named_by",
    "names_resources",
    "partition_field",
    "partition_of",
    "topic_field",
    "topic_of",
]

Topics: TypeAlias = Mapping[str, Topic]
"""The cluster's topics, by name."""

Kind: TypeAlias = Literal["topic", "partition", "element"]
"""What an element of an array describes."""

_PARTITION_FIELDS: Final = frozenset({"PartitionIndex", "Partition", "PartitionId", "Index"})
_TOPIC_RESOURCE: Final = 2
"""The config resource type of topics."""


class Named(NamedTuple):
    """A topic, or one partition of it. None stands for all of them."""

    topic: str | None
    partition: int | None


class Selection(NamedTuple):
    """The entities that a rule selects: a pattern of topic names, a partition; None for any."""

    topic: str | None = None
    partition: int | None = None

    def __bool__(self) -> bool:
        return self.topic is not None or self.partition is not None

    def is_topic(self, topic: str | None) -> bool:
        return self.topic is None or topic is None or fnmatchcase(topic, self.topic)

    def is_partition(self, partition: int | None) -> bool:
        return self.partition is None or partition is None or partition == self.partition

    def takes(self, named: Named) -> bool:
        return self.is_topic(named.topic) and self.is_partition(named.partition)


def fields_of(struct: Struct, version: int) -> Iterator[Field]:
    return (field for field in struct.fields if version in field.versions)


def topic_field(struct: Struct, version: int) -> Field | None:
    """Return the field that holds a topic's name."""
    for field in fields_of(struct, version):
        if field.entity_type == "topicName" and field.type.kind == "string":
            return field
    return None


def id_field(struct: Struct, version: int) -> Field | None:
    """Return the field that holds a topic's id."""
    for field in fields_of(struct, version):
        if field.name == "TopicId" and field.type.kind == "uuid":
            return field
    return None


def partition_field(struct: Struct, version: int) -> Field | None:
    for field in fields_of(struct, version):
        if field.name in _PARTITION_FIELDS and field.type.kind == "int32":
            return field
    return None


def names_resources(struct: Struct) -> bool:
    return {"ResourceType", "ResourceName"} <= {field.name for field in struct.fields}


def kind_of(struct: Struct, version: int) -> Kind:
    if partition_field(struct, version) is not None:
        return "partition"
    if topic_field(struct, version) or id_field(struct, version) or names_resources(struct):
        return "topic"
    return "element"


def is_topics(field: Field) -> bool:
    """Whether the field is an array of topic names."""
    element = field.type.element
    return element is not None and element.kind == "string" and field.entity_type == "topicName"


def is_partitions(field: Field) -> bool:
    """Whether the field is an array of partition numbers."""
    element = field.type.element
    return element is not None and element.kind == "int32" and "Partition" in field.name


def topic_of(value: Any, struct: Struct, version: int, topics: Topics) -> str | None:
    """Return the topic's name, or its id as text if the cluster does not know the id; None if the
    struct names no topic."""
    field = topic_field(struct, version)
    name = None if field is None else getattr(value, field.python_name)
    if name:
        return str(name)
    field = id_field(struct, version)
    if field is not None:
        found: uuid.UUID = getattr(value, field.python_name)
        if found.int:
            return next(
                (each.name for each in topics.values() if each.topic_id == found), str(found)
            )
    if names_resources(struct) and value.resource_type == _TOPIC_RESOURCE:
        return str(value.resource_name)
    return None


def partition_of(value: Any, struct: Struct, version: int) -> int | None:
    field = partition_field(struct, version)
    return None if field is None else getattr(value, field.python_name)


def named_by(body: Message, version: int, topics: Topics) -> list[Named]:
    """Return the topics and partitions that a request names, in its order."""
    found: list[Named] = []
    _walk(body, schema_of(type(body)).root, version, None, topics, found)
    return found


_MEMBERS: Final = frozenset({"MemberId", "GroupInstanceId", "InstanceId"})
_GROUP_KEY: Final = 0
_TRANSACTION_KEY: Final = 1
_FIND_COORDINATOR: Final = 10
_MAGIC_2: Final = 2
_MAGIC_AT: Final = 16
_PRODUCER_ID_AT: Final = 43


class Identities(NamedTuple):
    """The groups, members, transactional ids and producer ids that a request names."""

    groups: frozenset[str]
    members: frozenset[str]
    transactional_ids: frozenset[str]
    producer_ids: frozenset[int]


def identities_of(body: Message, version: int) -> Identities:
    """Return what a request names besides topics and partitions. FindCoordinator names groups and
    transactional ids by their keys; a batch names its producer."""
    found: dict[str, list[Any]] = {"groupId": [], "member": [], "transactionalId": [],
                                   "producerId": []}  # fmt: skip
    _collect(body, schema_of(type(body)).root, version, found)
    if type(body).API_KEY == _FIND_COORDINATOR:
        key_type = getattr(body, "key_type", _GROUP_KEY)
        keys = [*getattr(body, "coordinator_keys", ()), getattr(body, "key", "")]
        kind = {_GROUP_KEY: "groupId", _TRANSACTION_KEY: "transactionalId"}.get(key_type)
        if kind is not None:
            found[kind] += keys
    groups, members, transactional, producers = (
        frozenset(each for each in values if each not in (None, "")) for values in found.values()
    )
    return Identities(groups, members, transactional, producers)


def _collect(value: Any, struct: Struct, version: int, found: dict[str, list[Any]]) -> None:
    for field in fields_of(struct, version):
        held, inner = getattr(value, field.python_name), field.type.inner_struct
        if held is None:
            continue
        if inner is not None:
            for each in held if field.type.kind == "array" else (held,):
                _collect(each, inner, version, found)
            continue
        kind = "member" if field.name in _MEMBERS else field.entity_type
        if kind in found:
            found[kind] += held if field.type.kind == "array" else [held]
        elif field.type.kind == "records" and len(held) >= _PRODUCER_ID_AT + 8:
            producer = bytes(held[_PRODUCER_ID_AT : _PRODUCER_ID_AT + 8])
            if held[_MAGIC_AT] == _MAGIC_2:
                found["producerId"].append(int.from_bytes(producer, "big", signed=True))


def _walk(
    value: Any, struct: Struct, version: int, topic: str | None, topics: Topics, found: list[Named]
) -> None:
    for field in fields_of(struct, version):
        inner, held = field.type.inner_struct, getattr(value, field.python_name)
        if inner is not None and held is not None:
            for each in held if field.type.kind == "array" else (held,):
                _visit(each, inner, version, topic, topics, found)
        elif inner is not None and field.type.kind == "array":
            if kind_of(inner, version) == "topic":
                found.append(Named(None, None))
        elif is_topics(field):
            found += [Named(name, None) for name in held or ()]
        elif is_partitions(field):
            found += [Named(topic, each) for each in held or ()]


def _visit(
    value: Any, struct: Struct, version: int, topic: str | None, topics: Topics, found: list[Named]
) -> None:
    kind = kind_of(struct, version)
    own = topic_of(value, struct, version, topics) or topic
    if kind == "partition":
        found.append(Named(own, partition_of(value, struct, version)))
        return
    before = len(found)
    _walk(value, struct, version, own, topics, found)
    if kind == "topic" and own is not None and len(found) == before:
        found.append(Named(own, None))
