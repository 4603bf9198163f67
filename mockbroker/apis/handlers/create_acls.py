"""CreateAcls (30, KIP-140): add access rules, with one result per rule.

Versions: 1 pattern types (KIP-290); 2 flexible; 3 user resources. ZooKeeper brokers write rules
themselves and KRaft brokers forward the request, so no broker answers NOT_CONTROLLER.
"""

from __future__ import annotations

from kproto.messages.create_acls_request import CreateAclsRequest
from kproto.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from mockbroker.apis.common.acl_elements import check_known
from mockbroker.apis.common.authorization import cluster_refusal
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.state.results import AclBinding

__all__ = ["create_acls"]


@register(30, "0-3")
def create_acls(call: Call) -> CreateAclsResponse:
    request: CreateAclsRequest = call.body
    for each in request.creations:
        check_known(
            resource_type=each.resource_type,
            pattern_type=each.resource_pattern_type,
            operation=each.operation,
            permission_type=each.permission_type,
        )
    refused = cluster_refusal(call)
    if refused is not None:
        code, text = refused
        row = AclCreationResult(error_code=code, error_message=text)
        return CreateAclsResponse(results=[row] * len(request.creations))
    results = call.cluster.create_acls(
        [
            AclBinding(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                pattern_type=each.resource_pattern_type,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission_type,
            )
            for each in request.creations
        ]
    )
    return CreateAclsResponse(
        results=[
            # Empty, not null, on success.
            AclCreationResult(error_code=each.error_code, error_message=each.error_message or "")
            for each in results
        ]
    )
