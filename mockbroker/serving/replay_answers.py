"""What the dispatcher asks of a transcript: the recorded answer to a request, as this connection
may be given it. The encoding, the order on the connection and the journal stay the dispatcher's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from struct import Struct
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from kproto.codec.message import Message
from kproto.connection import RequestReceived, ServerConnection, UnsupportedRequest
from kproto.dialects import Api, dialect
from kproto.transcript import Exchange, Said, Transcript
from mockbroker.apis import Session
from mockbroker.cluster import Cluster
from mockbroker.replay import (
    Composition,
    Cursor,
    Found,
    RecordedParts,
    Recording,
    codec_of,
    forms_at,
    readable,
    restamp,
)

__all__ = ["Replay", "Replayed"]

_SASL: Final = frozenset({17, 36})
_FETCHES: Final = frozenset({1, 78})
"""Fetch and ShareFetch, which wait where there is nothing."""

_CORRELATION_ID: Final = Struct(">i")


class Replayed(NamedTuple):
    """``answer``: a body to encode at ``version``, whole bytes, None for silence; or, where
    ``closes``, the connection's end. It is due ``after_ms``. ``ends_sasl``: the client is then
    taken to have authenticated. ``missing``: of what the request names nothing was recorded, and
    the answer has an error for it."""

    answer: Message | bytes | None
    version: int
    after_ms: float = 0.0
    closes: bool = False
    ends_sasl: bool = False
    missing: str = ""


class Replay:
    """Answers from ``transcript``, to any number of connections.

    ``latency``: as late as they were recorded. ``sleep`` waits for so many seconds.
    """

    def __init__(
        self,
        transcript: Transcript,
        cluster: Cluster,
        *,
        latency: bool = False,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.sleep = sleep
        self._parts = RecordedParts(transcript)
        self._recording = Recording(transcript, self._parts.names)
        self._cluster = cluster
        self._latency = latency
        self._cursors: WeakKeyDictionary[ServerConnection, Cursor] = WeakKeyDictionary()
        self._composing: WeakKeyDictionary[ServerConnection, Composition] = WeakKeyDictionary()

    def answer(
        self,
        connection: ServerConnection,
        session: Session,
        request: RequestReceived | UnsupportedRequest,
    ) -> Replayed | None:
        """What was recorded; None where nothing was that can be used. Raises KprotoError for a
        recorded body that is none of its version."""
        if isinstance(request, RequestReceived):
            key, version = request.api.api_key, request.header.request_api_version
            body, correlation_id = request.body, request.header.correlation_id
        else:
            key, version, body = request.api_key, request.api_version, None
            correlation_id = request.correlation_id
        if session.sasl is not None and key in _SASL:
            return None
        if isinstance(request, RequestReceived):
            if forms_at(request.api, version) is not None:
                return self._composed(connection, request)
        elif _is_by_partition(key):
            return None  # nobody can say which
        cursor = self._cursors.get(connection)
        if cursor is None:
            cursor = self._cursors[connection] = Cursor(self._recording)
        found = cursor.find(key, version, body)
        if found is None:
            return None
        return self._as_it_was(found, version, correlation_id, body)

    def _as_it_was(self, found: Found, version: int, correlation_id: int, body: Any) -> Replayed:
        exchange = found.exchange
        after_ms = self._after_ms(exchange.api_key, exchange.latency_ms, found.again, body)
        if exchange.outcome == "disconnected":
            return Replayed(None, version, after_ms, closes=True)
        if exchange.response is None:
            return Replayed(None, version, after_ms)
        said = exchange.response
        used = 0 if exchange.fell_back else version
        if said.raw:
            return Replayed(_for_request(said.raw, correlation_id), used, after_ms)
        return Replayed(self._message(exchange, said, used), used, after_ms, False, found.ends_sasl)

    def _composed(self, connection: ServerConnection, request: RequestReceived) -> Replayed | None:
        """An answer put together by topic and partition."""
        composing = self._composing.get(connection)
        if composing is None:
            composing = self._composing[connection] = Composition(self._parts)
        api, version, body = request.api, request.header.request_api_version, request.body
        found = composing.answer(api, version, body)
        if found is None:
            return None
        if found.body is None:
            assert found.exchange is not None
            whole = Found(found.exchange, found.again, ends_sasl=False)
            return self._as_it_was(whole, version, request.header.correlation_id, body)
        restamp(found.body, self._endpoint)
        found.body.encode(version)
        after_ms = self._after_ms(api.api_key, found.latency_ms, found.again, body)
        return Replayed(found.body, version, after_ms, missing=found.missing)

    def _after_ms(self, api_key: int, latency_ms: float | None, again: bool, body: Any) -> float:
        """A fetch answered with what was given before waits as brokers wait for something new: or
        a client that goes on fetching would do nothing else."""
        if self._latency and latency_ms is not None:
            return latency_ms
        if again and api_key in _FETCHES:
            return float(max(getattr(body, "max_wait_ms", 0), 0))
        return 0.0

    def _message(self, exchange: Exchange, said: Said, version: int) -> Message:
        codec = codec_of(exchange)
        api = codec.api(exchange.api_key, said.version)
        message = api.response.from_json(readable(said.body or {}), said.version)
        restamp(message, self._endpoint)
        message.encode(version)  # what this version cannot carry is refused here, not later
        return message

    def _endpoint(self, node_id: int) -> tuple[str, int]:
        """A broker of that id, or, where the mock has none, always the same other one."""
        brokers = self._cluster.brokers
        broker = brokers.get(node_id)
        if broker is None:
            ids = sorted(brokers)
            broker = brokers[ids[node_id % len(ids)]]
        return broker.host, broker.port


def _is_by_partition(api_key: int) -> bool:
    api: Api | None = dialect("kafka").apis.get(api_key)
    return api is not None and forms_at(api, api.request.VALID_VERSIONS.highest) is not None


def _for_request(raw: bytes, correlation_id: int) -> bytes:
    return raw[:4] + _CORRELATION_ID.pack(correlation_id) + raw[8:]
