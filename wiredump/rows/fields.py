"""Find the record batches of exchanges: the fields of type ``records``, with topic and partition.

Produce requests, Fetch and ShareFetch responses have them. They are found in the bytes of a whole
frame (``kproto.columns.places``), or by decoding the body without the native engine. If that is not
possible (the frame is cut or damaged, or the source has no bytes), they are found in the JSON that
``wiredump.bodies`` makes of what can be read. Batches are not decoded here.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from operator import attrgetter
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from kproto.codec.registry import plan_of
from kproto.codegen.plan import StructPlan
from kproto.columns.places import Place, PlaceFinder, place_finder
from kproto.dialects import Dialect
from kproto.errors import KprotoError
from kproto.framing import SIZE_LENGTH
from kproto.messages.request_header import RequestHeader
from kproto.partial import FrameLayout, response_layout
from wiredump.bodies import Bodies
from wiredump.dialects import codec_of
from wiredump.model import Connection, Exchange, Frame

__all__ = [
    "CARRYING", "NO_TOPIC_ID", "PRODUCE", "Found", "NameOf", "RecordsField", "fields_of",
    "finder_of", "id_as_text", "places_of",
]  # fmt: skip

NameOf: TypeAlias = Callable[[str, int], str | None]
"""Returns the name of a topic id that was known at a time."""

PRODUCE: Final = 0
FETCH: Final = 1
SHARE_FETCH: Final = 78

CARRYING: Final = frozenset({PRODUCE, FETCH, SHARE_FETCH})
"""API keys whose messages have batches."""

NO_TOPIC_ID: Final = "A" * 22
"""The zero uuid, which means that there is none."""


class RecordsField(NamedTuple):
    """A field that is not empty, in a frame of an exchange. Of a frame that was read in C only the
    place and the times are known."""

    connection: Connection
    api_key: int
    frame: Frame
    completed_ns: int
    topic: str | None
    topic_id: str | None
    partition: int
    data: bytes
    number: int = 0
    """That of its first batch."""

    @property
    def name(self) -> str:
        return f"{self.topic or self.topic_id}-{self.partition}"


Found: TypeAlias = tuple[str | None, str | None, int, bytes]
"""Name and id of the topic as in the message, partition, records."""


def completed_ns(item: Exchange) -> int:
    """When the exchange was complete."""
    frame = item.response or item.request
    return frame.delivered_ns if frame is not None else item.connection.opened_ns


def fields_of(
    item: Exchange, codec: Dialect | None, said: Callable[[], Bodies], name_of: NameOf
) -> Iterator[RecordsField]:
    """Return the fields of an exchange, in order. ``said`` returns the result of ``bodies.read``
    and is called only if needed. Malformed bytes never raise."""
    if item.api_key not in CARRYING:
        return
    frame = item.request if item.api_key == PRODUCE else item.response
    if frame is None:
        return
    completed = completed_ns(item)
    for name, topic_id, partition, data, number in _found_in(item, frame, codec, said):
        if name is None and topic_id is not None:
            name = name_of(topic_id, completed)
        yield RecordsField(
            item.connection, item.api_key, frame, completed, name, topic_id, partition, data, number
        )


def _found_in(
    item: Exchange, frame: Frame, codec: Dialect | None, said: Callable[[], Bodies]
) -> Iterator[tuple[str | None, str | None, int, bytes, int]]:
    if frame.salvaged is not None:
        for topic, topic_id, partition, number, _, _, data in frame.salvaged:
            yield topic, topic_id, partition, data, number
        return
    found = _in_bytes(item, frame, codec_of(item, codec))
    for each in _in_json(item, said()) if found is None else found:
        yield (*each, 0)


# ---- in the bytes ----------------------------------------------------------------------------


class _Names(NamedTuple):
    """The JSON names of a message's fields."""

    topics: str
    partitions: str
    name: str
    partition: str


_PRODUCED: Final = _Names("topicData", "partitionData", "name", "index")
_FETCHED: Final = _Names("responses", "partitions", "topic", "partitionIndex")


