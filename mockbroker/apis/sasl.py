"""SaslHandshake (17) and SaslAuthenticate (36): authentication.

Versions of SaslHandshake: 0 is followed by raw tokens (``mockbroker.serving.sasl_gate``), 1 by
SaslAuthenticate (KIP-152). Of SaslAuthenticate: 1 session lifetime (KIP-368; 0 for no end), 2
flexible. Brokers advertise both on every listener. They answer ILLEGAL_SASL_STATE(34) on listeners
without authentication, and to clients that have authenticated and whose session does not end. A
refusal ends the connection.
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode
from kproto.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kproto.messages.sasl_handshake_response import SaslHandshakeResponse
from mockbroker.apis.registry import Call, register
from mockbroker.cluster import Cluster
from mockbroker.errors import ClusterError
from mockbroker.security.sasl import SaslRefusedError

__all__ = ["sasl_authenticate", "sasl_handshake", "session_lifetime_ms"]

_MAX_REAUTH: Final = "connections.max.reauth.ms"


@register(17, "0-1")
def sasl_handshake(call: Call) -> SaslHandshakeResponse:
    sasl = call.session.sasl
    if sasl is None or (sasl.user is not None and not sasl.begin_again(call.cluster.now_ms)):
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    response = SaslHandshakeResponse(mechanisms=list(sasl.mechanisms))
    if not sasl.begin(call.body.mechanism):
        response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        call.session.ended = True
    return response


@register(36, "0-2")
def sasl_authenticate(call: Call) -> SaslAuthenticateResponse:
    if call.session.sasl is None or call.session.authenticated:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    try:
        token = call.session.authenticate(call.body.auth_bytes)
    except SaslRefusedError as refused:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(refused)
        )
    # The message is empty, not null, on success.
    return SaslAuthenticateResponse(
        error_message="", auth_bytes=token, session_lifetime_ms=_lifetime_ms(call)
    )


def _lifetime_ms(call: Call) -> int:
    """Sent with the last token, once the client is authenticated; 0 before."""
    if not call.session.authenticated:
        return 0
    return session_lifetime_ms(call.cluster, call.session.broker_id)


def session_lifetime_ms(cluster: Cluster, broker_id: int) -> int:
    """Return the lifetime of a session that begins now, 0 for no end:
    ``connections.max.reauth.ms``."""
    try:
        return int(cluster.broker_config(broker_id, _MAX_REAUTH).value or 0)
    except ClusterError:  # a release that has no such config
        return 0
