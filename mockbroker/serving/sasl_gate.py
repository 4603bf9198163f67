"""SASL on the way to the other stages: who may send what before authenticating, raw tokens, and
the end of a session. The mechanisms are in ``mockbroker.simulation.security.sasl``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kproto.connection import (
    RequestReceived,
    SaslTokenReceived,
    ServerConnection,
    ServerState,
    UnexpectedRequest,
)
from kproto.dialects import Dialect
from kproto.error_codes import ErrorCode
from mockbroker.apis import Session
from mockbroker.apis.common.refusals import error_response
from mockbroker.apis.handlers.api_versions import API_VERSIONS
from mockbroker.apis.handlers.sasl import check_lifetime, session_lifetime
from mockbroker.errors import UnreadableError
from mockbroker.serving.broker_software import BrokerSoftware
from mockbroker.serving.delivery import Delivery
from mockbroker.serving.exchange import CLOSE, Close, Exchange
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.security.sasl import SaslRefusedError

__all__ = ["SaslGate"]

_SASL_HANDSHAKE: Final = 17
_AUTHENTICATING: Final = (ServerState.AUTHENTICATING, ServerState.RAW_TOKENS)


class SaslGate:
    """As a stage it closes connections that break the rules, and answers nothing."""

    def __init__(
        self,
        cluster: Cluster,
        codec: Dialect,
        delivery: Delivery,
        follow_clock: Callable[[], None],
        software: BrokerSoftware,
    ) -> None:
        self._cluster = cluster
        self._codec = codec
        self._delivery = delivery
        self._follow_clock = follow_clock
        self._software = software

    def answer(self, exchange: Exchange) -> Close | None:
        if not isinstance(exchange.request, RequestReceived):
            return None
        session, api_key = exchange.session, exchange.api_key
        sasl = session.sasl
        if sasl is None:
            return None
        if sasl.user is None and api_key == API_VERSIONS:
            # Before authentication a broker answers it once.
            again, sasl.versions_sent = sasl.versions_sent, True
            if again:
                return CLOSE
        # SaslHandshake begins another session (KIP-368).
        if api_key != _SASL_HANDSHAKE and sasl.expired(self._cluster.timers.now_ms):
            note = "the client did not authenticate again in time"
            self._delivery.note_event(session, "session-expired", note)
            return CLOSE
        return None

    def token(
        self, connection: ServerConnection, session: Session, event: SaslTokenReceived
    ) -> bytes | Close:
        """Answer a raw token. Closing the connection is the only way to refuse one."""
        self._delivery.note_token(session, "request", event.token)
        try:
            self._follow_clock()
            answer = session.authenticate(event.token, self._cluster.timers.now_ms)
            check_lifetime(self._cluster, session, self._release(session))
            data = connection.send_sasl_token(answer)
        except (SaslRefusedError, UnreadableError) as refused:
            self._delivery.note_event(session, "authentication-failed", str(refused))
            return CLOSE
        self._delivery.note_token(session, "response", data)
        self.finish(connection, session)
        return data

    def unexpected(
        self, connection: ServerConnection, session: Session, event: UnexpectedRequest
    ) -> bytes | Close:
        """Answer a request that came in the place of SaslAuthenticate, and end the connection."""
        self._delivery.note_frame(session, event, "unexpected", "SaslAuthenticate was due")
        session.ended = True
        api = self._codec.apis.get(event.api_key)
        if api is None or event.api_version not in api.valid_versions:
            return CLOSE
        body = error_response(api.response, event.api_version, ErrorCode.ILLEGAL_SASL_STATE)
        return CLOSE if body is None else connection.send_response(event, body)

    def finish(self, connection: ServerConnection, session: Session) -> None:
        """Open the connection, if its user has just authenticated."""
        sasl = session.sasl
        if sasl is None or sasl.user is None or connection.state not in _AUTHENTICATING:
            return
        connection.complete_sasl()
        self._follow_clock()
        lifetime = session_lifetime(self._cluster, session, self._release(session))
        sasl.ends_ms = self._cluster.timers.now_ms + lifetime.sent_ms if lifetime.ends else None
        self._delivery.note_event(session, "authenticated", session.principal)

    def _release(self, session: Session) -> Release:
        return self._software.profile_of(session.broker_id).software
