"""CreateAcls (30, KIP-140): add access rules, with one result per rule.

Versions: 1 pattern types (KIP-290); 2 flexible; 3 user resources. ZooKeeper brokers write rules
themselves and KRaft brokers forward the request, so no broker answers NOT_CONTROLLER.
"""

from __future__ import annotations

from kproto.messages.create_acls_request import CreateAclsRequest
from kproto.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from mockbroker.apis.common.acl_elements import known_elements
from mockbroker.apis.common.requirements import cluster_operation
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.results import AclBinding

__all__ = ["create_acls"]


@register(
    30,
    "0-3",
    requires=(
        known_elements(lambda request: request.creations, "resource_type", "resource_pattern_type"),
        cluster_operation(AclOperation.ALTER),
    ),
)
def create_acls(call: Call) -> CreateAclsResponse:
    request: CreateAclsRequest = call.body
    results = call.cluster.acls.create(
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
            AclCreationResult(
                error_code=each.error_code,
                error_message=each.error_message if each.error_code else "",
            )
            for each in results
        ]
    )