class RecordPlaces(NamedTuple):
    """Where the fields are in a frame. The columns of ``finder`` are the partition, the records,
    and the topic's name and id at ``name_at`` and ``id_at``, -1 if the version lacks it."""

    finder: PlaceFinder
    name_at: int
    id_at: int

    def find(self, raw: bytes) -> list[Found] | None:
        """Return the fields of a frame; None if it does not match the schema."""
        found = self.finder.find(raw, SIZE_LENGTH)
        if found is None or found[1] != len(raw):
            return None
        return [
            (self._name(raw, row), self._id(raw, row), _partition(raw, row[0][0])[0],
             raw[at : at + size])
            for row in found[0]
            for at, size in (row[1],)
            if size > 0
        ]  # fmt: skip

    def _name(self, raw: bytes, row: tuple[Place, ...]) -> str | None:
        at, size = row[self.name_at] if self.name_at >= 0 else (-1, -1)
        return None if at < 0 else raw[at : at + size].decode()

    def _id(self, raw: bytes, row: tuple[Place, ...]) -> str | None:
        if self.id_at < 0:
            return None
        at, size = row[self.id_at]
        topic_id = raw[at : at + size]
        return id_as_text(topic_id) if any(topic_id) else None


class _Reader(NamedTuple):
    """How to read messages of one version, from bytes and once decoded."""

    layout: FrameLayout
    topics: Callable[[Any], Any]
    name: Callable[[Any], str | None]
    topic_id: Callable[[Any], str | None]
    partitions: Callable[[Any], Any]
    partition: Callable[[Any], int]
    records: Callable[[Any], bytes | None]
    places: RecordPlaces | None
    """None without the native engine."""


def _names(item: Exchange) -> _Names:
    return _PRODUCED if item.api_key == PRODUCE else _FETCHED


def _in_bytes(item: Exchange, frame: Frame, using: Dialect) -> list[Found] | None:
    """Return the fields in a frame's bytes; None if the frame is not whole or does not match the
    schema."""
    if frame.sasl or frame.json is not None:
        return None
    if item.api_key != PRODUCE and item.response_version is None:
        return None
    raw = frame.raw
    if len(raw) < _LEAST or _size(raw)[0] != len(raw) - SIZE_LENGTH:
        return None
    key, version = item.api_key, item.response_version or 0
    if key == PRODUCE:
        key, version = _key_and_version(raw, SIZE_LENGTH)
    return finder_of(using, key, version)(raw)


def places_of(using: Dialect, api_key: int, version: int) -> tuple[Any, ...] | None:
    """Return how ``wiredump.native`` finds the fields of a frame: ``locate`` and the header of a
    ``PlaceFinder``, ``name_at`` and ``id_at``. None if there is no such way."""
    reader = _reader_of(using, api_key, version)
    if reader is None or reader.places is None:
        return None
    finder, name_at, id_at = reader.places
    return finder.locate, finder.header, name_at, id_at


FieldFinder: TypeAlias = Callable[[bytes], list[Found] | None]


@lru_cache(maxsize=256)
def finder_of(using: Dialect, api_key: int, version: int) -> FieldFinder:
    """Return a function that finds the fields of a whole frame, of a Produce request or of a
    response. It returns None for a frame that does not match the schema."""
    reader = _reader_of(using, api_key, version)
    return _nothing if reader is None else partial(_found, reader)


def _found(reader: _Reader, raw: bytes) -> list[Found] | None:
    found = None if reader.places is None else reader.places.find(raw)
    return _decoded(reader, raw) if found is None else found


def _decoded(reader: _Reader, raw: bytes) -> list[Found] | None:
    layout = reader.layout
    try:
        _, at = layout.header.decode_from(raw, layout.header_version, SIZE_LENGTH)
        body, end = layout.body.decode_from(raw, layout.version, at)
    except KprotoError:
        return None
    if end != len(raw):
        return None
    return [
        (reader.name(topic), reader.topic_id(topic), reader.partition(part), data)
        for topic in reader.topics(body) or ()
        for part in reader.partitions(topic) or ()
        if (data := reader.records(part))
    ]


