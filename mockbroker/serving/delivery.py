"""The last step of every exchange: an answer is encoded, takes its place in the order of its
connection, and is written to the journal. No other module of ``serving`` writes the journal.

The response cache keeps encoded answers, so that an equal request needs no other step.

Passwords are left out, as ``redaction`` says.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any, Final, TypeAlias

import msgspec

from kproto.codec.message import Buffer, Message
from kproto.connection import MalformedRequest, RequestReceived, UnexpectedRequest
from kproto.dialects import Dialect
from kproto.journal import ClientSoftware, Direction, Journal
from kproto.messages.produce_request import ProduceRequest
from mockbroker.apis import Session
from mockbroker.apis.handlers.api_versions import API_VERSIONS
from mockbroker.serving.exchange import Exchange, Frames, Reply
from mockbroker.serving.redaction import (
    REDACTED,
    redacted_frame,
    redacted_request,
    redacted_response,
    redacted_token,
)
from mockbroker.simulation.log.batches.batch_header import HEADER_SIZE
from mockbroker.simulation.state.cluster_state import ActionLog

__all__ = ["CachedResponse", "Delivery", "ResponseCache"]

_PREFIX: Final = Struct(">ihhi")
"""Size, api key, api version, correlation id: the beginning of every request."""

_CORRELATION_END: Final = 8
"""Of a response."""
_MAX_REQUEST: Final = 4096
_MAX_RESPONSES: Final = 256
_LARGE: Final = 64 * 1024
"""Records of this size are shared by the log and the journal."""
_MOST_BETWEEN: Final = 4096
"""Where in a request the next records are looked for."""

_CONTROLLER_ID: Final = Struct(">i")


class DrawnField(msgspec.Struct, frozen=True):
    """The ``controller_id`` of a response that is drawn anew for each equal request; ``offset`` is
    counted from the end of the correlation id."""

    offset: int
    draw: Callable[[], int]

    def drawn(self, tail: bytes) -> bytes:
        """Return the part of a response behind its correlation id, with another id."""
        end = self.offset + _CONTROLLER_ID.size
        return tail[: self.offset] + _CONTROLLER_ID.pack(self.draw()) + tail[end:]


CachedResponse: TypeAlias = tuple[
    bytes, bytes, int, int, str | None, ClientSoftware | None, str, DrawnField | None
]
"""The response before and behind its correlation id; api key and version; client id; for
ApiVersions, the software that the client names; the dialect; the field that is drawn anew."""


class ResponseCache:
    """Responses by the bytes of their requests: by receiving broker and listener, bounded, and
    empty again as soon as ``log`` has grown.

    Clients send the same few requests over and over: ApiVersions, Metadata. Such a response depends
    on the bytes of the request, the receiving broker and listener, and the cluster state, so equal
    bytes get an equal response until the action log grows. The correlation id is left out of both:
    it stands at the same place in every header.
    """

    def __init__(self, log: ActionLog) -> None:
        self._log = log
        self._known: dict[int | tuple[int, str], dict[bytes, CachedResponse]] = {}
        self._offset = -1
        self.keys: set[bytes] = set()
        """The api keys and versions, as they stand in a frame, of all requests it knew."""

    def responses(self, session: Session) -> dict[bytes, CachedResponse] | None:
        """Those of a session, by the request's bytes without its size and correlation id; None if
        there are none that still hold."""
        known = self._known.get(session.view)
        return None if known is None or self._offset != len(self._log) else known

    def remember(
        self,
        session: Session,
        request: RequestReceived,
        response: bytes,
        offset: int,
        drawn: DrawnField | None,
    ) -> None:
        """``response`` held while the log had ``offset`` entries."""
        frame, header = request.frame, request.header
        if len(frame) > _MAX_REQUEST or offset != len(self._log):
            return
        if offset != self._offset:
            self._known.clear()
            self._offset = offset
        known = self._known.setdefault(session.view, {})
        if len(known) >= _MAX_RESPONSES:
            known.clear()
        self.keys.add(frame[4:8])
        known[frame[4:8] + frame[12:]] = (
            response[:4],
            response[8:],
            header.request_api_key,
            header.request_api_version,
            header.client_id,
            session.software if header.request_api_key == API_VERSIONS else None,
            request.dialect.name,
            drawn,
        )

    def forget(self) -> None:
        """Drop every response: equal requests are about to be answered otherwise."""
        self._known.clear()


class Delivery:
    def __init__(self, journal: Journal, codec: Dialect, cache: ResponseCache) -> None:
        self._journal = journal
        self._codec = codec
        self._cache = cache

    # ---- answers -----------------------------------------------------------------------------

    def send(self, exchange: Exchange, reply: Reply) -> Frames:
        """Return what to write, and record the response.

        Raises KprotoError for a body that its version cannot carry.
        """
        if reply.in_parts:
            return self._send_parts(exchange, reply)
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
                drawn = _drawn_field(exchange, reply, version, data)
                self._cache.remember(exchange.session, request, data, reply.log_offset, drawn)
        return data

    def _send_parts(self, exchange: Exchange, reply: Reply) -> list[Buffer]:
        request, body = exchange.request, reply.body
        assert isinstance(request, RequestReceived), "a handler has answered it"
        assert isinstance(body, Message), "a handler has made it"
        parts = exchange.connection.send_response_parts(request, body, api_version=reply.version)
        version = exchange.version if reply.version is None else reply.version
        session = exchange.session
        self._journal.record_parts(
            parts, time.time_ns(), session.node_id, session.connection_id, "response",
            session.peer, exchange.api_key, version, exchange.correlation_id, exchange.client_id,
            session.software, exchange.dialect.name, reply.event, "", session.listener,
        )  # fmt: skip
        return parts

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

    def may_know(self, data: bytes) -> bool:
        """Whether the response cache may know the request at the start of ``data``."""
        return data[4:8] in self._cache.keys

    def send_known(
        self, session: Session, data: bytes, limit: int, most: int
    ) -> tuple[list[bytes], int]:
        """Answer the whole frames at the start of ``data`` that the response cache knows.

        Returns the responses, and how many bytes their requests take. Stops after ``most`` of them,
        and once the responses have ``limit`` bytes: small requests can have large answers.
        """
        answers: list[bytes] = []
        at, length, left = 0, len(data), limit
        known = self._cache.responses(session)
        if known is None:
            return answers, 0
        record, now = self._journal.record, time.time_ns()
        if session.listener:
            record = partial(record, listener=session.listener)
        broker_id, connection_id, peer = session.node_id, session.connection_id, session.peer
        while left > 0 and length - at >= _PREFIX.size and len(answers) < most:
            size, _, _, correlation_id = _PREFIX.unpack_from(data, at)
            end = at + 4 + size
            if end > length or not 8 <= size <= _MAX_REQUEST:
                break
            found = known.get(data[at + 4 : at + 8] + data[at + 12 : end])
            if found is None:
                break
            head, tail, api_key, version, client_id, software, dialect_name, drawn = found
            if drawn is not None:
                tail = drawn.drawn(tail)
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
        elif exchange.api_key in REDACTED:
            raw = redacted_request(session, request)
        elif len(raw) >= _LARGE and isinstance(request.body, ProduceRequest):
            self._journal.record_parts(
                _around_records(raw, request.body), time.time_ns(), session.node_id,
                session.connection_id, "request", session.peer, exchange.api_key, exchange.version,
                exchange.correlation_id, exchange.client_id, session.software,
                exchange.dialect.name, exchange.mark, note, session.listener,
            )  # fmt: skip
            return
        self._journal.record(
            time.time_ns(), session.node_id, session.connection_id, "request", session.peer,
            exchange.api_key, exchange.version, exchange.correlation_id, exchange.client_id,
            session.software, exchange.dialect.name, raw, exchange.mark, note, session.listener,
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
        raw = redacted_response(exchange.dialect, exchange.api_key, version, raw)
        self._journal.record(
            time.time_ns(), session.node_id, session.connection_id, "response", session.peer,
            exchange.api_key, version,
            exchange.correlation_id if correlation_id is None else correlation_id,
            exchange.client_id, session.software, exchange.dialect.name, raw, event, "",
            session.listener,
        )  # fmt: skip

    def note(self, exchange: Exchange, event: str, note: str = "") -> None:
        """Record something that happened to a request."""
        request, session = exchange.request, exchange.session
        raw = redacted_request(session, request) if isinstance(request, RequestReceived) else b""
        self._journal.record(
            time.time_ns(), session.node_id, session.connection_id, "event", session.peer,
            exchange.api_key, exchange.version, exchange.correlation_id, exchange.client_id,
            session.software, exchange.dialect.name, raw, event, note, session.listener,
        )  # fmt: skip

    def note_frame(
        self, session: Session, frame: UnexpectedRequest | MalformedRequest, event: str, note: str
    ) -> None:
        """Record a frame that is not a request, or cannot be served where it stands."""
        client_id = None if isinstance(frame, MalformedRequest) else frame.client_id
        self._journal.record(
            time.time_ns(), session.node_id, session.connection_id, "request", session.peer,
            frame.api_key, frame.api_version, frame.correlation_id, client_id, session.software,
            self._codec.name, redacted_frame(session, frame.api_key, frame.frame), event, note,
            session.listener,
        )  # fmt: skip

    def note_token(self, session: Session, direction: Direction, raw: bytes) -> None:
        """Record a raw SASL token: as the client sent it, or the frame that answers it."""
        self._journal.record(
            time.time_ns(), session.node_id, session.connection_id, direction, session.peer,
            client_software=session.software, dialect=self._codec.name,
            raw=redacted_token(session, raw) if direction == "request" else raw,
            event="sasl-token", listener=session.listener,
        )  # fmt: skip

    def note_event(self, session: Session, event: str, note: str = "") -> None:
        """Record something that happened to a connection."""
        self._journal.record(
            time.time_ns(), session.node_id, session.connection_id, "event", session.peer,
            client_software=session.software, dialect=self._codec.name, event=event, note=note,
            listener=session.listener,
        )  # fmt: skip


def _drawn_field(exchange: Exchange, reply: Reply, version: int, data: bytes) -> DrawnField | None:
    """Find ``controller_id`` in an encoded response, if it is drawn: the response is encoded with
    every bit of it inverted, and differs from there on."""
    if reply.redraw is None:
        return None
    body: Any = reply.body
    inverted = msgspec.structs.replace(body, controller_id=~body.controller_id)
    other = exchange.dialect.encode_response(
        inverted, api_version=version, correlation_id=exchange.correlation_id
    )
    offset = next(i for i, (a, b) in enumerate(zip(data, other, strict=True)) if a != b)
    return DrawnField(offset - _CORRELATION_END, reply.redraw)


def _around_records(frame: bytes, body: ProduceRequest) -> list[bytes]:
    """Return the frame in parts. Large records are the objects of the body, which the log keeps, so
    that the journal need not keep them a second time."""
    parts, end = [], 0
    for topic in body.topic_data:
        for each in topic.partition_data:
            records = each.records
            if records is None or len(records) < _LARGE:
                continue
            at = frame.find(records[:HEADER_SIZE], end, end + _MOST_BETWEEN)
            if at >= 0 and frame.startswith(records, at):
                parts += [frame[end:at], records]
                end = at + len(records)
    parts.append(frame[end:])
    return parts
