"""DescribeGroups (15): state, protocol and members of classic groups.

Versions: 1 throttle time; 3 authorized operations (KIP-430); 4 instance ids (KIP-345); 5 flexible;
6 error GROUP_ID_NOT_FOUND with a text for a group that does not exist (KIP-1043), which earlier
versions show as dead.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.describe_groups_request import DescribeGroupsRequest
from kproto.messages.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.authorized_operations import group_operations
from mockbroker.apis.common.group_answers import coordinator_error
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.classic.classic_group import GroupState
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType

__all__ = ["describe_groups"]


@register(15, "0-6")
def describe_groups(call: Call) -> DescribeGroupsResponse:
    body: DescribeGroupsRequest = call.body
    refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    groups = body.groups
    if call.release.has(facts.DESCRIBED_GROUPS_UNIQUE):
        groups = list(dict.fromkeys(groups))
    allowed = authorized_names(call, groups, AclOperation.DESCRIBE, ResourceType.GROUP)
    return DescribeGroupsResponse(
        groups=[
            DescribedGroup(group_id=each, error_code=refused)
            for each in groups
            if each not in allowed
        ]
        + [_described(call, each) for each in groups if each in allowed]
    )


def _described(call: Call, group_id: str) -> DescribedGroup:
    error = coordinator_error(call, group_id)
    if error:
        return DescribedGroup(group_id=group_id, error_code=error)
    shown = _shown(call, group_id)
    if call.version >= 3 and call.release.has(facts.UNREQUESTED_OPERATIONS_ZERO):
        shown.authorized_operations = 0
    if call.version >= 3 and call.body.include_authorized_operations and not shown.error_code:
        shown.authorized_operations = group_operations(call, group_id)
    return shown


def _shown(call: Call, group_id: str) -> DescribedGroup:
    found = call.cluster.groups.classic.describe(group_id)
    if found is None:
        missing = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if call.version >= 6:
            missing.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            other = call.cluster.groups.group(group_id) is not None
            problem = "is not a classic group" if other else "not found"
            missing.error_message = f"Group {group_id} {problem}."
        return missing
    return DescribedGroup(
        group_id=group_id,
        group_state=found.state,
        protocol_type=found.protocol_type,
        protocol_data=found.protocol_name,
        members=[
            DescribedGroupMember(
                member_id=each.member_id,
                group_instance_id=each.instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                member_metadata=each.metadata,
                member_assignment=each.assignment,
            )
            for each in found.members
        ],
    )
