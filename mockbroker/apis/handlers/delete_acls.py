"""DeleteAcls (31, KIP-140): remove the access rules that each filter matches.

Versions: 1 pattern types (KIP-290); 2 flexible; 3 user resources. The response lists the rules
that were removed, filter by filter.
"""

from __future__ import annotations

from kproto.messages.delete_acls_request import DeleteAclsRequest
from kproto.messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from mockbroker.apis.common.acl_elements import known_filters
from mockbroker.apis.common.requirements import cluster_operation
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.results import AclFilter, DeleteAclsResult

__all__ = ["delete_acls"]


@register(
    31,
    "0-3",
    requires=(
        known_filters(lambda request: request.filters),
        cluster_operation(AclOperation.ALTER),
    ),
)
def delete_acls(call: Call) -> DeleteAclsResponse:
    request: DeleteAclsRequest = call.body
    results = call.cluster.acls.delete(
        [
            AclFilter(
                resource_type=each.resource_type_filter,
                resource_name=each.resource_name_filter,
                pattern_type=each.pattern_type_filter,
                principal=each.principal_filter,
                host=each.host_filter,
                operation=each.operation,
                permission_type=each.permission_type,
            )
            for each in request.filters
        ]
    )
    return DeleteAclsResponse(filter_results=[_result(each) for each in results])


def _result(result: DeleteAclsResult) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_code=result.error_code,
        error_message=result.error_message,
        matching_acls=[
            DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                pattern_type=each.pattern_type,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission_type,
            )
            for each in result.matching
        ],
    )