_LEAST: Final = 8
_size: Final = Struct(">i").unpack_from
_key_and_version: Final = Struct(">hh").unpack_from
_partition: Final = Struct(">i").unpack_from


def _reader_of(using: Dialect, api_key: int, version: int) -> _Reader | None:
    """Return the reader; None also if there are no such messages."""
    try:
        return _reader(using, api_key, version, api_key == PRODUCE)
    except KprotoError:
        return None


@lru_cache(maxsize=256)
def _reader(using: Dialect, api_key: int, version: int, produced: bool) -> _Reader | None:
    """Make a reader; None if a user's own dialect has other fields. Raises
    UnsupportedVersionError."""
    api = using.api(api_key, version)
    if produced:
        header_version = api.request_header_version(version)
        layout = FrameLayout(RequestHeader, header_version, api.request, version)
    else:
        layout = response_layout(using, api_key=api_key, api_version=version)
    names = _PRODUCED if produced else _FETCHED
    topics = _present(plan_of(layout.body, version).root)
    topic = topics[names.topics].struct if names.topics in topics else None
    inside = _present(topic) if topic is not None else {}
    partition = inside[names.partitions].struct if names.partitions in inside else None
    if partition is None:
        return None
    parts = _present(partition)
    if names.partition not in parts or "records" not in parts:
        return None
    topic_id = inside.get("topicId")
    return _Reader(
        layout,
        attrgetter(topics[names.topics].name),
        attrgetter(inside[names.name].name) if names.name in inside else _nothing,
        _id_by(attrgetter(topic_id.name)) if topic_id is not None else _nothing,
        attrgetter(inside[names.partitions].name),
        attrgetter(parts[names.partition].name),
        attrgetter(parts["records"].name),
        _places(layout, names, inside),
    )


def _places(layout: FrameLayout, names: _Names, topic: Iterable[str]) -> RecordPlaces | None:
    """``topic``: the fields of a topic that the version has."""
    topics, partitions = names.topics, f"{names.topics}.{names.partitions}"
    columns = [f"{partitions}.{names.partition}", f"{partitions}.records"]
    at = {}
    for name in (names.name, "topicId"):
        at[name] = len(columns) if name in topic else -1
        if name in topic:
            columns.append(f"{topics}.{name}")
    header = layout.header, layout.header_version
    finder = place_finder(header, layout.body, layout.version, columns)
    return None if finder is None else RecordPlaces(finder, at[names.name], at["topicId"])


def _present(struct: StructPlan) -> dict[str, Any]:
    """Return the fields that the version has, by JSON name."""
    return {each.json_name: each for each in struct.order if each not in struct.absent}


def _nothing(_: Any) -> None:
    return None


def _id_by(get: Callable[[Any], Any]) -> Callable[[Any], str | None]:
    """Parse a topic id of JSON; None for none."""

    def topic_id(topic: Any) -> str | None:
        value = get(topic)
        return id_as_text(value.bytes) if value.int else None

    return topic_id


@lru_cache(maxsize=1024)
def id_as_text(topic_id: bytes) -> str:
    """Format a topic id as in JSON."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()


# ---- in JSON ---------------------------------------------------------------------------------


def _in_json(item: Exchange, said: Bodies) -> Iterator[Found]:
    side = said.request if item.api_key == PRODUCE else said.response
    if side is None or side.body is None:
        return
    names = _names(item)
    for topic in side.body.get(names.topics) or ():
        topic_id = topic.get("topicId")
        topic_id = None if topic_id == NO_TOPIC_ID else topic_id
        for each in topic.get(names.partitions) or ():
            text = each.get("records")
            if text:
                data = base64.b64decode(text)
                yield topic.get(names.name), topic_id, each.get(names.partition, -1), data
