"""Excerpts of exchanges: what this package needs of them.

One can be made from an exchange, or from a row of ``requests`` with its two rows of ``bodies``,
since the bodies are the same JSON. Of large bodies only the fields that are needed are kept:
records, subscriptions and assignments are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypedDict

import msgspec

from kproto.journal import ClientSoftware
from wiredump.body_texts import BodyTexts
from wiredump.model import Connection, Exchange

__all__ = [
    "ADD_OFFSETS", "ADD_PARTITIONS", "ALTER", "CONSUMER_HEARTBEAT", "DESCRIBE_CLUSTER", "END_TXN",
    "FETCH", "HEARTBEAT", "INIT_PRODUCER_ID", "INSTRUCTIVE", "JOIN_GROUP", "KEYS_OF",
    "LEAVE_GROUP", "LIST", "NEEDED", "PRODUCE", "SHARE_HEARTBEAT", "STREAMS_HEARTBEAT",
    "SYNC_GROUP", "TABLE_OF", "TXN_OFFSET_COMMIT",
    "Excerpt",
    "FetchRequest",
    "JsonBody",
    "excerpt_of", "excerpt_of_texts", "fetch_of_text",
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

NEEDED: Final = INSTRUCTIVE | frozenset(TABLE_OF)
"""API keys that any of the classes needs."""

_OF_CLIENTS: Final = 3
"""The last version of AddPartitionsToTxn that clients send."""


class FetchPartition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A partition of a Fetch request. -1 if it was not captured."""

    partition: int = -1
    fetch_offset: int = -1


