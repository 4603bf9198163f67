"""CreateDelegationToken (38, KIP-48): a token that stands for its owner.

Versions: 1 throttles as KIP-219 says, 2 flexible, 3 another owner than the caller, for whom the
caller needs CREATE_TOKENS (KIP-373).
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kproto.messages.create_delegation_token_response import CreateDelegationTokenResponse
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import ANONYMOUS, AclOperation, ResourceType
from mockbroker.simulation.security.delegation_token_rules import NO_TIME
from mockbroker.simulation.security.delegation_tokens import TokenOffer

__all__ = ["create_delegation_token"]


@register(38, "0-3")
def create_delegation_token(call: Call) -> CreateDelegationTokenResponse:
    request: CreateDelegationTokenRequest = call.body
    if request.owner_principal_name and request.owner_principal_type is None:
        return _failure(call)
    requester = owner = call.session.principal
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    offer = TokenOffer(
        owner,
        requester,
        tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers),
        request.max_lifetime_ms,
    )
    outcome, token = call.cluster.tokens.create(
        offer,
        allowed=call.session.may_use_tokens,
        authorized=owner == requester
        or call.authorizes(AclOperation.CREATE_TOKENS, ResourceType.USER, owner),
    )
    owner_type, _, owner_name = owner.partition(":")
    requester_type, _, requester_name = requester.partition(":")
    response = CreateDelegationTokenResponse(
        error_code=outcome.code,
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp_ms=outcome.time_ms,
        expiry_timestamp_ms=outcome.time_ms,
        max_timestamp_ms=outcome.time_ms,
    )
    if call.version >= 3:
        response.token_requester_principal_type = requester_type
        response.token_requester_principal_name = requester_name
    if token is not None:
        response.issue_timestamp_ms = token.issued_ms
        response.expiry_timestamp_ms = token.expires_ms
        response.max_timestamp_ms = token.max_ms
        response.token_id = token.token_id
        response.hmac = call.cluster.tokens.hmac_of(token.token_id)
    return response


def _failure(call: Call) -> CreateDelegationTokenResponse:
    """Kafka cannot make the owner's principal; the response names the anonymous one."""
    kind, _, name = ANONYMOUS.partition(":")
    response = CreateDelegationTokenResponse(
        error_code=ErrorCode.UNKNOWN_SERVER_ERROR,
        principal_type=kind,
        principal_name=name,
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )
    if call.version >= 3:
        response.token_requester_principal_type = kind
        response.token_requester_principal_name = name
    return response
