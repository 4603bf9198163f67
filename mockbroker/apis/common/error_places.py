"""The error code fields of a response, at every level, and how to set them.

The places come from the schema. ``chosen_places`` picks the level for rules that do not name one.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.schema.model import Field, Struct
from mockbroker.apis.common.request_entities import (
    Kind,
    Selection,
    Topics,
    fields_of,
    kind_of,
    partition_of,
    topic_of,
)

__all__ = ["Level", "Place", "chosen_places", "place_error", "places_of"]

Level: TypeAlias = Literal["top"] | Kind

_CODES: Final = frozenset({"ErrorCode", "PartitionErrorCode"})
_MESSAGE: Final = "ErrorMessage"


class Place(NamedTuple):
    """An error code field. ``path`` holds the array fields that lead to its struct."""

    path: tuple[Field, ...]
    code: Field
    level: Level


@cache
def places_of(response: type[Message], version: int) -> tuple[Place, ...]:
    """Return every place of a version, outer ones first."""
    found = _places(schema_of(response).root, version, (), "top")
    return tuple(sorted(found, key=lambda place: len(place.path)))


def _places(struct: Struct, version: int, path: tuple[Field, ...], level: Level) -> list[Place]:
    found: list[Place] = []
    for field in fields_of(struct, version):
        inner = field.type.inner_struct
        if field.name in _CODES and field.type.kind == "int16":
            found.append(Place(path, field, level))
        elif inner is not None and field.type.kind == "array":
            found += _places(inner, version, (*path, field), kind_of(inner, version))
    return found


def chosen_places(
    response: type[Message], version: int, error_at: str | None, selection: Selection
) -> tuple[Place, ...]:
    """Return the places at the requested level; at the outermost if the version lacks that
    level."""
    places = places_of(response, version)
    levels = {place.level for place in places}
    level = error_at
    if level is None and selection:
        level = next((each for each in ("partition", "topic") if each in levels), None)
    if level == "all" or not places:
        return places
    if level in levels:
        return tuple(place for place in places if place.level == level)
    outermost = len(places[0].path)
    return tuple(place for place in places if len(place.path) == outermost)


def place_error(
    body: Message,
    version: int,
    places: tuple[Place, ...],
    code: int,
    message: str | None,
    topics: Topics,
    selection: Selection = Selection(),  # noqa: B008  # a tuple
) -> int:
    """Set the code at these places, in every element of ``body`` that ``selection`` takes.

    Returns the number of fields that were set.
    """
    root = schema_of(type(body)).root
    placement = _Placement(version, code, message, topics, selection)
    return sum(
        placement.place(
            body, root, place.path, place.code, _emptied(type(body), version, place, places)
        )
        for place in places
    )


def _emptied(
    response: type[Message], version: int, place: Place, places: tuple[Place, ...]
) -> list[str]:
    """Names of the arrays below a place that are empty in a failed element, such as the partitions
    of an unknown topic."""
    return [
        other.path[-1].python_name
        for other in places_of(response, version)
        if place.path and other.path[:-1] == place.path and other not in places
    ]


class _Placement(NamedTuple):
    version: int
    code: int
    message: str | None
    topics: Topics
    selection: Selection

    def place(
        self, holder: Any, struct: Struct, path: tuple[Field, ...], field: Field, emptied: list[str]
    ) -> int:
        """Set the code below ``holder``; return the number of fields that were set."""
        if not path:
            setattr(holder, field.python_name, self.code)
            _set_message(holder, struct, self.version, self.message)
            for name in emptied:
                setattr(holder, name, [])
            return 1
        inner = path[0].type.inner_struct
        assert inner is not None
        return sum(
            self.place(element, inner, path[1:], field, emptied)
            for element in getattr(holder, path[0].python_name) or ()
            if self._is_selected(element, inner)
        )

    def _is_selected(self, element: Any, struct: Struct) -> bool:
        topic = topic_of(element, struct, self.version, self.topics)
        partition = partition_of(element, struct, self.version)
        return self.selection.is_topic(topic) and self.selection.is_partition(partition)


def _set_message(holder: Any, struct: Struct, version: int, message: str | None) -> None:
    for field in fields_of(struct, version):
        if field.name == _MESSAGE and field.type.kind == "string":
            nothing = None if field.is_nullable(version) else ""
            setattr(holder, field.python_name, nothing if message is None else message)
