"""How what passes the dispatcher gets into the journal. Decides nothing."""

from __future__ import annotations

import time

from kproto.connection import (
    MalformedRequest,
    RequestReceived,
    UnexpectedRequest,
    UnsupportedRequest,
)
from kproto.dialects import Dialect
from kproto.journal import Direction, Journal
from mockbroker.apis import Session
from mockbroker.security.sasl_frames import journalled_frame, unread_frame

__all__ = ["Delivery"]


class Delivery:
    journal: Journal
    codec: Dialect

    def note_event(self, session: Session, event: str, note: str = "") -> None:
        """Journal something that happened to a connection."""
        self.journal.record(
            time.time_ns(), session.broker_id, session.connection_id, "event", session.peer,
            client_software=session.software, dialect=self.codec.name, event=event, note=note,
        )  # fmt: skip

    def _record(
        self,
        session: Session,
        request: RequestReceived,
        direction: Direction,
        raw: bytes,
        event: str = "",
    ) -> None:
        header = request.header
        self.journal.record(
            time.time_ns(), session.broker_id, session.connection_id, direction, session.peer,
            header.request_api_key, header.request_api_version, header.correlation_id,
            header.client_id, session.software, request.dialect.name, raw, event,
        )  # fmt: skip

    def _note_request(
        self, session: Session, request: RequestReceived, event: str, note: str = ""
    ) -> None:
        header = request.header
        self.journal.record(
            time.time_ns(), session.broker_id, session.connection_id, "event", session.peer,
            header.request_api_key, header.request_api_version, header.correlation_id,
            header.client_id, session.software, request.dialect.name,
            journalled_frame(session, request), event, note,
        )  # fmt: skip

    def _note_token(self, session: Session, direction: Direction, raw: bytes) -> None:
        self.journal.record(
            time.time_ns(), session.broker_id, session.connection_id, direction, session.peer,
            client_software=session.software, dialect=self.codec.name, raw=raw, event="sasl-token",
        )  # fmt: skip

    def _note(
        self,
        session: Session,
        about: UnsupportedRequest | UnexpectedRequest | MalformedRequest,
        event: str,
        note: str,
    ) -> None:
        """A request, marked as none that could be served."""
        client_id = None if isinstance(about, MalformedRequest) else about.client_id
        self.journal.record(
            time.time_ns(), session.broker_id, session.connection_id, "request", session.peer,
            about.api_key, about.api_version, about.correlation_id, client_id, session.software,
            self.codec.name, unread_frame(session, about.api_key, about.frame), event, note,
        )  # fmt: skip

    def note_either(
        self,
        session: Session,
        request: RequestReceived | UnsupportedRequest,
        event: str,
        note: str,
    ) -> None:
        """Something about a request, whether or not it could be decoded."""
        if isinstance(request, RequestReceived):
            return self._note_request(session, request, event, note)
        self.journal.record(
            time.time_ns(), session.broker_id, session.connection_id, "event", session.peer,
            request.api_key, request.api_version, request.correlation_id, request.client_id,
            session.software, self.codec.name, b"", event, note,
        )  # fmt: skip
        return None

    def record_either(
        self,
        session: Session,
        request: RequestReceived | UnsupportedRequest,
        version: int,
        raw: bytes,
        event: str,
        said_id: int | None = None,
    ) -> None:
        """A response that is not the broker's own, at the version it is in. ``said_id``: the
        correlation id it says, where that is not the request's."""
        if isinstance(request, RequestReceived):
            header = request.header
            key, correlation_id, client_id = (
                header.request_api_key, header.correlation_id, header.client_id
            )  # fmt: skip
            name = request.dialect.name
        else:
            key, correlation_id, client_id = (
                request.api_key, request.correlation_id, request.client_id
            )  # fmt: skip
            name = self.codec.name
        if said_id is not None:
            correlation_id = said_id
        self.journal.record(
            time.time_ns(), session.broker_id, session.connection_id, "response", session.peer,
            key, version, correlation_id, client_id, session.software, name, raw, event,
        )  # fmt: skip
