"""LeaveGroup (13): members leave their group, or an administrator removes them.

Versions: 0-2 name one member, whose error is the response's; 1 throttle time; 3 a list of members,
which instance ids may name, with an error each (KIP-345); 4 flexible; 5 reason (KIP-800), which the
journal keeps with the request.
"""

from __future__ import annotations

from kproto.messages.leave_group_request import LeaveGroupRequest
from kproto.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from mockbroker.apis.common.group_answers import coordinator_error
from mockbroker.apis.common.requirements import group_access
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.classic.classic_group import LeavingMember
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["leave_group"]


@register(13, "0-5", requires=(group_access(AclOperation.READ),))
def leave_group(call: Call) -> LeaveGroupResponse:
    body: LeaveGroupRequest = call.body
    named = call.version >= 3
    members = [LeavingMember(body.member_id)]
    if named:
        members = [
            LeavingMember(each.member_id, each.group_instance_id, each.reason)
            for each in body.members
        ]
    code, codes = call.cluster.groups.leave(
        body.group_id, members, coordinator_error(call, body.group_id)
    )
    if not named:
        return LeaveGroupResponse(error_code=code or codes[0])
    return LeaveGroupResponse(
        error_code=code,
        members=[
            MemberResponse(
                member_id=each.member_id, group_instance_id=each.instance_id, error_code=member_code
            )
            for each, member_code in zip(members, codes, strict=False)
        ],
    )
