"""What the dispatcher asks of a transcript: the recorded answer to a request, as this connection
may be given it. The encoding, the order on the connection and the journal stay the dispatcher's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from struct import Struct
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from kproto.codegen.base import Message
from kproto.connection import RequestReceived, ServerConnection, UnsupportedRequest
from kproto.dialects import Dialect, dialect
from kproto.errors import KprotoError
from kproto.transcript import REDACTED, Exchange, Said, Transcript
from mockbroker.apis import Session
from mockbroker.cluster import Cluster
from mockbroker.replay import Cursor, Found, Recording, restamp

__all__ = ["Replay", "Replayed"]

_SASL: Final = frozenset({17, 36})
_FETCHES: Final = frozenset({1, 78})
"""Fetch and ShareFetch, which wait where there is nothing."""

_CORRELATION_ID: Final = Struct(">i")


class Replayed(NamedTuple):
    """``answer``: a body to encode at ``version``, whole bytes, None for silence; or, where
    ``closes``, the connection's end. It is due ``after_ms``. ``ends_sasl``: the client is then
    taken to have authenticated."""

    answer: Message | bytes | None
    version: int
    after_ms: float = 0.0
    closes: bool = False
    ends_sasl: bool = False


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
        self._recording = Recording(transcript)
        self._cluster = cluster
        self._latency = latency
        self._cursors: WeakKeyDictionary[ServerConnection, Cursor] = WeakKeyDictionary()

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
        cursor = self._cursors.get(connection)
        if cursor is None:
            cursor = self._cursors[connection] = Cursor(self._recording)
        found = cursor.find(key, version, body)
        if found is None:
            return None
        after_ms = self._after_ms(found, body)
        exchange = found.exchange
        if exchange.outcome == "disconnected":
            return Replayed(None, version, after_ms, closes=True)
        if exchange.response is None:
            return Replayed(None, version, after_ms)
        said = exchange.response
        used = 0 if exchange.fell_back else version
        if said.raw:
            return Replayed(_for_request(said.raw, correlation_id), used, after_ms)
        return Replayed(self._message(exchange, said, used), used, after_ms, False, found.ends_sasl)

    def _after_ms(self, found: Found, body: Any) -> float:
        """A fetch answered with what was given before waits as brokers wait for something new: or
        a client that goes on fetching would do nothing else."""
        if self._latency and found.exchange.latency_ms is not None:
            return found.exchange.latency_ms
        if found.again and found.exchange.api_key in _FETCHES:
            return float(max(getattr(body, "max_wait_ms", 0), 0))
        return 0.0

    def _message(self, exchange: Exchange, said: Said, version: int) -> Message:
        codec = _codec(exchange)
        api = codec.api(exchange.api_key, said.version)
        message = api.response.from_json(_readable(said.body or {}), said.version)
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


def _codec(exchange: Exchange) -> Dialect:
    try:
        return dialect(exchange.dialect)
    except KprotoError:
        return dialect("kafka")


def _for_request(raw: bytes, correlation_id: int) -> bytes:
    return raw[:4] + _CORRELATION_ID.pack(correlation_id) + raw[8:]


def _readable(value: Any) -> Any:
    """Secrets that were taken out are empty, but for the values of configs, which are text."""
    if isinstance(value, list):
        return [_readable(each) for each in value]
    if isinstance(value, dict):
        return {
            name: "" if each == REDACTED and name != "value" else _readable(each)
            for name, each in value.items()
        }
    return value
