"""Requests answered out of a transcript: the recorded answer, as this connection may be given it.

Which exchange of the transcript answers a request is for ``mockbroker.replay``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from struct import Struct
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from kproto.codec.message import Message
from kproto.connection import RequestReceived, ServerConnection
from kproto.dialects import Api, dialect
from kproto.errors import KprotoError
from kproto.schema.versions import Versions
from kproto.transcript import Exchange as RecordedExchange
from kproto.transcript import Transcript, TranscriptMessage
from mockbroker.apis import Session
from mockbroker.replay import (
    Composition,
    Cursor,
    RecordedMatch,
    RecordedParts,
    Recording,
    codec_of,
    forms_at,
    readable,
    restamp,
)
from mockbroker.serving.delivery import Delivery
from mockbroker.serving.exchange import CLOSE, Answer, Close, Exchange, Pending, Reply, Request
from mockbroker.simulation.cluster import Cluster

__all__ = ["Replay", "ReplayStage", "ReplayedAnswer"]

_SASL: Final = frozenset({17, 36})
_FETCHES: Final = frozenset({1, 78})
"""Fetch and ShareFetch, which wait where there is nothing."""

_CORRELATION_ID: Final = Struct(">i")


class ReplayedAnswer(NamedTuple):
    """``answer`` is a body to encode at ``version``, a whole frame, or None for silence; if
    ``closes``, the connection ends instead. It is due after ``after_ms``. ``ends_sasl``: the client
    counts as authenticated once it has the answer. ``missing`` names the topics and partitions of
    the request that were not recorded: the answer has an error for them."""

    answer: Message | bytes | None
    version: int
    after_ms: float = 0.0
    closes: bool = False
    ends_sasl: bool = False
    missing: str = ""


class Replay:
    """The answers of ``transcript``, for any number of connections.

    ``latency``: each is due as late as it was recorded. ``sleep`` waits for a number of seconds.
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
        self, connection: ServerConnection, session: Session, request: Request
    ) -> ReplayedAnswer | None:
        """Return the recorded answer, None if there is none to use. Raises KprotoError for a
        recorded body that does not fit its version."""
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
                return self._composed(connection, session, request)
        elif _is_by_partition(key):
            return None  # which one is unknown
        cursor = self._cursors.get(connection)
        if cursor is None:
            cursor = self._cursors[connection] = Cursor(self._recording)
        found = cursor.find(key, version, body)
        if found is None:
            return None
        return self._as_it_was(found, session, version, correlation_id, body)

    def _as_it_was(
        self, found: RecordedMatch, session: Session, version: int, correlation_id: int, body: Any
    ) -> ReplayedAnswer:
        exchange = found.exchange
        after_ms = self._after_ms(exchange.api_key, exchange.latency_ms, found.again, body)
        if exchange.outcome == "disconnected":
            return ReplayedAnswer(None, version, after_ms, closes=True)
        if exchange.response is None:
            return ReplayedAnswer(None, version, after_ms)
        said = exchange.response
        used = 0 if exchange.fell_back else version
        if said.raw:
            return ReplayedAnswer(_for_request(said.raw, correlation_id), used, after_ms)
        return ReplayedAnswer(
            self._message(exchange, session, said, used), used, after_ms, False, found.ends_sasl
        )

    def _composed(
        self, connection: ServerConnection, session: Session, request: RequestReceived
    ) -> ReplayedAnswer | None:
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
            whole = RecordedMatch(found.exchange, found.again, ends_sasl=False)
            return self._as_it_was(whole, session, version, request.header.correlation_id, body)
        restamp(found.body, partial(self._endpoint, session))
        found.body.encode(version)
        after_ms = self._after_ms(api.api_key, found.latency_ms, found.again, body)
        return ReplayedAnswer(found.body, version, after_ms, missing=found.missing)

    def _after_ms(self, api_key: int, latency_ms: float | None, again: bool, body: Any) -> float:
        """A fetch answered with what was given before waits as brokers wait for something new: or
        a client that goes on fetching would do nothing else."""
        if self._latency and latency_ms is not None:
            return latency_ms
        if again and api_key in _FETCHES:
            return float(max(getattr(body, "max_wait_ms", 0), 0))
        return 0.0

    def _message(
        self, exchange: RecordedExchange, session: Session, said: TranscriptMessage, version: int
    ) -> Message:
        codec = codec_of(exchange)
        api = codec.api(exchange.api_key, said.version)
        message = api.response.from_json(readable(said.body or {}), said.version)
        restamp(message, partial(self._endpoint, session))
        message.encode(version)  # what this version cannot carry is refused here, not later
        return message

    def _endpoint(self, session: Session, node_id: int, _host: str, _port: int) -> tuple[str, int]:
        """A broker of that id, or, where the mock has none, always the same other one."""
        brokers = self._cluster.brokers
        broker = brokers.get(node_id)
        if broker is None:
            ids = sorted(brokers)
            broker = brokers[ids[node_id % len(ids)]]
        reached = broker.at(session.listener) or broker
        return reached.host, reached.port


def _is_by_partition(api_key: int) -> bool:
    api: Api | None = dialect("kafka").apis.get(api_key)
    return api is not None and forms_at(api, api.request.VALID_VERSIONS.highest) is not None


def _for_request(raw: bytes, correlation_id: int) -> bytes:
    return raw[:4] + _CORRELATION_ID.pack(correlation_id) + raw[8:]


class ReplayStage:
    """Answers with a recording. A request it has no answer to is journalled, and goes on to the
    other stages; it counts as unsupported if the broker does not serve it."""

    def __init__(
        self, replay: Replay, delivery: Delivery, served_by: Callable[[int], Mapping[int, Versions]]
    ) -> None:
        self._replay = replay
        self._delivery = delivery
        self._served_by = served_by

    def answer(self, exchange: Exchange) -> Answer | None:
        if not exchange.request.expects_response:
            return Reply(None)
        problem = "nothing like it was recorded"
        found = None
        try:
            found = self._replay.answer(exchange.connection, exchange.session, exchange.request)
        except KprotoError as error:
            problem = f"the recorded answer does not fit: {error}"
        if found is None:
            self._delivery.note(exchange, "replay-miss", problem)
            served = self._served_by(exchange.session.broker_id).get(exchange.api_key)
            if served is None or exchange.version not in served:
                exchange.mark_unsupported()
            return None
        if found.missing:
            self._delivery.note(exchange, "replay-miss", found.missing)
        if found.after_ms:
            return Pending(partial(self._later, exchange, found))
        return self._reply(exchange, found)

    async def _later(self, exchange: Exchange, found: ReplayedAnswer) -> Reply | Close:
        await self._replay.sleep(found.after_ms / 1000)
        return self._reply(exchange, found)

    def _reply(self, exchange: Exchange, found: ReplayedAnswer) -> Reply | Close:
        if found.closes or found.answer is None:
            ended = "the connection ended" if found.closes else "no answer came"
            self._delivery.note(exchange, "replayed", f"here {ended}")
            return CLOSE if found.closes else Reply(None)
        return Reply(found.answer, found.version, "replayed", ends_sasl=found.ends_sasl)
