"""SaslHandshake (17) and SaslAuthenticate (36) on a listener without SASL.

Brokers advertise both on every listener, and answer ILLEGAL_SASL_STATE(34) where the connection
is not one that authenticates by SASL.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kproto.messages.sasl_handshake_response import SaslHandshakeResponse
from mockbroker.apis.registry import Call, register

__all__ = ["sasl_authenticate", "sasl_handshake"]


@register(17, "0-1", cacheable=True)
def sasl_handshake(call: Call) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


@register(36, "0-2", cacheable=True)
def sasl_authenticate(call: Call) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
