"""DescribeUserScramCredentials (50) and AlterUserScramCredentials (51, KIP-554)."""

from __future__ import annotations

from kproto.error_codes import ErrorCode, message
from kproto.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from kproto.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kproto.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from kproto.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from mockbroker.apis.common.authorization import cluster_refusal, may
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.scram_credentials import CredentialChange, CredentialResult

__all__ = ["alter_user_scram_credentials", "describe_user_scram_credentials"]


@register(50, "0")
def describe_user_scram_credentials(call: Call) -> DescribeUserScramCredentialsResponse:
    request: DescribeUserScramCredentialsRequest = call.body
    if not may(call):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return DescribeUserScramCredentialsResponse(error_code=code, error_message=message(code))
    users = None if request.users is None else [each.name for each in request.users]
    return DescribeUserScramCredentialsResponse(
        # Empty, not null, on success.
        error_message="",
        results=[
            DescribeUserScramCredentialsResult(
                user=each.user,
                error_code=each.error_code,
                error_message=each.text or "",
                credential_infos=[
                    CredentialInfo(mechanism=mechanism, iterations=iterations)
                    for mechanism, iterations in each.credentials
                ],
            )
            for each in call.cluster.scram.describe(users)
        ],
    )


@register(51, "0")
def alter_user_scram_credentials(call: Call) -> AlterUserScramCredentialsResponse:
    request: AlterUserScramCredentialsRequest = call.body
    refused = cluster_refusal(call)
    if refused is None and call.refused_as_not_controller:
        refused = ErrorCode.NOT_CONTROLLER, message(ErrorCode.NOT_CONTROLLER)
    if refused is not None:
        named = [each.name for each in request.deletions]
        named += [each.name for each in request.upsertions]
        results = [CredentialResult(user, *refused) for user in dict.fromkeys(named)]
    else:
        results = call.cluster.alter_scram_credentials(
            [CredentialChange(each.name, each.mechanism) for each in request.deletions],
            [
                CredentialChange(
                    each.name, each.mechanism, each.iterations, each.salt, each.salted_password
                )
                for each in request.upsertions
            ],
        )
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=each.user, error_code=each.error_code, error_message=each.text
            )
            for each in results
        ]
    )
