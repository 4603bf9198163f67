"""ListGroups (16): the groups that the broker coordinates.

Versions: 1 throttle time; 3 flexible; 4 filter by state (KIP-518); 5 filter by type (KIP-848).
Callers that may describe the cluster see all groups, others those that they may describe.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.list_groups_request import ListGroupsRequest
from kproto.messages.list_groups_response import ListedGroup, ListGroupsResponse
from mockbroker.apis.common.group_answers import coordinator_error
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType

__all__ = ["list_groups"]


@register(16, "0-5")
def list_groups(call: Call) -> ListGroupsResponse:
    body: ListGroupsRequest = call.body
    states = body.states_filter if call.version >= 4 else ()
    types = body.types_filter if call.version >= 5 else ()
    sees_all = call.authorizes(AclOperation.DESCRIBE)
    code = ErrorCode.NONE
    listed = []
    for group in call.cluster.groups.list_groups(states or (), types or ()):
        error = coordinator_error(call, group.group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            code = error
        if error or not (
            sees_all or call.authorizes(AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id)
        ):
            continue
        listed.append(
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.group_type,
            )
        )
    return ListGroupsResponse(error_code=code, groups=listed)
