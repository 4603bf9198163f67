"""An exchange, reduced to what this package needs.

It can be made from an exchange, or from a row of ``requests`` with its two rows of ``bodies``,
since the bodies are the same JSON. Of large bodies only the fields that are needed are kept:
records, subscriptions and assignments are not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypedDict

import msgspec

from kproto.journal import ClientSoftware
from wiredump.body_texts import BodyTexts
from wiredump.model import Connection, Exchange

__all__ = [
    "ADD_OFFSETS", "ADD_PARTITIONS", "ALTER", "CONSUMER_HEARTBEAT", "DESCRIBE_CLUSTER", "END_TXN",
    "FETCH", "HEARD", "HEARTBEAT", "INIT_PRODUCER_ID", "INSTRUCTIVE", "JOIN_GROUP", "KEYS_OF",
    "LEAVE_GROUP", "LIST", "PRODUCE", "SHARE_HEARTBEAT", "STREAMS_HEARTBEAT", "SYNC_GROUP",
    "TABLE_OF", "TXN_OFFSET_COMMIT",
    "Heard",
    "JsonBody",
    "heard_of", "heard_of_row", "heard_of_texts",
]  # fmt: skip

JsonBody = dict[str, Any]

PRODUCE: Final = 0
FETCH: Final = 1
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
INIT_PRODUCER_ID: Final = 22
ADD_PARTITIONS: Final = 24
ADD_OFFSETS: Final = 25
END_TXN: Final = 26
TXN_OFFSET_COMMIT: Final = 28
ALTER: Final = 45
LIST: Final = 46
DESCRIBE_CLUSTER: Final = 60
CONSUMER_HEARTBEAT: Final = 68
SHARE_HEARTBEAT: Final = 76
STREAMS_HEARTBEAT: Final = 88

INSTRUCTIVE: Final = frozenset({3, 4, 6, 19, 20, 69, 75, 77})
"""API keys whose messages have topic names together with ids: Metadata, LeaderAndIsr,
UpdateMetadata, CreateTopics, DeleteTopics, ConsumerGroupDescribe, DescribeTopicPartitions,
ShareGroupDescribe."""

KEYS_OF: Final[Mapping[str, frozenset[int]]] = {
    "fetches": frozenset({FETCH}),
    "reassignments": frozenset({3, 20, 75, ALTER, LIST, DESCRIBE_CLUSTER}),
    "groups": frozenset({JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, CONSUMER_HEARTBEAT,
                         SHARE_HEARTBEAT, STREAMS_HEARTBEAT}),
    "transactions": frozenset({PRODUCE, INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN,
                               TXN_OFFSET_COMMIT}),
}  # fmt: skip
"""The API keys whose exchanges a table is made of. No two tables share one."""

TABLE_OF: Final = {key: table for table, keys in KEYS_OF.items() for key in keys}

HEARD: Final = INSTRUCTIVE | frozenset(TABLE_OF)
"""API keys that any of the classes needs."""

_OF_CLIENTS: Final = 3
"""The last version of AddPartitionsToTxn that clients send."""


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
        request = _fetch_weight(self.request) if self.api_key == FETCH else _weight(self.request)
        return 1 + request + _weight(self.response)


def heard_of(item: Exchange, texts: BodyTexts) -> Heard | None:
    """Reduce an exchange; None if no class needs it, or if the request was not captured."""
    if item.request is None or item.api_key not in HEARD:
        return None
    if item.api_key == PRODUCE and texts.request is not None and texts.decoded is None:
        body = texts.request.body
        if body is None or not msgspec.json.decode(body, type=_Produced).transactionalId:
            return None  # as _is_needed, but sooner
    request, response = texts.request_value(), texts.response_value()
    if not _is_needed(item.api_key, item.api_version, request, response):
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
        _trimmed(_REQUESTS, item.api_key, request),
        _trimmed(_RESPONSES, item.api_key, response),
    )


class _Produced(msgspec.Struct):
    """What of a Produce request says whether it is needed."""

    transactionalId: str | None = None  # the name in JSON


def heard_of_texts(
    dialect: str, connection: Connection, id_: int, offset: int, requested_ns: int,
    responded_ns: int | None, client_id: str | None, software: ClientSoftware | None, key: int,
    version: int, request: str, response: str | None,
) -> Heard | None:  # fmt: skip
    """Make the same of a whole exchange, from the JSON texts of its two bodies."""
    asked: JsonBody | None
    if key == FETCH:  # most exchanges may be these, and most of their bytes are not kept
        asked, answered = _fetch(request), None if response is None else _fetched(response)
    else:
        asked, answered = _loads(request), None if response is None else _loads(response)
        if not _is_needed(key, version, asked, answered):
            return None
        asked, answered = _trimmed(_REQUESTS, key, asked), _trimmed(_RESPONSES, key, answered)
    return Heard(
        id_, offset, requested_ns, responded_ns, connection.broker, client_id,
        software.name if software is not None else None,
        software.version if software is not None else None,
        key, version, dialect, asked, answered,
    )  # fmt: skip


class _AskedPartition(TypedDict, total=False):
    partition: int
    fetchOffset: int


class _AskedTopic(TypedDict, total=False):
    topic: str | None
    topicId: str
    partitions: list[_AskedPartition] | None


class _Fetch(TypedDict, total=False):
    """The members of a Fetch request that are kept: those that ``_REQUESTS`` names."""

    sessionId: int
    sessionEpoch: int
    topics: list[_AskedTopic] | None
    forgottenTopicsData: list[Any] | None


class _Fetched(TypedDict, total=False):
    """The members of its response that are kept."""

    errorCode: int
    sessionId: int


_loads: Final[Callable[[str], Any]] = msgspec.json.decode
_fetch: Final[Callable[[str], Any]] = msgspec.json.Decoder(_Fetch).decode
_fetched: Final[Callable[[str], Any]] = msgspec.json.Decoder(_Fetched).decode


def heard_of_row(row: Mapping[str, Any], request: str | None, response: str | None) -> Heard | None:
    """Make the same from a row of ``requests``, by column names, and the JSON texts of its two
    bodies."""
    key, version = row["api_key"], row["api_version"]
    if row["request_offset"] is None or key not in HEARD:
        return None
    asked = None if request is None else json.loads(request)
    answered = None if response is None else json.loads(response)
    if not _is_needed(key, version, asked, answered):
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
        key,
        version,
        row["dialect"],
        _trimmed(_REQUESTS, key, asked),
        _trimmed(_RESPONSES, key, answered),
    )


def _is_needed(key: int, version: int, request: JsonBody | None, response: JsonBody | None) -> bool:
    """Whether the exchange says anything: most Produce requests are of no transaction, and most
    heartbeats are answered without news."""
    if key in (PRODUCE, INIT_PRODUCER_ID):
        return request is not None and bool(request.get("transactionalId"))
    if key == HEARTBEAT:
        return response is not None and bool(response.get("errorCode"))
    return key != ADD_PARTITIONS or version <= _OF_CLIENTS


# ---- what is kept ----------------------------------------------------------------------------

_Tree: TypeAlias = Mapping[str, "_Tree"]

_WHOLE: Final[_Tree] = {}


def _tree(names: str, **inner: _Tree) -> _Tree:
    return dict.fromkeys(names.split(), _WHOLE) | inner


_REQUESTS: Final[Mapping[int, _Tree]] = {
    PRODUCE: _tree(
        "transactionalId", topicData=_tree("name topicId", partitionData=_tree("index"))
    ),
    FETCH: _tree(
        "sessionId sessionEpoch forgottenTopicsData",
        topics=_tree("topic topicId", partitions=_tree("partition fetchOffset")),
    ),
    JOIN_GROUP: _tree("groupId memberId reason"),
    SYNC_GROUP: _tree("groupId memberId generationId"),
    CONSUMER_HEARTBEAT: _tree(
        "groupId memberId memberEpoch instanceId serverAssignor topicPartitions"
    ),
    STREAMS_HEARTBEAT: _tree("groupId memberId memberEpoch instanceId activeTasks"),
}
_RESPONSES: Final[Mapping[int, _Tree]] = {
    PRODUCE: _tree("", responses=_tree("", partitionResponses=_tree("errorCode"))),
    FETCH: _tree("errorCode sessionId"),
    JOIN_GROUP: _tree(
        "errorCode generationId memberId leader protocolName", members=_tree("memberId")
    ),
    SYNC_GROUP: _tree("errorCode"),
    STREAMS_HEARTBEAT: _tree("errorCode memberId memberEpoch activeTasks standbyTasks warmupTasks"),
}
"""By API key, the fields that are kept, and of which structs only some. Others are kept whole."""


def _trimmed(kept: Mapping[int, _Tree], key: int, body: JsonBody | None) -> JsonBody | None:
    tree = kept.get(key)
    return body if tree is None or body is None else _only(tree, body)


def _only(tree: _Tree, value: Any) -> Any:
    if isinstance(value, list):
        return [_only(tree, each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _only(inner, value[name]) if inner else value[name]
        for name, inner in tree.items()
        if name in value
    }


def _fetch_weight(request: JsonBody | None) -> int:
    """Do the same for what is kept of a Fetch request, as most exchanges may be these."""
    try:
        parts = [topic["partitions"] for topic in (request or {}).get("topics") or ()]
        return 5 + 3 * len(parts) + 3 * sum(map(len, parts))
    except (AttributeError, KeyError, TypeError):  # a log may have other values
        return _weight(request)


def _weight(value: Any) -> int:
    if isinstance(value, dict):
        inside = value.values()
    elif isinstance(value, list):
        inside = value  # type: ignore[assignment]
    else:
        return 1
    weight = 1 + len(inside)
    for each in inside:  # most are no containers, and a call for each would take most of the time
        if type(each) in _CONTAINERS:
            weight += _weight(each) - 1
    return weight


_CONTAINERS: Final = (dict, list)
