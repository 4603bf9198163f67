"""DeleteGroups (42, KIP-229): empty groups go, with their offsets.

Versions: 1 throttle time in another order of checks; 2 flexible; 3 error text.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.delete_groups_request import DeleteGroupsRequest
from kproto.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.group_answers import coordinator_error
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType

__all__ = ["delete_groups"]


@register(42, "0-3")
def delete_groups(call: Call) -> DeleteGroupsResponse:
    body: DeleteGroupsRequest = call.body
    names = list(dict.fromkeys(body.groups_names))
    allowed = authorized_names(call, names, AclOperation.DELETE, ResourceType.GROUP)
    refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    results = [
        DeletableGroupResult(
            group_id=each,
            error_code=call.cluster.groups.delete(each, coordinator_error(call, each)),
        )
        for each in names
        if each in allowed
    ]
    results += [
        DeletableGroupResult(group_id=each, error_code=refused)
        for each in names
        if each not in allowed
    ]
    return DeleteGroupsResponse(results=results)
