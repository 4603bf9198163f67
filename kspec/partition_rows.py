"""The rows of single partitions in requests and responses, and record batches as JSON values.

A row is Kafka's JSON with the schema's names. Its ``records`` are a list of batches, as ``batches``
returns them, in place of bytes. Nothing here judges.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kproto.errors import DecodeError
from kproto.records import RecordBatches
from kproto.records.batch import Batch

__all__ = ["batches", "named_topics", "rows", "text_of"]

_TOPICS: Final = ("topicData", "responses", "topics")
_PARTITIONS: Final = ("partitionData", "partitionResponses", "partitions")
_NAMES: Final = ("name", "topic")
_INDEXES: Final = ("index", "partition", "partitionIndex")


def rows(body: Any, names: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the partitions of a body, such as ``"foo-0"``, with their rows.

    ``names`` has the topics' names by id. A topic with an id that is not among them has that id for
    a name.
    """
    for topic in [*_first(body, _TOPICS), *_of_groups(body)]:
        name = next((topic[each] for each in _NAMES if topic.get(each)), None)
        if name is None:
            topic_id = str(topic.get("topicId"))
            name = names.get(topic_id, topic_id)
        for row in _first(topic, _PARTITIONS):
            index = next((row[each] for each in _INDEXES if each in row), None)
            if index is not None:
                yield f"{name}-{index}", _with_batches(row)


def named_topics(body: Any) -> dict[str, str]:
    """Return the names that a body gives to ids of topics, as Metadata does."""
    return {
        str(topic["topicId"]): str(topic["name"])
        for topic in _first(body, _TOPICS)
        if topic.get("topicId") and topic.get("name")
    }


def _of_groups(body: Any) -> list[dict[str, Any]]:
    """Return the topics of the groups in an answer to OffsetFetch from version 8 on."""
    return [topic for group in _first(body, ("groups",)) for topic in _first(group, _TOPICS)]


def _first(value: Any, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the mappings of the first list that is there under one of these names."""
    found = value if isinstance(value, Mapping) else {}
    lists = (found[name] for name in names if isinstance(found.get(name), list))
    return [each for each in next(lists, []) if isinstance(each, dict)]


def _with_batches(row: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(row.get("records"), str):
        return row
    try:
        data = base64.b64decode(row["records"], validate=True)
    except binascii.Error:
        return row
    return {**row, "records": batches(data)}


def batches(data: bytes) -> list[dict[str, Any]]:
    """Return what the batches of a field of type ``records`` hold.

    A batch that cannot be read has ``damaged``, the reason, in place of its records; nothing behind
    it is read. Raises MissingExtraError if the codec's library is not installed here, which says
    nothing of the batch.
    """
    found: list[dict[str, Any]] = []
    try:
        for batch in RecordBatches(data, allow_partial=True):
            found.append(_batch(batch))
    except DecodeError as error:
        found.append({"damaged": str(error)})
    return found


def _batch(batch: Batch) -> dict[str, Any]:
    records = [] if batch.is_control else batch.records()
    return {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "codec": batch.compression.name.lower(),
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        "offsets": [each.offset for each in records],
        "keys": [text_of(each.key) for each in records],
        "values": [text_of(each.value) for each in records],
        "headers": [[[name, text_of(value)] for name, value in each.headers] for each in records],
    }


def text_of(data: bytes | None) -> Any:
    """Return a key or a value as text without the spaces that pad it, or ``{"hex": ...}`` if it is
    not UTF-8."""
    if data is None:
        return None
    try:
        return data.decode().rstrip(" ")
    except UnicodeDecodeError:
        return {"hex": data.hex()}
