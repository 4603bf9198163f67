"""DescribeDelegationToken (41, KIP-48): the tokens that the caller may see, with their secrets.

Versions: 1 throttles as KIP-219 says, 2 flexible, 3 the requester (KIP-373). An empty list of
owners matches no token, null matches all.
"""

from __future__ import annotations

from kproto.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kproto.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from mockbroker.simulation.security.delegation_token_rules import TokenSeen
from mockbroker.simulation.state.cluster_parts import DelegationToken

__all__ = ["describe_delegation_token"]


@register(41, "0-3")
def describe_delegation_token(call: Call) -> DescribeDelegationTokenResponse:
    request: DescribeDelegationTokenRequest = call.body
    tokens = call.cluster.tokens
    outcome = tokens.describe(allowed=call.session.may_use_tokens)
    if outcome.code:
        return DescribeDelegationTokenResponse(error_code=outcome.code)
    owners = None
    if request.owners is not None:
        owners = {f"{each.principal_type}:{each.principal_name}" for each in request.owners}
    return DescribeDelegationTokenResponse(
        tokens=[
            _described(call, token)
            for token in tokens.all
            if tokens.shows(_seen(call, token, owners))
        ]
    )


def _seen(call: Call, token: DelegationToken, owners: set[str] | None) -> TokenSeen:
    concerned = {token.owner, *token.renewers}
    return TokenSeen(
        requested=owners is None or bool(owners & concerned),
        own=call.session.principal in concerned,
        may_describe=lambda: call.authorizes(
            AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id
        ),
        may_describe_tokens=lambda: call.authorizes(
            AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.owner
        ),
    )


def _described(call: Call, token: DelegationToken) -> DescribedDelegationToken:
    owner_type, _, owner_name = token.owner.partition(":")
    requester_type, _, requester_name = token.requester.partition(":")
    renewers = [each.partition(":") for each in token.renewers]
    described = DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=call.cluster.tokens.hmac_of(token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, _, name in renewers
        ],
    )
    if call.version >= 3:
        described.token_requester_principal_type = requester_type
        described.token_requester_principal_name = requester_name
    return described
