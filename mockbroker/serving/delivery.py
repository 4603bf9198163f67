"""The last step of every exchange: an answer is encoded, takes its place in the order of its
connection, and is written to the journal. No other module of ``serving`` writes the journal.

Passwords are left out, as ``redaction`` says.
"""

from __future__ import annotations

import time
from struct import Struct
from typing import Final

from kproto.connection import (
    MalformedRequest,
    RequestReceived,
    UnexpectedRequest,
)
from kproto.dialects import Dialect
from kproto.journal import Direction, Journal
from mockbroker.apis import Session
from mockbroker.serving.exchange import Exchange, Reply
from mockbroker.serving.redaction import (
    SASL_AUTHENTICATE,
    redacted_frame,
    redacted_request,
    redacted_token,
)
from mockbroker.serving.response_cache import ResponseCache

__all__ = ["Delivery"]

_PREFIX: Final = Struct(">ihhi")
"""Size, api key, api version, correlation id: the beginning of every request."""


class Delivery:
    def __init__(self, journal: Journal, codec: Dialect, cache: ResponseCache) -> None:
        self._journal = journal
        self._codec = codec
        self._cache = cache

    # ---- answers -----------------------------------------------------------------------------

    def send(self, exchange: Exchange, reply: Reply) -> bytes:
        """Return the bytes to write, and record the response.

        Raises KprotoError for a body that its version cannot carry.
        """
        data = self.commit(exchange, reply)
        if not exchange.request.expects_response:
            if reply.event:
                self.note(exchange, reply.event)
        elif reply.body is not None:
            version = exchange.version if reply.version is None else reply.version
            self.record(exchange, version, data, reply.event)
            if reply.log_offset is not None:
                request = exchange.request
                assert isinstance(request, RequestReceived)
                self._cache.remember(exchange.session, request, data, reply.log_offset)
        return data

    def commit(self, exchange: Exchange, reply: Reply) -> bytes:
        """As ``send``, without a record of the response: for an answer that is changed before it
        goes out."""
        request, body = exchange.request, reply.body
        if not request.expects_response:
            return b""
        if body is None:
            return exchange.connection.drop_response(request)
        if isinstance(body, bytes):
            return exchange.connection.send_bytes(request, body)
        return exchange.connection.send_response(request, body, api_version=reply.version)

    def send_known(self, session: Session, data: bytes, limit: int) -> tuple[list[bytes], int]:
        """Answer the whole frames at the start of ``data`` that the response cache knows.

        Returns the responses, and how many bytes their requests take. Stops once the responses have
        ``limit`` bytes: small requests can have large answers.
        """
        answers: list[bytes] = []
        at, length, left = 0, len(data), limit
        known = self._cache.responses(session.broker_id)
        if known is None:
            return answers, 0
        record, now = self._journal.record, time.time_ns()
        broker_id, connection_id, peer = session.broker_id, session.connection_id, session.peer
        while left > 0 and length - at >= _PREFIX.size:
            size, _, _, correlation_id = _PREFIX.unpack_from(data, at)
            end = at + 4 + size
            if end > length or size < 8:
                break
            found = known.get(data[at + 4 : at + 8] + data[at + 12 : end])
            if found is None:
                break
            head, tail, api_key, version, client_id, software, dialect_name = found
            if software is not None:
                session.software = software
            answer = head + data[at + 8 : at + 12] + tail
            record(
                now, broker_id, connection_id, "request", peer, api_key, version, correlation_id,
                client_id, session.software, dialect_name, data[at:end],
            )  # fmt: skip
            record(
                now, broker_id, connection_id, "response", peer, api_key, version, correlation_id,
                client_id, session.software, dialect_name, answer,
            )  # fmt: skip
            answers.append(answer)
            left -= len(answer)
            at = end
        return answers, at

    # ---- entries of the journal --------------------------------------------------------------

    def receive(self, exchange: Exchange, note: str = "") -> None:
        """Record the request."""
        request, session = exchange.request, exchange.session
        raw = request.frame
        if not isinstance(request, RequestReceived):
            raw = redacted_frame(session, exchange.api_key, raw)
        elif exchange.api_key == SASL_AUTHENTICATE:
            raw = redacted_request(session, request)
        self._journal.record(
            time.time_ns(), session.broker_id, session.connection_id, "request", session.peer,
            exchange.api_key, exchange.version, exchange.correlation_id, exchange.client_id,
            session.software, exchange.dialect.name, raw, exchange.mark, note,
        )  # fmt: skip

    def record(
        self,
        exchange: Exchange,
        version: int,
        raw: bytes,
        event: str,
        correlation_id: int | None = None,
    ) -> None:
        """Record a response of that version. ``correlation_id`` is the one in the frame, where that
        is not the request's."""
        session = exchange.session
        self._journal.record(
            time.time_ns(), session.broker_id, session.connection_id, "response", session.peer,
            exchange.api_key, version,
            exchange.correlation_id if correlation_id is None else correlation_id,
            exchange.client_id, session.software, exchange.dialect.name, raw, event,
        )  # fmt: skip

    def note(self, exchange: Exchange, event: str, note: str = "") -> None:
        """Record something that happened to a request."""
        request, session = exchange.request, exchange.session
        raw = redacted_request(session, request) if isinstance(request, RequestReceived) else b""
        self._journal.record(
            time.time_ns(), session.broker_id, session.connection_id, "event", session.peer,
            exchange.api_key, exchange.version, exchange.correlation_id, exchange.client_id,
            session.software, exchange.dialect.name, raw, event, note,
        )  # fmt: skip

    def note_frame(
        self, session: Session, frame: UnexpectedRequest | MalformedRequest, event: str, note: str
    ) -> None:
        """Record a frame that is no request, or none that could be served in its place."""
        client_id = None if isinstance(frame, MalformedRequest) else frame.client_id
        self._journal.record(
            time.time_ns(), session.broker_id, session.connection_id, "request", session.peer,
            frame.api_key, frame.api_version, frame.correlation_id, client_id, session.software,
            self._codec.name, redacted_frame(session, frame.api_key, frame.frame), event, note,
        )  # fmt: skip

    def note_token(self, session: Session, direction: Direction, raw: bytes) -> None:
        """Record a raw SASL token: as the client sent it, or the frame that answers it."""
        self._journal.record(
            time.time_ns(), session.broker_id, session.connection_id, direction, session.peer,
            client_software=session.software, dialect=self._codec.name,
            raw=redacted_token(session, raw) if direction == "request" else raw,
            event="sasl-token",
        )  # fmt: skip

    def note_event(self, session: Session, event: str, note: str = "") -> None:
        """Record something that happened to a connection."""
        self._journal.record(
            time.time_ns(), session.broker_id, session.connection_id, "event", session.peer,
            client_software=session.software, dialect=self._codec.name, event=event, note=note,
        )  # fmt: skip