class FetchTopic(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A topic of a Fetch request."""

    topic: str | None = None
    topic_id: str | None = None
    partitions: tuple[FetchPartition, ...] | None = ()


class FetchRequest(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a Fetch request that are kept. It is a struct because most exchanges may be
    fetches, and reading attributes takes a third of the time of reading dictionaries."""

    session_id: int = 0
    session_epoch: int = -1
    topics: tuple[FetchTopic, ...] | None = ()
    forgotten_topics_data: tuple[JsonBody, ...] | None = ()


class Excerpt(msgspec.Struct, frozen=True, gc=False):
    """The attributes are named after the columns of ``requests``. ``request`` and ``response`` are
    None if nothing of them could be read. A Fetch has ``fetch`` in place of ``request``. ``client``
    is empty in what earlier releases have stored."""

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
    fetch: FetchRequest | None = None
    client: str = ""

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
        """About how many objects it takes to keep it: a name and a value have ten characters."""
        return 1 + len(msgspec.json.encode((self.request, self.response, self.fetch))) // 10


def excerpt_of(item: Exchange, texts: BodyTexts) -> Excerpt | None:
    """Return the excerpt of an exchange; None if no class needs it, or if the request was not
    captured."""
    key, connection, frame, answer = item.api_key, item.connection, item.request, item.response
    if frame is None or key not in NEEDED:
        return None
    fetch = None
    if texts.decoded is None:
        request, response = (
            None if side is None else side.body for side in (texts.request, texts.response)
        )
        if key == FETCH:
            fetch, request = fetch_of_text(request), None
        bodies = _REQUESTS.of_text(key, request), _RESPONSES.of_text(key, response)
    else:
        value = texts.request_value()
        if key == FETCH:
            fetch, value = _fetch_of_value(value), None
        bodies = _REQUESTS.of_value(key, value), _RESPONSES.of_value(key, texts.response_value())
    return _excerpt(
        item.dialect, connection, connection.id, frame.offset, frame.first_ns,
        None if answer is None else answer.delivered_ns, item.client_id, item.software, key,
        item.api_version, *bodies, fetch,
    )  # fmt: skip


def excerpt_of_texts(
    dialect: str, connection: Connection, id_: int, offset: int, requested_ns: int,
    responded_ns: int | None, client_id: str | None, software: ClientSoftware | None, key: int,
    version: int, request: str | None, response: str | None,
) -> Excerpt | None:  # fmt: skip
    """Return the same of a whole exchange, from the JSON texts of its two bodies."""
    fetch = None
    if key == FETCH:
        fetch, request = fetch_of_text(request), None
    return _excerpt(
        dialect, connection, id_, offset, requested_ns, responded_ns, client_id, software, key,
        version, _REQUESTS.of_text(key, request), _RESPONSES.of_text(key, response), fetch,
    )  # fmt: skip


def _excerpt(
    dialect: str, connection: Connection, id_: int, offset: int, requested_ns: int,
    responded_ns: int | None, client_id: str | None, software: ClientSoftware | None, key: int,
    version: int, request: JsonBody | None, response: JsonBody | None, fetch: FetchRequest | None,
) -> Excerpt | None:  # fmt: skip
    if not _is_needed(key, version, request, response):
        return None
    name, release = (None, None) if software is None else (software.name, software.version)
    return Excerpt(
        id_, offset, requested_ns, responded_ns, connection.broker, client_id, name, release, key,
        version, dialect, request, response, fetch, connection.client,
    )  # fmt: skip


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


class _Kept:
    """By API key, the fields that are kept, and of which structs only some. Bodies of other keys
    are kept whole."""

    def __init__(self, trees: Mapping[int, _Tree]) -> None:
        self._types = {key: _type_of(tree) for key, tree in trees.items()}
        self._decode = {key: msgspec.json.Decoder(each).decode for key, each in self._types.items()}

    def of_text(self, key: int, text: str | None) -> JsonBody | None:
        """Return what is kept of a body as JSON."""
        if text is None:
            return None
        body: JsonBody = self._decode.get(key, msgspec.json.decode)(text)
        return body

    def of_value(self, key: int, body: JsonBody | None) -> JsonBody | None:
        """Return the same of a decoded body. A log may have values of other types, which stay."""
        if body is None or key not in self._types:
            return body
        try:
            kept: JsonBody = msgspec.convert(body, self._types[key])
        except msgspec.ValidationError:
            return body
        return kept


def _type_of(tree: _Tree) -> Any:
    """Return the type as which msgspec reads only the fields of a tree."""
    fields: dict[str, Any] = {
        name: list[_type_of(inner)] | None if inner else Any  # type: ignore[misc]
        for name, inner in tree.items()
    }
    return TypedDict("Kept", fields, total=False)  # type: ignore[operator]


_REQUESTS: Final = _Kept(
    {
        PRODUCE: _tree(
            "transactionalId", topicData=_tree("name topicId", partitionData=_tree("index"))
        ),
        JOIN_GROUP: _tree("groupId memberId reason"),
        SYNC_GROUP: _tree("groupId memberId generationId"),
        CONSUMER_HEARTBEAT: _tree(
            "groupId memberId memberEpoch instanceId serverAssignor topicPartitions"
        ),
        STREAMS_HEARTBEAT: _tree("groupId memberId memberEpoch instanceId activeTasks"),
    }
)
_RESPONSES: Final = _Kept(
    {
        PRODUCE: _tree("", responses=_tree("", partitionResponses=_tree("errorCode"))),
        FETCH: _tree("errorCode sessionId"),
        JOIN_GROUP: _tree(
            "errorCode generationId memberId leader protocolName", members=_tree("memberId")
        ),
        SYNC_GROUP: _tree("errorCode"),
        STREAMS_HEARTBEAT: _tree(
            "errorCode memberId memberEpoch activeTasks standbyTasks warmupTasks"
        ),
    }
)


_decode_fetch: Final = msgspec.json.Decoder(FetchRequest).decode


def fetch_of_text(text: str | None) -> FetchRequest | None:
    """Return what is kept of a Fetch request as JSON."""
    return None if text is None else _decode_fetch(text)


def _fetch_of_value(body: JsonBody | None) -> FetchRequest | None:
    """Return the same of a decoded one. A log may have values of other types: then None."""
    try:
        return None if body is None else msgspec.convert(body, FetchRequest)
    except msgspec.ValidationError:
        return None
