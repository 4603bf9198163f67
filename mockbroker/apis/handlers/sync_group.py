"""SyncGroup (14): the leader sends the assignments of a generation, every member gets its own.

Versions: 1 throttle time; 3 instance ids (KIP-345); 4 flexible; 5 protocol type and name, which the
request must have (KIP-559). The answer waits for the leader's request.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.sync_group_request import SyncGroupRequest
from kproto.messages.sync_group_response import SyncGroupResponse
from mockbroker.apis.common.group_answers import GroupAnswer, coordinator_error, when_answered
from mockbroker.apis.common.requirements import Requirement, group_access
from mockbroker.apis.registry import Answer, Call, register
from mockbroker.simulation.groups.classic.classic_group import SyncRequest, SyncResult
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["sync_group"]


def _protocol_error(call: Call) -> int:
    named = call.body.protocol_type is not None and call.body.protocol_name is not None
    return ErrorCode.NONE if named or call.version < 5 else ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@register(14, "0-5", requires=(Requirement(_protocol_error), group_access(AclOperation.READ)))
def sync_group(call: Call) -> Answer:
    body: SyncGroupRequest = call.body
    request = SyncRequest(
        group_id=body.group_id,
        member_id=body.member_id,
        generation=body.generation_id,
        instance_id=body.group_instance_id,
        protocol_type=body.protocol_type,
        protocol_name=body.protocol_name,
        assignments=tuple((each.member_id, bytes(each.assignment)) for each in body.assignments),
    )
    answer = GroupAnswer[SyncResult]()
    call.cluster.groups.sync(request, answer.give, coordinator_error(call, body.group_id))
    return when_answered(answer, _response)


def _response(result: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=result.error_code,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )
