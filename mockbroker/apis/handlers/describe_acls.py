"""DescribeAcls (29, KIP-140): the access rules that a filter matches, grouped by resource.

Versions: 1 pattern types (KIP-290), version 0 has literal names only; 2 flexible; 3 user
resources. Without an authorizer rules are still stored and listed, where Kafka answers
SECURITY_DISABLED(54).
"""

from __future__ import annotations

from kproto.messages.describe_acls_request import DescribeAclsRequest
from kproto.messages.describe_acls_response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from mockbroker.apis.common.acl_elements import known_filters
from mockbroker.apis.common.requirements import cluster_operation
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.results import AclFilter

__all__ = ["describe_acls"]


@register(
    29,
    "0-3",
    requires=(known_filters(lambda request: [request]), cluster_operation(AclOperation.DESCRIBE)),
)
def describe_acls(call: Call) -> DescribeAclsResponse:
    request: DescribeAclsRequest = call.body
    found = call.cluster.acls.describe(
        AclFilter(
            resource_type=request.resource_type_filter,
            resource_name=request.resource_name_filter,
            pattern_type=request.pattern_type_filter,
            principal=request.principal_filter,
            host=request.host_filter,
            operation=request.operation,
            permission_type=request.permission_type,
        )
    )
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for binding in found:
        key = (binding.resource_type, binding.resource_name, binding.pattern_type)
        resource = resources.setdefault(
            key,
            DescribeAclsResource(resource_type=key[0], resource_name=key[1], pattern_type=key[2]),
        )
        resource.acls.append(
            AclDescription(
                principal=binding.principal,
                host=binding.host,
                operation=binding.operation,
                permission_type=binding.permission_type,
            )
        )
    return DescribeAclsResponse(
        error_code=found.error_code,
        error_message=None if call.release.has(facts.PLAIN_ACL_CLASSES) else "",
        resources=list(resources.values()),
    )
