"""RenewDelegationToken (39, KIP-48): let a token expire later.

Versions: 1 throttles as KIP-219 says, 2 flexible.
"""

from __future__ import annotations

from kproto.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kproto.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from mockbroker.apis.registry import Call, register

__all__ = ["renew_delegation_token"]


@register(39, "0-2")
def renew_delegation_token(call: Call) -> RenewDelegationTokenResponse:
    request: RenewDelegationTokenRequest = call.body
    outcome = call.cluster.tokens.renew(
        request.hmac,
        call.session.principal,
        request.renew_period_ms,
        allowed=call.session.may_use_tokens,
    )
    return RenewDelegationTokenResponse(
        error_code=outcome.code, expiry_timestamp_ms=outcome.time_ms
    )
