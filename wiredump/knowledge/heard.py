"""One exchange as far as knowledge needs it.

It can be made of an exchange at hand, and of a row of ``requests`` with its two of ``bodies``: the
bodies are the same JSON. Of a Fetch response only what concerns the session is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from wiredump.bodies import Bodies
from wiredump.model import Exchange

__all__ = [
    "FETCH",
    "HEARD",
    "INSTRUCTIVE",
    "Heard",
    "JsonBody",
    "heard_of", "heard_of_row",
    "trimmed",
]  # fmt: skip

JsonBody = dict[str, Any]

FETCH: Final = 1
ALTER, LIST, DESCRIBE_CLUSTER = 45, 46, 60

INSTRUCTIVE: Final = frozenset({3, 4, 6, 19, 20, 69, 75, 77})
"""Api keys whose messages give topics' names and ids together: Metadata, LeaderAndIsr,
UpdateMetadata, CreateTopics, DeleteTopics, ConsumerGroupDescribe, DescribeTopicPartitions,
ShareGroupDescribe."""

HEARD: Final = INSTRUCTIVE | {FETCH, ALTER, LIST, DESCRIBE_CLUSTER}
"""Api keys that any of the classes listens to."""


class Heard(msgspec.Struct, frozen=True, gc=False):
    """Names are those of the columns of ``requests``. ``request`` and ``response`` are None where
    nothing of them could be read."""

    connection: int
    request_offset: int
    requested_ns: int
    responded_ns: int | None
    broker: str
    client_id: str | None
    software_name: str | None
    software_version: str | None
    api_key: int
    api_version: int
    dialect: str
    request: JsonBody | None
    response: JsonBody | None

    @property
    def order(self) -> tuple[int, int, int]:
        """By the time of the request, and then by where it is."""
        return self.requested_ns, self.connection, self.request_offset

    @property
    def completed_ns(self) -> int:
        """When all of it was there."""
        return self.requested_ns if self.responded_ns is None else self.responded_ns

    @property
    def weight(self) -> int:
        """About how many objects keeping it takes."""
        return 1 + _weight(self.request) + _weight(self.response)


def heard_of(item: Exchange, bodies: Bodies) -> Heard | None:
    """None where nobody listens, or where no request was seen."""
    if item.request is None or item.api_key not in HEARD:
        return None
    software = item.software
    return Heard(
        item.connection.id,
        item.request.offset,
        item.request.first_ns,
        item.response.delivered_ns if item.response is not None else None,
        item.connection.broker,
        item.client_id,
        software.name if software is not None else None,
        software.version if software is not None else None,
        item.api_key,
        item.api_version,
        item.dialect,
        bodies.request.body if bodies.request is not None else None,
        trimmed(item.api_key, bodies.response.body if bodies.response is not None else None),
    )


def heard_of_row(row: Mapping[str, Any], request: str | None, response: str | None) -> Heard | None:
    """The same of a row of ``requests``, by the names of its columns, and the JSON texts that
    ``bodies`` has of its two frames."""
    if row["request_offset"] is None or row["api_key"] not in HEARD:
        return None
    return Heard(
        row["connection"],
        row["request_offset"],
        row["requested_ns"],
        row["responded_ns"],
        row["broker"],
        row["client_id"],
        row["software_name"],
        row["software_version"],
        row["api_key"],
        row["api_version"],
        row["dialect"],
        None if request is None else json.loads(request),
        trimmed(row["api_key"], None if response is None else json.loads(response)),
    )


def trimmed(api_key: int, response: JsonBody | None) -> JsonBody | None:
    """A response without what nobody needs to remember: the records."""
    if api_key != FETCH or response is None:
        return response
    return {name: response[name] for name in ("errorCode", "sessionId") if name in response}


def _weight(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_weight, value.values()), 1)
    if isinstance(value, list):
        return sum(map(_weight, value), 1)
    return 1
