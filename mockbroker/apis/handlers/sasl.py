"""SaslHandshake (17) and SaslAuthenticate (36): authentication.

Versions of SaslHandshake: 0 is followed by raw tokens (``mockbroker.serving.sasl_gate``), 1 by
SaslAuthenticate (KIP-152). Of SaslAuthenticate: 1 session lifetime (KIP-368; 0 for no end), 2
flexible. Brokers advertise both on every listener. They answer ILLEGAL_SASL_STATE(34) on listeners
without authentication, and to clients that have authenticated and whose session does not end. A
refusal ends the connection.
"""

from __future__ import annotations

import logging
from typing import Final

from kproto.error_codes import ErrorCode
from kproto.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kproto.messages.sasl_handshake_response import SaslHandshakeResponse
from mockbroker.apis.registry import Call, Session, register
from mockbroker.errors import ClusterError, UnreadableError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release
from mockbroker.simulation.security.oauthbearer_rules import LIFETIME_ROWS, SessionLifetime
from mockbroker.simulation.security.sasl import SaslRefusedError

__all__ = ["check_lifetime", "sasl_authenticate", "sasl_handshake", "session_lifetime"]

_log = logging.getLogger("mockbroker.unserved")

_ENABLED_MECHANISMS: Final = "sasl.enabled.mechanisms"
_MAX_REAUTH: Final = "connections.max.reauth.ms"
_KERBEROS: Final = "GSSAPI"


@register(17, "0-1")
def sasl_handshake(call: Call) -> SaslHandshakeResponse:
    sasl = call.session.sasl
    if sasl is None or (sasl.user is not None and not sasl.begin_again(call.cluster.timers.now_ms)):
        return SaslHandshakeResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=_mechanisms(call)
        )
    response = SaslHandshakeResponse(mechanisms=list(sasl.mechanisms))
    if not sasl.begin(call.body.mechanism):
        response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        if call.body.mechanism == _KERBEROS:
            _log.warning(
                "SaslHandshake (17) from %s: GSSAPI needs a Kerberos realm, which the mock does "
                "not have, so it refuses the mechanism (33); choose one of %s",
                call.session.host, ", ".join(sasl.mechanisms),
            )  # fmt: skip
        call.session.ended = True
    return response


def _mechanisms(call: Call) -> list[str]:
    """The mechanisms that a listener without authentication lists."""
    if not call.release.has(facts.SASL_MECHANISMS_LISTED):
        return []
    value = call.cluster.configs.broker(call.broker_id, _ENABLED_MECHANISMS).value
    return value.split(",") if value else []


@register(36, "0-2")
def sasl_authenticate(call: Call) -> SaslAuthenticateResponse:
    if call.session.sasl is None or call.session.authenticated:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    try:
        token = call.session.authenticate(call.body.auth_bytes, call.cluster.timers.now_ms)
    except SaslRefusedError as refused:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(refused)
        )
    # The message is empty, not null, on success.
    lifetime_ms = check_lifetime(call.cluster, call.session, call.release)
    return SaslAuthenticateResponse(
        error_message="", auth_bytes=token, session_lifetime_ms=lifetime_ms
    )


def check_lifetime(cluster: Cluster, session: Session, release: Release) -> int:
    """Return the lifetime that is sent with the last token, once the client is authenticated; 0
    before. Raises UnreadableError for a session whose end Kafka cannot compute."""
    if not session.authenticated:
        return 0
    lifetime = session_lifetime(cluster, session, release)
    if lifetime.breaks:
        raise UnreadableError("the end of the session does not fit into 64 bits")
    return lifetime.sent_ms


def session_lifetime(cluster: Cluster, session: Session, release: Release) -> SessionLifetime:
    """Return the lifetime of a session that begins now: what ``connections.max.reauth.ms`` and the
    client's credential leave."""
    expires_ms = None if session.sasl is None else session.sasl.credential_expires_ms
    lifetime = SessionLifetime(
        None if expires_ms is None else expires_ms - cluster.timers.now_ms,
        _most_ms(cluster, session.broker_id),
    )
    apply_first(rows_of_release(LIFETIME_ROWS, release), lifetime, lifetime)
    return lifetime


def _most_ms(cluster: Cluster, broker_id: int) -> int:
    try:
        return int(cluster.configs.broker(broker_id, _MAX_REAUTH).value or 0)
    except ClusterError:  # a release that has no such config
        return 0
