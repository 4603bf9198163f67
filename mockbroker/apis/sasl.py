"""SaslHandshake (17) and SaslAuthenticate (36): who is calling.

Versions: of the handshake, 0 is followed by raw tokens, which are the dispatcher's, 1 by
SaslAuthenticate (KIP-152); of SaslAuthenticate, 1 a session lifetime (KIP-368; 0 here: no end), 2
flexible. Brokers advertise both on every listener, and answer ILLEGAL_SASL_STATE(34) where nobody
has to authenticate, or somebody has. After a refusal the connection ends.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kproto.messages.sasl_handshake_response import SaslHandshakeResponse
from mockbroker.apis.registry import Call, Session, register
from mockbroker.sasl import SaslRefusedError, SaslSession

__all__ = ["sasl_authenticate", "sasl_handshake"]


@register(17, "0-1")
def sasl_handshake(call: Call) -> SaslHandshakeResponse:
    sasl = _under_way(call.session)
    if sasl is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    response = SaslHandshakeResponse(mechanisms=list(sasl.mechanisms))
    if not sasl.begin(call.body.mechanism):
        response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        call.session.ended = True
    return response


@register(36, "0-2")
def sasl_authenticate(call: Call) -> SaslAuthenticateResponse:
    if _under_way(call.session) is None:
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
    # Empty, not null, where there is nothing to say.
    return SaslAuthenticateResponse(error_message="", auth_bytes=token)


def _under_way(session: Session) -> SaslSession | None:
    return session.sasl if session.sasl is not None and session.sasl.user is None else None
