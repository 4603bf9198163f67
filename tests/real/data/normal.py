"""What an answer says once the values are hidden that every run draws anew.

``tests.real.chance`` names these values by API key and path, each with its reason; everything else
is compared as it is.
"""

from __future__ import annotations

import json
import re
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final

from kproto.errors import DecodeError
from kproto.records import Record, RecordBatches
from tests.real.chance import CHANCE, LATE, UNORDERED, listed_brokers

__all__ = ["Names", "normal", "normal_plain"]

CLOCK_MS: Final = 600_000
"""Timestamps this close to the present come from a broker's clock; those that sessions send are
further away."""


_MASKS: Final = {(each.api_key, each.path): each.how for each in CHANCE}
_ORDERS: Final = {(each.api_key, each.path): each.fields for each in UNORDERED}
_LATE: Final = {(each.api_key, each.path) for each in LATE}

_MERGED: Final = {(0, "responses"): "partitionResponses", (1, "responses"): "partitions"}
"""Where Kafka names a topic again, as it groups adjoining partitions only, and the mock as the
request did."""


_OF_ALL_SESSIONS: Final = {(16, "groups"): "groupId", (66, "transactionStates"): "transactionalId"}
"""Where a broker lists what all sessions have made, and the member that names it."""

_ID: Final = re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])")
"""A UUID as Kafka prints it."""

_RANGE: Final = re.compile(r"within \[-?\d+, -?\d+\]")
"""The timestamps that a topic accepts, around the present, in an error's text."""


class Names:
    """What stands for random values of one side: ids by the names that a script gave them."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._numbers: dict[tuple[str, int], str] = {}
        self.coordinators: set[int] = set()
        self.listed: frozenset[int] = frozenset()
        """The brokers in the answer that is read."""
        self.own = ""

    def is_own(self, name: str) -> bool:
        """Whether a group belongs to the session: other sessions' groups are theirs to compare."""
        return name == self.own or name.startswith(f"{self.own}.")

    def text(self, value: str, name: str) -> None:
        """From now on ``value`` reads as ``<name>``, within longer texts too."""
        if value:
            self._texts[value] = f"<{name}>"

    def producer(self, value: int, name: str) -> None:
        """From now on the producer id ``value`` reads as ``<producer name>``."""
        if value >= 0:
            self._numbers["producer", value] = f"<producer {name}>"

    def session(self, value: int, name: str = "") -> None:
        """The same of a fetch session's id; 0 is none."""
        if value > 0:
            self._numbers["session", value] = f"<session {name}>"

    def of_text(self, value: str) -> str:
        value = _RANGE.sub("within [<range>]", value)
        for each, name in self._texts.items():
            if each in value:
                value = value.replace(each, name)
        return value

    def of_number(self, kind: str, value: int) -> str | int:
        return self._numbers.get((kind, value), value if value in (-1, 0) else "<unnamed>")


def normal(answer: Any, api_key: int, version: int, names: Names) -> Any:
    """``answer``, a response's message, as plain data that equal brokers give equally."""
    return normal_plain(json.loads(answer.to_json(version)), api_key, names)


def normal_plain(answer: Any, api_key: int, names: Names) -> Any:
    """As ``normal``, of an answer in the form of ``Message.to_json``."""
    names.listed = listed_brokers(answer)
    return _normal(answer, api_key, "", names)


def _normal(value: Any, api_key: int, path: str, names: Names) -> Any:
    how = _MASKS.get((api_key, path))
    if how is not None:
        return _MASKING[how](value, names)
    if isinstance(value, dict):
        return {
            key: _normal(each, api_key, f"{path}.{key}" if path else key, names)
            for key, each in value.items()
        }
    if isinstance(value, list):
        if (api_key, path) in _OF_ALL_SESSIONS:
            member = _OF_ALL_SESSIONS[api_key, path]
            value = [row for row in value if names.is_own(row[member])]
        if (api_key, path) == (65, "transactionStates[].topics[].partitions"):
            value = sorted(value)  # Kafka gathers them in a hash set
        rows = [_normal(each, api_key, f"{path}[]", names) for each in value]
        if (api_key, path) in _MERGED:
            rows = _merged(rows, _MERGED[api_key, path])
        if (api_key, path) in _LATE:
            rows = [row for row in rows if _says_something(row)] or rows[:1]
        if (api_key, path) in _ORDERS:
            fields = _ORDERS[api_key, path]
            if fields:
                rows.sort(key=lambda row: [str(row.get(name)) for name in fields])
            else:
                rows.sort(key=json.dumps)
        return rows
    return names.of_text(value) if isinstance(value, str) else value


def _says_something(row: Mapping[str, Any]) -> bool:
    """Whether a row has an error, records, or anything else but what names it."""
    return any(
        value for key, value in row.items() if key not in ("partitionIndex", "currentLeader")
    )


def _merged(rows: list[dict[str, Any]], inner: str) -> list[dict[str, Any]]:
    """One row for each topic, with the partitions of all its rows."""
    found: dict[Any, dict[str, Any]] = {}
    for row in rows:
        key = row.get("topicId", row.get("name", row.get("topic")))
        if key in found:
            found[key][inner] = found[key][inner] + row[inner]
        else:
            found[key] = row
    return list(found.values())


def _clock(value: Any, names: Names) -> Any:
    return "<now>" if abs(int(value) - time.time() * 1000) < CLOCK_MS else value


def _records(value: Any, names: Names) -> Any:
    """Every field of every whole batch but the checksum, which is checked, and how many bytes a
    limit left of the last one."""
    if value is None:
        return None
    data = b64decode(value)
    batches = RecordBatches(data, allow_partial=True)
    found: list[Any] = []
    try:
        found.extend(_batch(each, names) for each in batches)
    except DecodeError as error:
        found.append({"unreadable": str(error)})
    else:
        if batches.incomplete is not None:
            found.append({"cut": batches.incomplete.available})
    return found


def _batch(batch: Any, names: Names) -> dict[str, Any]:
    if batch.magic < 2:
        return {"magic": batch.magic, "codec": batch.compression.name,
                "records": [_record(each, names) for each in batch]}  # fmt: skip
    control = bool(batch.attributes & 0x20)
    return {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "magic": batch.magic,
        "attributes": batch.attributes,
        "baseTimestamp": _clock(batch.base_timestamp, names),
        "maxTimestamp": _clock(batch.max_timestamp, names),
        "producerId": names.of_number("producer", batch.producer_id),
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "recordCount": batch.record_count,
        "records": "<control>" if control else [_record(each, names) for each in batch],
    }


def _record(record: Record, names: Names) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": _clock(record.timestamp, names),
        "key": _bytes(record.key),
        "value": _bytes(record.value),
        "headers": [[key, _bytes(text)] for key, text in record.headers],
    }


def _bytes(value: bytes | None) -> str | None:
    if value is None:
        return None
    text = value.decode("latin-1")
    return text if len(text) < 40 else f"{text[:20]}... ({len(text)} bytes)"


_MASKING: Final[Mapping[str, Callable[[Any, Names], Any]]] = {
    "ids": lambda value, names: value and _ID.sub("<id>", value),
    "hide": lambda value, names: "<masked>",
    "count": lambda value, names: len(value),
    "clock": _clock,
    "producer": lambda value, names: names.of_number("producer", int(value)),
    "session": lambda value, names: names.of_number("session", int(value)),
    "records": _records,
    "coordinator": lambda value, names: "<coordinator>" if value in names.coordinators else value,
    "broker": lambda value, names: "<a live broker>" if value in names.listed else value,
}
