"""RenewDelegationToken (39) and ExpireDelegationToken (40, KIP-48): let a token expire later, at
another time, or now.

Versions: 1 throttles as KIP-219 says, 2 flexible.
"""

from __future__ import annotations

from kproto.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kproto.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from kproto.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kproto.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from mockbroker.apis.registry import Call, register

__all__ = ["expire_delegation_token", "renew_delegation_token"]


@register(39, "0-2")
def renew_delegation_token(call: Call) -> RenewDelegationTokenResponse:
    request: RenewDelegationTokenRequest = call.body
    caller, allowed = call.session.principal, call.session.may_use_tokens
    renewed = call.cluster.tokens.renew(
        request.hmac, caller, request.renew_period_ms, allowed=allowed
    )
    return RenewDelegationTokenResponse(
        error_code=renewed.code, expiry_timestamp_ms=renewed.time_ms
    )


@register(40, "0-2")
def expire_delegation_token(call: Call) -> ExpireDelegationTokenResponse:
    request: ExpireDelegationTokenRequest = call.body
    caller, allowed = call.session.principal, call.session.may_use_tokens
    expired = call.cluster.tokens.expire(
        request.hmac, caller, request.expiry_time_period_ms, allowed=allowed
    )
    return ExpireDelegationTokenResponse(
        error_code=expired.code, expiry_timestamp_ms=expired.time_ms
    )
