"""An exchange, reduced to what this package needs.

It can be made from an exchange, or from a row of ``requests`` with its two rows of ``bodies``,
since the bodies are the same JSON. Of a Fetch response only the session's fields are kept.
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
"""API keys whose messages have topic names together with ids: Metadata, LeaderAndIsr,
UpdateMetadata, CreateTopics, DeleteTopics, ConsumerGroupDescribe, DescribeTopicPartitions,
ShareGroupDescribe."""

HEARD: Final = INSTRUCTIVE | {FETCH, ALTER, LIST, DESCRIBE_CLUSTER}
"""API keys that any of the classes needs."""


class Heard(msgspec.Struct, frozen=True, gc=False):
    """The attributes are named after the columns of ``requests``. ``request`` and ``response`` are
    None if nothing of them could be read."""

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
        """The sort key: the time of the request, then its place."""
        return self.requested_ns, self.connection, self.request_offset

    @property
    def completed_ns(self) -> int:
        """When the exchange was complete."""
        return self.requested_ns if self.responded_ns is None else self.responded_ns

    @property
    def weight(self) -> int:
        """About how many objects it takes to keep it."""
        return 1 + _weight(self.request) + _weight(self.response)


def heard_of(item: Exchange, bodies: Bodies) -> Heard | None:
    """Reduce an exchange; None if no class needs it, or if the request was not captured."""
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
    """Make the same from a row of ``requests``, by column names, and the JSON texts of its two
    bodies."""
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
    """Return a response without its records, which need not be kept."""
    if api_key != FETCH or response is None:
        return response
    return {name: response[name] for name in ("errorCode", "sessionId") if name in response}


def _weight(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_weight, value.values()), 1)
    if isinstance(value, list):
        return sum(map(_weight, value), 1)
    return 1
