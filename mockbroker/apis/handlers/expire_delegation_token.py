"""ExpireDelegationToken (40, KIP-48): let a token expire at another time, or remove it.

Versions: 1 throttles as KIP-219 says, 2 flexible.
"""

from __future__ import annotations

from kproto.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kproto.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from mockbroker.apis.registry import Call, register

__all__ = ["expire_delegation_token"]


@register(40, "0-2")
def expire_delegation_token(call: Call) -> ExpireDelegationTokenResponse:
    request: ExpireDelegationTokenRequest = call.body
    outcome = call.cluster.tokens.expire(
        request.hmac,
        call.session.principal,
        request.expiry_time_period_ms,
        allowed=call.session.may_use_tokens,
    )
    return ExpireDelegationTokenResponse(
        error_code=outcome.code, expiry_timestamp_ms=outcome.time_ms
    )
