"""One request in, the bytes of its answer out. No sockets, and no opinion on any single api.

Decides what real brokers decide before a handler sees a request: unsupported versions, malformed
frames, requests nobody implements; takes raw SASL tokens; and keeps the journal.
``mockbroker.serving.server`` writes the bytes, ``mockbroker.apis`` says what is true.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

from kproto.codec.message import Message
from kproto.connection import (
    MalformedRequest,
    RequestReceived,
    SaslTokenReceived,
    ServerConnection,
    ServerEvent,
    UnexpectedRequest,
    UnsupportedRequest,
    refusal,
)
from kproto.dialects import Dialect
from kproto.error_codes import ErrorCode
from kproto.errors import KprotoError
from kproto.journal import Journal, squash
from kproto.schema.versions import Versions
from mockbroker.apis import Call, Handler, Session
from mockbroker.apis.api_versions import API_VERSIONS, identify
from mockbroker.apis.refusals import error_response
from mockbroker.apis.sasl import session_lifetime_ms
from mockbroker.apis.usable import usable_handlers
from mockbroker.cluster import Cluster
from mockbroker.errors import ControllerDiedError, NotControllerError, UnreadableError
from mockbroker.faults.delivery import Plan
from mockbroker.inter_broker.software_versions import served_by
from mockbroker.profiles import Profile
from mockbroker.security.policy import OPEN, Security
from mockbroker.security.sasl import SaslRefusedError
from mockbroker.security.sasl_frames import (
    asks_too_often,
    begin_session,
    finish,
    illegal_state,
    journalled_frame,
    journalled_token,
    outlived,
)
from mockbroker.serving.fault_rules import Faults
from mockbroker.serving.fault_stage import FaultedExchange
from mockbroker.serving.operations import Operations
from mockbroker.serving.outcome import CLOSE, Close, Outcome
from mockbroker.serving.quirks import tolerated
from mockbroker.serving.replay_stage import ReplayStage
from mockbroker.serving.response_cache import ResponseCache
from mockbroker.serving.scripts import Script, Scripts

__all__ = ["CLOSE", "Close", "Dispatcher", "Outcome"]

_log = logging.getLogger("mockbroker")


class Dispatcher(ReplayStage):
    """Shared by all connections of a mock cluster.

    ``served`` is what every listener advertises, and the only keys and versions it accepts.
    ``reply35`` answers a version outside that range with error 35, in the nearest version served,
    where brokers close the connection. ``follow_clock`` is called before anything may change.
    ``security`` says who may connect, and do what. ``connection_ids`` are shared where there are
    two of these. ``operations`` runs the handlers.
    """

    def __init__(
        self,
        *,
        cluster: Cluster,
        profile: Profile,
        codec: Dialect,
        served: Mapping[int, Versions],
        journal: Journal,
        reply35: bool = False,
        follow_clock: Callable[[], None] = lambda: None,
        security: Security = OPEN,
        connection_ids: Iterator[int] | None = None,
        operations: Operations | None = None,
    ) -> None:
        self.operations = operations or Operations()
        self.cluster = cluster
        self.profile = profile
        self.codec = codec
        self.served = served
        self.journal = journal
        self.reply35 = reply35
        self.security = security
        self._follow_clock = follow_clock
        self.scripts = Scripts()
        self.faults = Faults(self._api_names)
        self.connection_ids = itertools.count(1) if connection_ids is None else connection_ids
        self._handlers: dict[Dialect, dict[int, Handler]] = {}
        self.response_cache = ResponseCache(cluster.log, journal)

    def add_script(self, api_key: int, script: Script, times: int | None) -> None:
        """As ``Scripts.add``; answers given so far say nothing about the next."""
        self.scripts.add(api_key, script, times)
        self.response_cache.forget()

    def served_by(self, broker_id: int) -> Mapping[int, Versions]:
        """``served``, but for what this broker's own software has otherwise."""
        return served_by(self.cluster.broker(broker_id), self.served)

    def accepted_by(self, broker_id: int) -> Mapping[int, Versions] | None:
        """What a connection takes for a request at all: everything there is (None) where what was
        recorded may answer what is not served."""
        return self.served_by(broker_id) if self.replay is None else None

    def next_connection_id(self) -> int:
        """Connections are counted from 1, over all brokers."""
        return next(self.connection_ids)

    # ---- one event ---------------------------------------------------------------------------

    def answer(self, connection: ServerConnection, session: Session, event: ServerEvent) -> Outcome:
        """What to write for ``event``; never raises."""
        if isinstance(event, RequestReceived):
            return self._request(connection, session, event)
        if isinstance(event, UnsupportedRequest):
            return self._unsupported(connection, session, event)
        if isinstance(event, SaslTokenReceived):
            return self._token(connection, session, event)
        if isinstance(event, UnexpectedRequest):
            return self._unexpected(connection, session, event)
        if isinstance(event, MalformedRequest):
            request = tolerated(self.codec, event)
            if request is not None:
                return self._request(connection, session, request, "trailing-bytes")
            self._note(session, event, "malformed", str(event.error))
        return CLOSE

    def _token(
        self, connection: ServerConnection, session: Session, event: SaslTokenReceived
    ) -> Outcome:
        """A raw token, which has no way to say no but to close."""
        self._note_token(session, "request", journalled_token(session, event.token))
        try:
            data = connection.send_sasl_token(session.authenticate(event.token))
        except SaslRefusedError as refused:
            self.note_event(session, "authentication-failed", str(refused))
            return CLOSE
        self._note_token(session, "response", data)
        self._finish_sasl(connection, session)
        return data

    def _unexpected(
        self, connection: ServerConnection, session: Session, event: UnexpectedRequest
    ) -> Outcome:
        self._note(session, event, "unexpected", "SaslAuthenticate was due")
        body = illegal_state(self.codec, event)
        session.ended = True
        return CLOSE if body is None else connection.send_response(event, body)

    def _finish_sasl(self, connection: ServerConnection, session: Session) -> None:
        if finish(connection, session):
            self._follow_clock()
            lifetime_ms = session_lifetime_ms(self.cluster, session.broker_id)
            begin_session(session, lifetime_ms, self.cluster.now_ms)
            self.note_event(session, "authenticated", session.principal)

    def _request(
        self,
        connection: ServerConnection,
        session: Session,
        request: RequestReceived,
        mark: str = "",
    ) -> Outcome:
        header = request.header
        if header.request_api_key == API_VERSIONS:
            identify(session, header.request_api_version, request.body)
        self._record(session, request, "request", journalled_frame(session, request), mark)
        if asks_too_often(session, request):
            return CLOSE
        if session.ends:
            self._follow_clock()
            if outlived(session, request, self.cluster.now_ms):
                self.note_event(session, "session-expired", "not authenticated anew in time")
                return CLOSE
        if self.faults.live:
            faulted = self._faulted(connection, session, request, mark)
            if faulted is not None:
                return faulted
        return self._served(connection, session, request, mark)

    def _faulted(
        self,
        connection: ServerConnection,
        session: Session,
        request: RequestReceived | UnsupportedRequest,
        mark: str = "",
    ) -> Awaitable[Plan | Close] | None:
        """What a rule makes of it; None where no rule takes it."""
        self._follow_clock()
        call = None
        if isinstance(request, RequestReceived):
            call = partial(self._call, session, request)
        rule = self.faults.hit(self, session, request, call)
        if rule is None:
            return None

        def own(dispatcher: Dispatcher, asked: RequestReceived | UnsupportedRequest) -> Outcome:
            if isinstance(asked, RequestReceived):
                return dispatcher._served(connection, session, asked, mark)
            return dispatcher._refused(connection, session, asked)

        return FaultedExchange(self, connection, session, request, rule, own).run()

    def _served(
        self, connection: ServerConnection, session: Session, request: RequestReceived, mark: str
    ) -> Outcome:
        """The answer of whoever has one: a recording, scripts, the broker."""
        header = request.header
        if self.replay is not None:
            replayed = self._replayed(connection, session, request)
            if replayed is not None:
                return replayed
            served = self.served_by(session.broker_id).get(header.request_api_key)
            if served is None or header.request_api_version not in served:
                return self._not_served(connection, session, _as_unsupported(request))
        known = self.response_cache.answer_one(session, request.frame)
        if known is not None:
            self._record(session, request, "response", known)
            return connection.send_bytes(request, known)
        self._follow_clock()
        handler = self._handlers_of(request.dialect).get(header.request_api_key)
        offset = len(self.cluster.log)
        scripted = header.request_api_key in self.scripts
        answered = self._respond(connection, session, request, handler)
        if (
            handler is not None
            and handler.cacheable
            and not mark
            and isinstance(answered, bytes)
            and not scripted
            and not self.cluster.propagation_ms  # what a broker knows would change by itself
            and self.security.authorizer is None
        ):
            self.response_cache.remember(session, request, answered, offset)
        return answered

    def handler_of(self, codec: Dialect, api_key: int) -> Handler | None:
        """What would answer a request of that dialect, scripts and recordings aside."""
        return self._handlers_of(codec).get(api_key)

    def _api_names(self) -> dict[str, int]:
        return {squash(api.name): key for key, api in self.codec.apis.items()}

    def _handlers_of(self, codec: Dialect) -> dict[int, Handler]:
        """Of the dialect a request was written in: a listener may take several."""
        handlers = self._handlers.get(codec)
        if handlers is None:
            handlers = self._handlers[codec] = usable_handlers(codec)
        return handlers

    # ---- answering ---------------------------------------------------------------------------

    def _respond(
        self,
        connection: ServerConnection,
        session: Session,
        request: RequestReceived,
        handler: Handler | None,
    ) -> Outcome:
        call = self._call(session, request)
        try:
            body = self.scripts.answer(request.api, call)
            if body is None:
                if handler is None or call.version not in handler.versions:
                    return self._unimplemented(connection, session, request)
                body = self._answered(handler, call)
            if isinstance(body, Message):
                return self._send(connection, session, request, body)
        except Exception as error:  # a test's script may raise anything; the broker lives on
            return self._failed(connection, session, request, error)
        return self._respond_later(connection, session, request, body)

    def _answered(self, handler: Handler, call: Call) -> Message | Awaitable[Any]:
        answer: Callable[[], Any] = partial(handler.answer, call)
        body: Message | Awaitable[Any] = self.operations.start(answer)
        return body

    async def _respond_later(
        self,
        connection: ServerConnection,
        session: Session,
        request: RequestReceived,
        later: Awaitable[Any],
    ) -> bytes | Close:
        try:
            body = await later
            if not isinstance(body, Message):  # an operation that was suspended, and then waits
                body = await body
            return self._send(connection, session, request, body)
        except Exception as error:  # as in ``_respond``
            return self._failed(connection, session, request, error)

    def _call(self, session: Session, request: RequestReceived) -> Call:
        return Call(
            api=request.api,
            version=request.header.request_api_version,
            body=request.body,
            client_id=request.header.client_id,
            session=session,
            cluster=self.cluster,
            profile=self.profile,
            advertised=self.served_by(session.broker_id),
            authorizer=self.security.authorizer,
        )

    def _send(
        self,
        connection: ServerConnection,
        session: Session,
        request: RequestReceived,
        body: Message,
        event: str = "",
    ) -> bytes:
        if not request.expects_response:
            return b""
        data = connection.send_response(request, body)
        self._record(session, request, "response", data, event)
        self._finish_sasl(connection, session)
        return data

    def _unimplemented(
        self, connection: ServerConnection, session: Session, request: RequestReceived
    ) -> bytes | Close:
        """Advertised, decoded, and nobody wrote what to answer."""
        return self._refuse(
            connection, session, request, ErrorCode.UNSUPPORTED_VERSION, "unimplemented"
        )

    def _failed(
        self,
        connection: ServerConnection,
        session: Session,
        request: RequestReceived,
        error: Exception,
    ) -> bytes | Close:
        """A handler or a script raised, or returned what its version cannot carry."""
        header = request.header
        if isinstance(error, ControllerDiedError):
            self._note_request(session, request, "controller-died", str(error))
            return CLOSE
        if isinstance(error, UnreadableError):
            self._note_request(session, request, "malformed", str(error))
            return CLOSE
        if isinstance(error, NotControllerError):
            return self._refuse(connection, session, request, ErrorCode.NOT_CONTROLLER, "")
        if not isinstance(error, KprotoError):
            _log.error(
                "%s v%d failed", request.api.name, header.request_api_version, exc_info=error
            )
        self._note_request(session, request, "failed", f"{type(error).__name__}: {error}")
        return self._refuse(connection, session, request, ErrorCode.UNKNOWN_SERVER_ERROR, "failed")

    def _refuse(
        self,
        connection: ServerConnection,
        session: Session,
        request: RequestReceived,
        code: ErrorCode,
        event: str,
    ) -> bytes | Close:
        if not request.expects_response:
            self._note_request(session, request, event)
            return b""
        version = request.header.request_api_version
        body = error_response(request.api.response, version, code)
        try:
            if body is not None:
                return self._send(connection, session, request, body, event)
        except KprotoError as error:
            self._note_request(session, request, "failed", str(error))
        return CLOSE

    def _unsupported(
        self, connection: ServerConnection, session: Session, event: UnsupportedRequest
    ) -> Outcome:
        """Brokers answer ApiVersions at a version above theirs, so that the client can come down,
        and close the connection on anything else."""
        served = self.served_by(session.broker_id).get(event.api_key)
        problem = f"versions {served} are served" if served else "the api key is not served"
        self._note(session, event, "unsupported", problem)
        if self.faults.live:
            faulted = self._faulted(connection, session, event)
            if faulted is not None:
                return faulted
        return self._refused(connection, session, event)

    def _refused(
        self, connection: ServerConnection, session: Session, event: UnsupportedRequest
    ) -> Outcome:
        if self.replay is not None:
            replayed = self._replayed(connection, session, event)
            if replayed is not None:
                return replayed
        return self._not_served(connection, session, event)

    def _not_served(
        self, connection: ServerConnection, session: Session, event: UnsupportedRequest
    ) -> bytes | Close:
        served = self.served_by(session.broker_id).get(event.api_key)
        if served is None:
            return CLOSE
        body: Message | None
        if event.api_key == API_VERSIONS:
            version = 0
            body = refusal(self.codec, served if self.profile.fallback_row else None)
        elif self.reply35:
            version = min(max(event.api_version, served.lowest), served.highest)
            response = self.codec.apis[event.api_key].response
            body = error_response(response, version, ErrorCode.UNSUPPORTED_VERSION)
        else:
            return CLOSE
        if body is None:
            return CLOSE
        data = connection.send_response(event, body, api_version=version)
        self.journal.record(
            time.time_ns(), session.broker_id, session.connection_id, "response", session.peer,
            event.api_key, version, event.correlation_id, event.client_id, session.software,
            self.codec.name, data, "unsupported",
        )  # fmt: skip
        return data


def _as_unsupported(request: RequestReceived) -> UnsupportedRequest:
    header = request.header
    return UnsupportedRequest(
        request.number, header.request_api_key, header.request_api_version, header.correlation_id,
        header.client_id, request.frame,
    )  # fmt: skip
