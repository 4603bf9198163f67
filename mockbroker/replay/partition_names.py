"""Splits messages into parts by topic and partition, and joins parts into messages.

Kafka's messages name partitions in one form: at the root, or in arrays of groups, transactions or
log directories, there is an array of topics, and in each topic an array of partitions. A topic is a
name, an id or a config resource. Messages of another form (heartbeats with an assignment) have no
``Forms``. The form is found from the schemas.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.schema.model import ZERO_UUID, Field, Struct
from mockbroker.apis.common.request_entities import (
    fields_of,
    id_field,
    is_partitions,
    is_topics,
    partition_field,
    topic_field,
)

__all__ = ["Form", "Forms", "Key", "MessagePart", "TopicNames", "forms_of"]


class Key(NamedTuple):
    """A topic or partition. ``holder`` identifies the group or transaction that names it. ``topic``
    None stands for every topic, ``partition`` None for the whole topic."""

    holder: tuple[Any, ...]
    topic: str | None
    partition: int | None

    @property
    def wider(self) -> tuple[Key, Key]:
        """The whole topic, and all topics."""
        return Key(self.holder, self.topic, None), Key(self.holder, None, None)

    def __str__(self) -> str:
        topic = "every topic" if self.topic is None else self.topic
        return topic if self.partition is None else f"{topic}-{self.partition}"


class MessagePart(NamedTuple):
    """The part of a message about one key: its elements from the outermost array inwards, each
    without the elements of the next array."""

    key: Key
    steps: tuple[Any, ...]


class TopicNames:
    """The names of topic ids, as far as messages contain both."""

    def __init__(self) -> None:
        self.ids: dict[str, uuid.UUID] = {}
        self._names: dict[uuid.UUID, str] = {}

    def learn(self, body: Message, version: int) -> None:
        """Learn from every struct that has the name and the id of a topic."""
        self._learn(body, schema_of(type(body)).root, version)

    def _learn(self, value: Any, struct: Struct, version: int) -> None:
        named, identified = topic_field(struct, version), id_field(struct, version)
        if named is not None and identified is not None:
            name = getattr(value, named.python_name)
            topic_id = getattr(value, identified.python_name)
            if name and topic_id != ZERO_UUID:
                self.ids[name] = topic_id
                self._names[topic_id] = name
        for field in fields_of(struct, version):
            inner, held = field.type.inner_struct, getattr(value, field.python_name)
            if inner is not None and held is not None:
                for each in held if field.type.kind == "array" else (held,):
                    self._learn(each, inner, version)

    def topic_of(self, element: Any, struct: Struct, version: int) -> str:
        """Return a topic's name, its id as text if the name is unknown, or ``TYPE:NAME`` of a
        resource."""
        if _is_resource(struct):
            return f"{element.resource_type}:{element.resource_name}"
        field = topic_field(struct, version)
        if field is not None and (name := getattr(element, field.python_name)):
            return str(name)
        field = id_field(struct, version)
        topic_id = ZERO_UUID if field is None else getattr(element, field.python_name)
        return self._names.get(topic_id, str(topic_id))

    def rename(self, element: Any, struct: Struct, topic: str, version: int) -> None:
        """Name the topic of ``element`` as ``version`` does, whatever version it was decoded
        from."""
        for field in struct.fields:
            if field.name == "TopicId" and field.type.kind == "uuid":
                held = getattr(element, field.python_name)
                value = held if held != ZERO_UUID else self.ids.get(topic, held)
                value = value if version in field.versions else ZERO_UUID
            elif field.entity_type == "topicName" and field.type.kind == "string":
                held = getattr(element, field.python_name)
                value = (held or topic) if version in field.versions else field.default
            else:
                continue
            setattr(element, field.python_name, value)


class Form(NamedTuple):
    """How a message names topics and partitions.

    ``path`` holds the arrays from the root to the innermost one that request and response share;
    ``depth`` counts those before the topics. ``identities`` are the fields that identify elements
    of the arrays before the topics. ``level`` is what a part is about.
    """

    path: tuple[Field, ...]
    depth: int
    identities: tuple[tuple[str, ...], ...]
    level: Literal["topic", "partition"]

    def split(self, body: Message, version: int, names: TopicNames) -> list[MessagePart]:
        """Split a message. A null array is one part, and so is an empty one below the root."""
        return list(self._parts(body, (), Key((), None, None), version, names))

    def _parts(
        self, holder: Any, steps: tuple[Any, ...], key: Key, version: int, names: TopicNames
    ) -> Iterator[MessagePart]:
        at = len(steps)
        elements = getattr(holder, self.path[at].python_name) if at < len(self.path) else None
        if not elements:
            if elements is None or steps:
                yield MessagePart(key, steps)
            return
        for element in elements:
            if at < self.depth:
                below = key._replace(holder=(*key.holder, *self._identity(element, at)))
            else:
                below = _named(element, self.path[at], key, at == self.depth, version, names)
            step = element
            if at + 1 < len(self.path):
                step = _without(element, self.path[at + 1])
            yield from self._parts(element, (*steps, step), below, version, names)

    def _identity(self, element: Any, at: int) -> tuple[Any, ...]:
        return tuple(getattr(element, name) for name in self.identities[at])

    def join(self, base: Message, parts: Iterable[MessagePart]) -> Message:
        """Return ``base`` with the parts in its arrays, in their order."""
        body: Message = _without(base, self.path[0])
        places: dict[tuple[Any, ...], Any] = {}
        for part in parts:
            holder: Any = body
            place: tuple[Any, ...] = ()
            for at, step in enumerate(part.steps):
                place = (*place, self._place(step, at, part.key))
                known = places.get(place)
                if known is None:
                    known = step
                    if at + 1 < len(self.path):
                        known = _without(step, self.path[at + 1])
                    places[place] = known
                    getattr(holder, self.path[at].python_name).append(known)
                holder = known
        return body

    def _place(self, step: Any, at: int, key: Key) -> Any:
        if at > self.depth:
            return key.partition
        if at == self.depth:
            return key.topic if len(self.path) > at + 1 else (key.topic, key.partition)
        struct = self.path[at].type.inner_struct
        assert struct is not None
        return tuple(
            getattr(step, field.python_name)
            for field in struct.fields
            if field.type.kind in ("string", "int64") and not field.name.startswith("Error")
        )


class Forms(NamedTuple):
    """The forms of a request and its response. ``same_holders``: both name the groups, for
    example."""

    request: Form
    response: Form
    same_holders: bool


@cache
def forms_of(
    request: type[Message], response: type[Message], version: int, passing: frozenset[str]
) -> Forms | None:
    """Return the forms, None if the response has no element for each topic or partition of the
    request. ``passing``: fields, by JSON name, that identify nothing."""
    requests = _path(schema_of(request).root, version)
    responses = _path(schema_of(response).root, version)
    if requests is None or responses is None:
        return None
    sent, sent_depth = requests
    answered, answered_depth = responses
    fine = min(len(sent) - sent_depth, len(answered) - answered_depth)
    if _is_flat(sent[sent_depth], version) or _is_flat(answered[answered_depth], version):
        fine = 2  # both name partitions, in one array or in two
    sent, answered = sent[: sent_depth + fine], answered[: answered_depth + fine]
    identities: tuple[tuple[str, ...], ...] = ()
    same = sent_depth == answered_depth
    if same:
        identities = tuple(
            _common(mine, theirs, version, passing)
            for mine, theirs in zip(sent[:sent_depth], answered[:answered_depth], strict=True)
        )
    nothing: tuple[tuple[str, ...], ...] = ((),)
    level: Literal["topic", "partition"] = "partition" if fine == 2 else "topic"
    return Forms(
        Form(sent, sent_depth, identities or nothing * sent_depth, level),
        Form(answered, answered_depth, identities or nothing * answered_depth, level),
        same,
    )


def _path(struct: Struct, version: int) -> tuple[tuple[Field, ...], int] | None:
    """Return the arrays that lead to topics and partitions, and how many come before the topics."""
    for field in fields_of(struct, version):
        inner = field.type.inner_struct
        if field.type.kind != "array" or field.name == "ForgottenTopicsData":
            continue
        if inner is None:
            if is_topics(field):
                return (field,), 0
        elif _is_topic(inner, version):
            return (field, *_partitions(inner, version)), 0
    for field in fields_of(struct, version):
        inner = field.type.inner_struct
        if field.type.kind == "array" and inner is not None:
            found = _path(inner, version)
            if found is not None:
                return (field, *found[0]), found[1] + 1
    return None


def _is_topic(struct: Struct, version: int) -> bool:
    names = topic_field(struct, version) or id_field(struct, version)
    return names is not None or _is_resource(struct)


def _is_resource(struct: Struct) -> bool:
    """Return whether it is a config resource; the resource of an access rule has a pattern."""
    names = {field.name for field in struct.fields}
    return {"ResourceType", "ResourceName"} <= names and "ResourcePatternType" not in names


def _is_flat(field: Field, version: int) -> bool:
    """Return whether the field is an array of partitions that each name their topic."""
    inner = field.type.inner_struct
    return inner is not None and partition_field(inner, version) is not None


def _partitions(topic: Struct, version: int) -> tuple[Field, ...]:
    for field in fields_of(topic, version):
        inner = field.type.inner_struct
        if is_partitions(field) or (
            field.type.kind == "array"
            and inner is not None
            and partition_field(inner, version) is not None
        ):
            return (field,)
    return ()


def _common(mine: Field, theirs: Field, version: int, passing: frozenset[str]) -> tuple[str, ...]:
    one, other = mine.type.inner_struct, theirs.type.inner_struct
    assert one is not None
    assert other is not None
    there = {field.python_name for field in fields_of(other, version)}
    return tuple(
        field.python_name
        for field in fields_of(one, version)
        if field.python_name in there
        and field.type.inner_struct is None
        and field.type.kind != "array"
        and json_name(field) not in passing
    )


def _named(
    element: Any, field: Field, key: Key, is_topic: bool, version: int, names: TopicNames
) -> Key:
    inner = field.type.inner_struct
    if not is_topic:
        number = None if inner is None else partition_field(inner, version)
        index = element if number is None else getattr(element, number.python_name)
        return key._replace(partition=index)
    if inner is None:
        return key._replace(topic=element)
    number = partition_field(inner, version)
    return key._replace(
        topic=names.topic_of(element, inner, version),
        partition=None if number is None else getattr(element, number.python_name),
    )


def _without(holder: Any, field: Field) -> Any:
    """Return a copy whose array is empty."""
    out = copy.copy(holder)
    setattr(out, field.python_name, [])
    return out


def json_name(field: Field) -> str:
    return field.name[:1].lower() + field.name[1:]
