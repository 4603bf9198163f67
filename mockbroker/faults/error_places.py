"""Where a response carries error codes, and putting one there. Found from the schema: every field
of that name, at every level. Which level is meant where a rule does not say is decided here.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.schema.model import Field, Struct
from mockbroker.faults.request_entities import (
    Kind,
    Topics,
    Wanted,
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
    """One field of one struct that holds an error code; ``path`` leads there, through arrays."""

    path: tuple[Field, ...]
    code: Field
    level: Level


@cache
def places_of(response: type[Message], version: int) -> tuple[Place, ...]:
    """Every place of a version, outer ones first."""
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
    response: type[Message], version: int, error_at: str | None, wanted: Wanted
) -> tuple[Place, ...]:
    """Those at the level that is asked for, or, where the version has it not, at the outermost."""
    places = places_of(response, version)
    levels = {place.level for place in places}
    level = error_at
    if level is None and wanted:
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
    wanted: Wanted = Wanted(),  # noqa: B008  # a tuple
) -> int:
    """Put the code at these places, as far as ``body`` has elements there, and those that name what
    is not ``wanted`` aside. How many got it."""
    root = schema_of(type(body)).root
    placing = _Placing(version, code, message, topics, wanted)
    return sum(
        placing.place(
            body, root, place.path, place.code, _emptied(type(body), version, place, places)
        )
        for place in places
    )


def _emptied(
    response: type[Message], version: int, place: Place, places: tuple[Place, ...]
) -> list[str]:
    """The arrays right below a place that an element which failed has nothing in: as the
    partitions of a topic that there is not."""
    return [
        other.path[-1].python_name
        for other in places_of(response, version)
        if place.path and other.path[:-1] == place.path and other not in places
    ]


class _Placing(NamedTuple):
    version: int
    code: int
    message: str | None
    topics: Topics
    wanted: Wanted

    def place(
        self,
        holder: Any,
        struct: Struct,
        path: tuple[Field, ...],
        field: Field,
        emptied: list[str],
    ) -> int:
        """How many elements below ``holder`` got the code."""
        if not path:
            setattr(holder, field.python_name, self.code)
            _explain(holder, struct, self.version, self.message)
            for name in emptied:
                setattr(holder, name, [])
            return 1
        inner = path[0].type.inner_struct
        assert inner is not None
        return sum(
            self.place(element, inner, path[1:], field, emptied)
            for element in getattr(holder, path[0].python_name) or ()
            if self._is_wanted(element, inner)
        )

    def _is_wanted(self, element: Any, struct: Struct) -> bool:
        topic = topic_of(element, struct, self.version, self.topics)
        partition = partition_of(element, struct, self.version)
        return self.wanted.is_topic(topic) and self.wanted.is_partition(partition)


def _explain(holder: Any, struct: Struct, version: int, message: str | None) -> None:
    for field in fields_of(struct, version):
        if field.name == _MESSAGE and field.type.kind == "string":
            nothing = None if field.is_nullable(version) else ""
            setattr(holder, field.python_name, nothing if message is None else message)
