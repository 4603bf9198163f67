"""A request without the topics and partitions that a rule selects, or with those alone; and the
responses to both parts merged into one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.schema.model import Field, Struct
from mockbroker.apis.common.error_places import Place
from mockbroker.apis.common.request_entities import (
    Named,
    Selection,
    Topics,
    fields_of,
    is_partitions,
    is_topics,
    kind_of,
    named_by,
    partition_of,
    topic_of,
)

__all__ = ["merge_parts", "part_of_request"]


def part_of_request(
    body: Message,
    version: int,
    selection: Selection,
    topics: Topics,
    *,
    partitions: bool,
    keep: bool,
) -> Message | None:
    """Return the request without the selected entities, or, with ``keep``, with those alone.

    ``partitions``: single partitions are taken out of a topic; otherwise the whole topic is. None
    if the request names all topics, or whole topics, and so cannot be split.
    """
    found = named_by(body, version, topics)
    if any(each.topic is None or (partitions and selection.partition is not None and
                                  each.partition is None) for each in found):  # fmt: skip
        return None

    def stays(named: Named) -> bool:
        return selection.takes(named) is keep

    part = copy.deepcopy(body)
    _keep_part(part, schema_of(type(body)).root, version, None, topics, partitions, stays)
    return part


def _keep_part(
    holder: Any,
    struct: Struct,
    version: int,
    topic: str | None,
    topics: Topics,
    partitions: bool,
    stays: Callable[[Named], bool],
) -> None:
    for field in fields_of(struct, version):
        values = getattr(holder, field.python_name)
        if field.type.kind != "array" or not values:
            continue
        inner = field.type.inner_struct
        if inner is None:
            if is_topics(field):
                values = [each for each in values if stays(Named(each, None))]
            elif is_partitions(field) and partitions:
                values = [each for each in values if stays(Named(topic, each))]
            setattr(holder, field.python_name, values)
            continue
        left = []
        for each in values:
            if _keeps(each, inner, version, topic, topics, partitions, stays):
                left.append(each)
        setattr(holder, field.python_name, left)


def _keeps(
    element: Any,
    struct: Struct,
    version: int,
    topic: str | None,
    topics: Topics,
    partitions: bool,
    stays: Callable[[Named], bool],
) -> bool:
    own = topic_of(element, struct, version, topics) or topic
    kind = kind_of(struct, version)
    if kind == "partition" and partitions:
        return stays(Named(own, partition_of(element, struct, version)))
    if kind == "topic" and own is not None:
        before = _parts(element, struct, version)
        if not (partitions and before):
            return stays(Named(own, None))
    if kind != "partition":
        _keep_part(element, struct, version, own, topics, partitions, stays)
    return kind != "topic" or bool(_parts(element, struct, version))


def _parts(element: Any, struct: Struct, version: int) -> int:
    """Return the number of partitions that an element lists."""
    count = 0
    for field in fields_of(struct, version):
        inner = field.type.inner_struct
        if is_partitions(field) or (inner is not None and kind_of(inner, version) == "partition"):
            count += len(getattr(element, field.python_name) or ())
    return count


# ---- the responses to both parts, merged ---------------------------------------------------------


def merge_parts(
    rest: Message, taken: Message, order: Message, version: int, places: tuple[Place, ...],
    topics: Topics,
) -> Message:  # fmt: skip
    """Add the elements of ``taken`` to ``rest``, in its arrays that lead to ``places``.

    ``order`` has the elements of both and gives their order. Returns ``rest``.
    """
    paths = [place.path for place in places if place.path]
    _merge(rest, taken, order, version, paths, topics)
    return rest


def _merge(
    rest: Any, taken: Any, order: Any, version: int, paths: list[tuple[Field, ...]], topics: Topics
) -> None:
    for field in {id(path[0]): path[0] for path in paths}.values():
        inner = field.type.inner_struct
        assert inner is not None
        below = [path[1:] for path in paths if path[0] is field and len(path) > 1]

        def key(element: Any, struct: Struct = inner) -> tuple[Any, ...]:
            return _key(element, struct, version, topics)

        name = field.python_name
        ours = {key(each): each for each in getattr(rest, name) or ()}
        theirs = {key(each): each for each in getattr(taken, name) or ()}
        inside = {key(each): each for each in getattr(order, name) or ()}
        result = []
        for each in {**inside, **ours, **theirs}:
            if each in ours and each in theirs:
                if below and each in inside:
                    _merge(ours[each], theirs[each], inside[each], version, below, topics)
                result.append(ours[each] if below else theirs[each])
            elif each in ours or each in theirs:
                result.append(ours.get(each) or theirs[each])
        setattr(rest, name, result)


def _key(element: Any, struct: Struct, version: int, topics: Topics) -> tuple[Any, ...]:
    """Return the values that identify an element."""
    topic = topic_of(element, struct, version, topics)
    partition = partition_of(element, struct, version)
    if topic is not None or partition is not None:
        return topic, partition
    return tuple(
        getattr(element, field.python_name)
        for field in fields_of(struct, version)
        if field.type.kind in ("string", "uuid", "int8", "int64")
        and not field.name.startswith("Error")
    )
