"""DescribeUserScramCredentials (50) and AlterUserScramCredentials (51, KIP-554)."""

from __future__ import annotations

from string import ascii_letters, digits
from typing import Final

from kproto.error_codes import ErrorCode
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
from mockbroker.apis.common.requirements import (
    cluster_access,
    cluster_operation,
    controller,
    merged,
)
from mockbroker.apis.registry import Call, register
from mockbroker.errors import Refusal
from mockbroker.simulation.releases import fixes
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.security.scram_credentials import CredentialChange, CredentialResult

__all__ = ["alter_user_scram_credentials", "describe_user_scram_credentials"]


_PLAIN: Final = frozenset(f"{ascii_letters}{digits}.-_")


def _encoded(user: str) -> str:
    """Return the name of a user's znode."""
    return "".join(
        each if each in _PLAIN else "".join(f"%{byte:02X}" for byte in each.encode())
        for each in user
    )


@register(50, "0", requires=(cluster_access(AclOperation.DESCRIBE),))
def describe_user_scram_credentials(call: Call) -> DescribeUserScramCredentialsResponse:
    request: DescribeUserScramCredentialsRequest = call.body
    users = None if request.users is None else [each.name for each in request.users]
    encodes = not users and not call.profile.forwarding  # no name, or null: all users
    encodes = encodes and not call.release.has(fixes.KAFKA_15243)
    return DescribeUserScramCredentialsResponse(
        # Empty, not null, on success.
        error_message="",
        results=[
            DescribeUserScramCredentialsResult(
                user=_encoded(each.user) if encodes else each.user,
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


@register(51, "0", requires=(merged(cluster_operation(AclOperation.ALTER)), merged(controller)))
def alter_user_scram_credentials(call: Call) -> AlterUserScramCredentialsResponse:
    request: AlterUserScramCredentialsRequest = call.body
    # In ZooKeeper mode the text of a success is empty, not null.
    success = "" if call.cluster.controller.keeps_znodes else None
    deletions = [CredentialChange(each.name, each.mechanism) for each in request.deletions]
    upsertions = [
        CredentialChange(
            each.name, each.mechanism, each.iterations, each.salt, each.salted_password
        )
        for each in request.upsertions
    ]
    try:
        results = call.cluster.scram.alter(deletions, upsertions)
    except Refusal as refusal:
        users = sorted({each.user for each in (*deletions, *upsertions)})
        results = [CredentialResult(user, ErrorCode(refusal.code)) for user in users]
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=each.user,
                error_code=each.error_code,
                error_message=each.text if each.error_code else success,
            )
            for each in results
        ]
    )
